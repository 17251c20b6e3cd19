"""Times `quell.torch` beside Opacus on the same torch models, and their memory.

Networks, batches and Opacus's settings are those of benches/trainers.py. A step draws nothing new: every record is in
every batch. Each step clips the gradient of every record, adds them, adds noise, divides and lets SGD update.

What is unequal: Quell's noise comes from a secure generator and is exact on a grid; Opacus's comes from a fast one, its
default. Quell adds more than 96 records in double precision. Both are in Opacus's favour.

Times are of the best repetition. By default they are wall times on two threads. `--processor` measures the time of all
processors on one thread instead, which other work on the machine changes less. Each way runs in a process of its own,
in turns.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from peers import ROOT, prepare_environment, say
from trainers import NETWORKS, Task, Trainer, draw_task, opacus_trainer, torch_module, torch_trainer, torch_weights

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "frameworks-requirements.txt"
WAYS = ("quell", "opacus-hooks", "opacus-functorch", "opacus-ew", "opacus-ghost", "torch")


def quell_trainer(task: Task) -> Trainer:
    import quell.torch
    import torch

    module = torch_module(task)
    private = quell.torch.Private(
        module,
        torch.optim.SGD(module.parameters(), lr=task.learning_rate),
        torch.nn.CrossEntropyLoss(),
        (task.inputs, task.labels),
        # The size of the noise does not change its cost. This much has a bound on ε for as many steps.
        noise_multiplier=8.0,
        delta=1e-5,
        clip_norm=task.clip_norm,
        records=task.batch,
        batch_size=task.batch,
        steps=200,
    )

    def step() -> None:
        private.step()

    return Trainer(step, lambda: torch_weights(module))


def work(name: str, network: str, seconds: float, processor: bool) -> None:
    """Measures one way in this process, and prints seconds of the best step and bytes beyond the imports."""
    import torch

    torch.set_num_threads(1 if processor else 2)
    task = draw_task(NETWORKS[network], NETWORKS[network].batch)
    if name == "quell":
        import quell.torch  # noqa: F401
    elif name != "torch":
        import opacus  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    match name:
        case "quell":
            trainer = quell_trainer(task)
        case "torch":
            trainer = torch_trainer(task)
        case _:
            trainer = opacus_trainer(task, name.removeprefix("opacus-"))
    clock = time.process_time if processor else time.perf_counter
    times: list[float] = []
    end = time.monotonic() + seconds
    while len(times) < 2 or (time.monotonic() < end and len(times) < 100):
        start = clock()
        trainer.step()
        times.append(clock() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    print(json.dumps({"seconds": min(times), "memory": memory, "steps": len(times)}))


def main() -> int:
    parser = argparse.ArgumentParser(description="Times quell.torch beside Opacus.")
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS), help="(all)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="(all)")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each way gets (3)")
    parser.add_argument("--seconds", type=float, default=10, help="length of a turn (10)")
    parser.add_argument("--processor", action="store_true", help="processor time on one thread")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "frameworks-bench-env", help="where all goes")
    parser.add_argument("--python", type=Path, help="a Python that has torch, Opacus and Quell")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(*arguments.worker, arguments.seconds, arguments.processor)
        return 0
    python = arguments.python
    if python is None:
        python = prepare_environment(arguments.env, REQUIREMENTS, complete=False)
        subprocess.run(["make", "python"], cwd=ROOT, check=True)
        wheels = [str(path) for path in (ROOT / "target" / "wheels").glob("*.whl")]
        command = [str(python), "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", *wheels]
        subprocess.run(command, check=True)
    failed = False
    threads = {"OMP_NUM_THREADS": "1"} if arguments.processor else {"OMP_NUM_THREADS": "2"}
    for network in arguments.networks:
        best: dict[str, tuple[float, float]] = {}
        for _ in range(arguments.rounds):
            for way in arguments.ways:
                command = [str(python), str(Path(__file__).resolve()), "--worker", way, network]
                command += ["--seconds", str(arguments.seconds), *(["--processor"] if arguments.processor else [])]
                done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads})
                if done.returncode != 0:
                    say(f"{way} on {network}: {done.stderr.strip().splitlines()[-1:]}")
                    failed = True
                    continue
                told = json.loads(done.stdout.splitlines()[-1])
                seconds, memory = best.get(way, (float("inf"), float("inf")))
                best[way] = (min(seconds, told["seconds"]), min(memory, told["memory"]))
        say(f"\n{network}: {NETWORKS[network].title}, batch {NETWORKS[network].batch}", sys.stdout)
        for way, (seconds, memory) in best.items():
            say(f"  {way:18} {seconds * 1e3:9.1f} ms {memory / 1e6:9.0f} MB", sys.stdout)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
