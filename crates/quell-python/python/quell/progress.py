"""Progress of long work: a line in a terminal, a text in a notebook, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Bar", "Progress", "Watch"]

import dataclasses


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far some work is. All of it is public."""

    stage: str
    """What is counted, in the singular, such as `step`."""
    done: int
    """The number done so far."""
    of: int
    """Their total; 0 if it is private."""
    epsilon: float | None
    """ε of the work so far."""
    accuracy: float | None
    """The newest accuracy on public test records."""

    def __str__(self) -> str:
        parts = [f"{self.stage} {self.done} of {self.of}" if self.of else self.stage]
        if self.epsilon is not None:
            parts.append(f"ε {self.epsilon:.3g}")
        if self.accuracy is not None:
            parts.append(f"accuracy {100 * self.accuracy:.1f} %")
        return ", ".join(parts)


Watch = Callable[[Progress], Any]
"""Is called after each step. The run stops where nothing is lost that was paid for if it returns False."""


class Bar:
    """Shows progress a few times a second, and is silent where nobody looks."""

    def __init__(self, function: Watch | None, show: Callable[[str], None] | None) -> None:
        self._function = function
        self._show = show
        self._shown = 0.0
        self._has_shown = False

    @classmethod
    def of(cls, progress: bool | Watch | None) -> Bar:
        """A bar as the caller asks: a function, true, false, or none for what suits the place."""
        if callable(progress):
            return cls(progress, None)
        if progress is False:
            return cls(None, None)
        handle = _notebook()
        if handle is not None:
            return cls(None, handle)
        if progress or sys.stderr.isatty():
            return cls(None, _terminal)
        return cls(None, None)

    @property
    def watch(self) -> Callable[..., Any] | None:
        """What the native module calls."""
        return None if self._function is None and self._show is None else self._watch

    def _watch(self, stage: str, done: int, of: int, epsilon: float | None, accuracy: float | None) -> Any:
        progress = Progress(stage, done, of, epsilon, accuracy)
        if self._function is not None:
            return self._function(progress)
        now = time.monotonic()
        if self._show is not None and (now - self._shown > 0.1 or done == of):
            self._show(str(progress))
            self._shown, self._has_shown = now, True
        return None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._show is _terminal and self._has_shown:
            # The line is removed: results follow.
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _terminal(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


def _notebook() -> Callable[[str], None] | None:
    """Shows a text in the notebook that runs, if there is one."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    if running is None or type(running).__name__ != "ZMQInteractiveShell":
        return None
    display = sys.modules["IPython"].display
    handle = display.display(display.Pretty("…"), display_id=True)
    return lambda text: handle.update(display.Pretty(text))
