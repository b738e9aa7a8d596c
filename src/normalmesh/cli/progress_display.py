"""The progress line that a command shows on a terminal."""

from __future__ import annotations

import time

import click

from normalmesh.runtime.monitor import DONE, Step

#: Shortest time between two updates of the line, in seconds, because terminals are slow.
INTERVAL = 0.1


class ProgressDisplay:
    """A line on standard error with stage, percentage, vertices and remaining time, overwritten by each update.

    An instance can be passed as the callback ``progress`` of long functions.

    Parameters
    ----------
    enabled
        Whether to show anything; False if standard error is not a terminal.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._began, self._updated = time.monotonic(), 0.0
        self._width = 0

    def __call__(self, step: Step) -> None:
        """Replace the line by the given step."""
        now = time.monotonic()
        if step.share == 0:
            self._began = now
        if not self.enabled or (now - self._updated < INTERVAL and step.share < 1):
            return
        self._updated = now
        self.show(step_text(step, now - self._began) if step.stage != DONE else "")

    def show(self, line: str) -> None:
        """Replace the line by the given text."""
        self.clear()
        self._width = len(line)
        click.echo(line, err=True, nl=False)

    def clear(self) -> None:
        """Erase the line."""
        if self._width:
            click.echo(f"\r{' ' * self._width}\r", err=True, nl=False)
            self._width = 0


def step_text(step: Step, elapsed: float) -> str:
    """Return the line for a step, ``elapsed`` seconds after the start."""
    parts = [f"{step.stage:<9} {100 * step.share:3.0f} %"]
    if step.vertices is not None:
        parts.append(f"{step.vertices} vertices")
    # An extrapolation from the first moments is useless.
    if step.share > 0.02 and elapsed > 0.5:
        parts.append(f"{duration_text(elapsed * (1 / step.share - 1))} left")
    return ", ".join(parts)


def duration_text(seconds: float) -> str:
    """Return a duration in words: 8 s, 2 min 5 s, 1 h 10 min."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
