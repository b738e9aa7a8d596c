"""Messages of a command on standard output and standard error."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from normalmesh.cli.interruption import cleanups
from normalmesh.cli.progress_display import ProgressDisplay
from normalmesh.errors import escaped, path_text
from normalmesh.runtime.monitor import OnProgress, Step


def allow_any_file_name() -> None:
    """Let file names that are not valid text be printed: undecodable bytes as they are, the rest as question marks."""
    codecs.register_error("normalmesh", _encode_or_replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="normalmesh")


def _encode_or_replace(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("replace")(error)


class Console:
    """Messages on standard error, results on standard output and, on a terminal, a progress line below them.

    Parameters
    ----------
    quiet
        Whether to print only alerts and requested output.
    verbose
        Whether to print details, too.
    """

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet, self.verbose = quiet, verbose
        self.progress = ProgressDisplay(enabled=not quiet and sys.stderr.isatty())

    def alert(self, text: str) -> None:
        """Print a warning or an error."""
        self.progress.clear()
        click.echo(escaped(text), err=True)

    def notice(self, text: str) -> None:
        """Print a message unless quiet."""
        if not self.quiet:
            self.alert(text)

    def detail(self, text: str) -> None:
        """Print a message if verbose."""
        if self.verbose:
            self.notice(text)

    def result(self, text: str) -> None:
        """Print a result to standard output unless quiet."""
        if not self.quiet:
            self.output(text)

    def output(self, text: str) -> None:
        """Print requested output to standard output, even if quiet."""
        self.progress.clear()
        click.echo(escaped(text))

    def compilation(self, number: int, total: int) -> None:
        """Show the number of compiled kernels; without a terminal, print one notice."""
        if self.progress.enabled:
            self.progress.show(f"compiling kernels {number}/{total}, first run only")
        elif number == 1:
            self.notice("compiling kernels, first run only")

    def part(self, number: int, count: int, name: str) -> OnProgress:
        """Return the progress callback of task ``number`` of ``count``; the line shows the progress of all tasks."""
        if count == 1:
            return self.progress

        def progress(step: Step) -> None:
            stage = f"{number + 1}/{count} {path_text(name)}: {step.stage}"
            self.progress(Step(min((number + step.share) / count, 0.999), stage, step.vertices))

        return progress


@contextmanager
def progress_line_removed(console: Console) -> Iterator[None]:
    """Erase the progress line at the end, also after an error or a signal."""
    cleanups.append(console.progress.clear)
    try:
        yield
    finally:
        cleanups.remove(console.progress.clear)
        console.progress.clear()


@contextmanager
def compilation_announced(console: Console) -> Iterator[None]:
    """Report the compilation of kernels, if any are compiled; later runs load them from the cache."""
    from normalmesh.runtime.compilation import compilation_reported

    with compilation_reported(console.compilation):
        yield
