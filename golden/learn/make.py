"""Writes losses, optimizer runs and schedules as PyTorch computes them in double precision, for crates/quell/tests/learn.

    pip install torch==2.15.0 && python golden/learn/make.py

Every input is a number of single precision, so that both sides start from the same. A case holds the recipe as Quell reads it.
"""

import json
import pathlib

import torch
from torch.nn import functional
from torch.optim import lr_scheduler

folder = pathlib.Path(__file__).parent
torch.set_default_dtype(torch.float64)


def single(value):
    """The nearest number of single precision."""
    return torch.tensor(value, dtype=torch.float32).double()


def write(name, cases):
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    meta = json.dumps({"torch": torch.__version__.split("+")[0], "precision": "float64"})
    (folder / f"{name}.json").write_text(f'{{"meta": {meta}, "cases": [\n{lines}\n]}}\n')


def loss_case(recipe, outputs, target, function):
    outputs = single(outputs).requires_grad_()
    loss = function(outputs)
    loss.backward()
    return {
        "recipe": recipe,
        "outputs": outputs.tolist(),
        "target": target,
        "loss": loss.item(),
        "gradient": outputs.grad.tolist(),
    }


def losses():
    rows = [[0.3, -1.2, 2.5], [0.0, 0.0, 0.0, 0.0], [30.0, -40.0], [1e30, -1e30, 0.0], [-7.5, 100.0, 99.0, -3.0, 12.0]]
    for row in rows:
        for smoothing in [0.0, 0.125]:
            for label in [0, len(row) - 1]:
                recipe = {"cross_entropy": {"label_smoothing": smoothing}}
                entropy = lambda z: functional.cross_entropy(z[None], torch.tensor([label]), label_smoothing=smoothing)
                yield loss_case(recipe, row, {"class": label}, entropy)
    for z in [-1e30, -60.0, -2.25, 0.0, 0.7, 35.0, 1e30]:
        for y in [0.0, 1.0, 0.25]:
            binary = lambda output: functional.binary_cross_entropy_with_logits(output, torch.tensor([y]))
            yield loss_case("binary_cross_entropy", [z], {"number": y}, binary)
    for z, y in [(0.5, 2.0), (-3.0, 0.125), (1.0, 1.0), (100.0, -7.5), (2.0, 0.5)]:
        target = single([y])
        number = {"number": y}
        yield loss_case("squared", [z], number, lambda output: 0.5 * functional.mse_loss(output, target))
        for delta in [0.5, 1.5, 3.125]:
            huber = lambda output: functional.huber_loss(output, target, delta=delta)
            yield loss_case({"huber": {"delta": delta}}, [z], number, huber)
        # At the kink every library has a convention of its own.
        for quantile in [0.25, 0.875] if z != y else []:
            residual = lambda output: output - target
            pinball = lambda output: torch.maximum(-quantile * residual(output), (1 - quantile) * residual(output)).sum()
            yield loss_case({"pinball": {"quantile": quantile}}, [z], number, pinball)


def pseudo_gradient(step, length):
    """Something without pattern that both sides can be given: the low digits of squares."""
    return single([((step * 7919 + i * 104729 + 12345) ** 2 // 64 % 20011 / 10000 - 1) * 10.0 ** (i % 4 - 2) for i in range(length)])


def optimizers():
    start = single([0.5, -1.25, 3.0, 0.0078125, -0.75, 2.0, 0.0])
    recipes = [
        ({"sgd": {}}, torch.optim.SGD, {}),
        ({"sgd": {"weight_decay": 0.05}}, torch.optim.SGD, {"weight_decay": 0.05}),
        ({"momentum": {}}, torch.optim.SGD, {"momentum": 0.9}),
        ({"momentum": {"momentum": 0.8, "weight_decay": 0.05}}, torch.optim.SGD, {"momentum": 0.8, "weight_decay": 0.05}),
        ({"momentum": {"nesterov": True}}, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (
            {"momentum": {"momentum": 0.7, "nesterov": True, "weight_decay": 0.05}},
            torch.optim.SGD,
            {"momentum": 0.7, "nesterov": True, "weight_decay": 0.05},
        ),
        ({"adam": {}}, torch.optim.Adam, {}),
        (
            {"adam": {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.05}},
            torch.optim.Adam,
            {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.05},
        ),
        ({"adamw": {}}, torch.optim.AdamW, {}),
        (
            {"adamw": {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.25}},
            torch.optim.AdamW,
            {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.25},
        ),
        ({"adagrad": {}}, torch.optim.Adagrad, {}),
        (
            {"adagrad": {"initial": 0.125, "epsilon": 1e-3, "weight_decay": 0.05}},
            torch.optim.Adagrad,
            {"initial_accumulator_value": 0.125, "eps": 1e-3, "weight_decay": 0.05},
        ),
    ]
    for recipe, optimizer, settings in recipes:
        weights = torch.nn.Parameter(start.clone())
        optimizer = optimizer([weights], lr=0.0625, **settings)
        gradients, iterates = [], []
        for step in range(20):
            weights.grad = pseudo_gradient(step, len(start))
            gradients.append(weights.grad.tolist())
            optimizer.step()
            iterates.append(weights.tolist())
        yield {
            "recipe": recipe,
            "learning_rate": 0.0625,
            "start": start.tolist(),
            "gradients": gradients,
            "iterates": iterates,
        }


def schedules():
    steps = 12
    for warm_up in [0, 1, 4]:
        left = steps - warm_up
        inverse = lambda t: (max(warm_up, 1) / (warm_up + t + 1)) ** 0.5
        shapes = [
            ("constant", lambda o: lr_scheduler.ConstantLR(o, factor=1.0)),
            ({"linear": {}}, lambda o: lr_scheduler.LinearLR(o, 1.0, 0.0, left)),
            ({"linear": {"last": 0.25}}, lambda o: lr_scheduler.LinearLR(o, 1.0, 0.25, left)),
            ({"cosine": {}}, lambda o: lr_scheduler.CosineAnnealingLR(o, left)),
            ({"cosine": {"last": 0.25}}, lambda o: lr_scheduler.CosineAnnealingLR(o, left, eta_min=0.5 * 0.25)),
            ({"exponential": {"factor": 0.75}}, lambda o: lr_scheduler.ExponentialLR(o, 0.75)),
            ({"step": {"factor": 0.5, "every": 3}}, lambda o: lr_scheduler.StepLR(o, 3, 0.5)),
            ("inverse_sqrt", lambda o: lr_scheduler.LambdaLR(o, inverse)),
        ]
        for shape, make in shapes:
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
            if warm_up > 0:
                rising = lr_scheduler.LambdaLR(optimizer, lambda t: (t + 1) / warm_up)
                schedule = lr_scheduler.SequentialLR(optimizer, [rising, make(optimizer)], [warm_up])
            else:
                schedule = make(optimizer)
            rates = []
            for _ in range(steps):
                rates.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                schedule.step()
            yield {"recipe": {"learning_rate": 0.5, "warm_up": warm_up, "shape": shape}, "steps": steps, "learning_rates": rates}


write("losses", losses())
write("optimizers", optimizers())
write("schedules", schedules())
