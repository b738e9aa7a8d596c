"""What a command shows while it works: a line of progress, and notices."""

from __future__ import annotations

import codecs
import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from normalmesh.cli.interruption import cleanups
from normalmesh.runtime.monitor import DONE, OnProgress, Step

#: Seconds between two lines; terminals are slow.
INTERVAL = 0.1


def print_any_name() -> None:
    """Let names of files be printed whatever they hold: bytes that are no text as they are, else a question mark."""
    codecs.register_error("normalmesh", _printable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="normalmesh")


def _printable(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("replace")(error)


class Console:
    """Notices on standard error and, on a terminal, a line of progress below them.

    If it is to be quiet, nothing but alerts; if it is to be verbose, details, too.
    """

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet, self.verbose = quiet, verbose
        self._moving = not quiet and sys.stderr.isatty()
        self._began, self._shown = time.monotonic(), 0.0
        self._width = 0

    def alert(self, text: str) -> None:
        """A warning or an error."""
        self.clear()
        click.echo(text, err=True)

    def notice(self, text: str) -> None:
        if not self.quiet:
            self.alert(text)

    def detail(self, text: str) -> None:
        """What only a verbose command says."""
        if self.verbose:
            self.notice(text)

    def result(self, text: str) -> None:
        """To standard output."""
        if not self.quiet:
            self.output(text)

    def output(self, text: str) -> None:
        """To standard output, however quiet: what was asked for."""
        self.clear()
        click.echo(text)

    def progress(self, step: Step) -> None:
        """Show a step of long work in place of the one before."""
        now = time.monotonic()
        if step.share == 0:
            self._began = now
        if not self._moving or (now - self._shown < INTERVAL and step.share < 1):
            return
        self._shown = now
        self._replace(step_text(step, now - self._began) if step.stage != DONE else "")

    def compilation(self, number: int, total: int) -> None:
        """Show how many kernels have been compiled; where lines cannot be replaced, say once that they are."""
        if self._moving:
            self._replace(f"compiling kernels {number}/{total}, first run only")
        elif number == 1:
            self.notice("compiling kernels, first run only")

    def part(self, number: int, count: int, name: str) -> OnProgress:
        """A callback for one of several pieces of work, of which the line shows the whole."""
        if count == 1:
            return self.progress

        def progress(step: Step) -> None:
            stage = f"{number + 1}/{count} {name}: {step.stage}"
            self.progress(Step(min((number + step.share) / count, 0.999), stage, step.vertices))

        return progress

    def _replace(self, line: str) -> None:
        self.clear()
        self._width = len(line)
        click.echo(line, err=True, nl=False)

    def clear(self) -> None:
        """Take the line of progress away."""
        if self._width:
            click.echo(f"\r{' ' * self._width}\r", err=True, nl=False)
            self._width = 0


def step_text(step: Step, elapsed: float) -> str:
    """A step after so many seconds, in a line."""
    parts = [f"{step.stage:<9} {100 * step.share:3.0f} %"]
    if step.vertices is not None:
        parts.append(f"{step.vertices} vertices")
    # The first moments say nothing about the rest.
    if step.share > 0.02 and elapsed > 0.5:
        parts.append(f"{duration_text(elapsed * (1 / step.share - 1))} left")
    return ", ".join(parts)


def duration_text(seconds: float) -> str:
    """Seconds as people write them: 8 s, 2 min 5 s, 1 h 10 min."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def progress_removed(console: Console) -> Iterator[None]:
    """The line of progress goes at the end, whatever happens."""
    cleanups.append(console.clear)
    try:
        yield
    finally:
        cleanups.remove(console.clear)
        console.clear()


@contextmanager
def compilation_announced(console: Console) -> Iterator[None]:
    """Say how far compiling kernels is, if they are compiled: later runs find them in the cache."""
    from normalmesh.runtime.kernels import compilation_reported

    with compilation_reported(console.compilation):
        yield
