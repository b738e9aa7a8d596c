"""Messages of a command on standard output and standard error, above its progress bar."""

from __future__ import annotations

import codecs
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from normalmesh.cli.error_handling import error_text, print_traceback
from normalmesh.cli.interruption import cleanups
from normalmesh.cli.printing import PrintedTable, field_text, print_text
from normalmesh.errors import NormalMeshWarning, path_text
from normalmesh.runtime.monitor import OnProgress, Step
from normalmesh.runtime.progress_bar import ProgressBar

#: Longest name of an input in the progress bar, in characters.
NAME_LENGTH = 24


def allow_any_file_name() -> None:
    """Let file names that are not valid text be printed: undecodable bytes as they are, the rest as question marks."""

    def encode_or_replace(error: UnicodeError) -> tuple[str | bytes, int]:
        try:
            return codecs.lookup_error("surrogateescape")(error)
        except UnicodeError:
            return codecs.lookup_error("replace")(error)

    codecs.register_error("normalmesh", encode_or_replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="normalmesh")


class Console:
    """Messages on standard error, results on standard output, and progress below them.

    ``quiet``: only alerts and requested output are printed; ``verbose``: details, too, and what the library logs.
    """

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet, self.verbose = quiet, verbose
        self.progress = ProgressBar(enabled=not quiet)

    def alert(self, text: str) -> None:
        """Print a warning or an error."""
        with self.progress.hidden():
            print_text(text, err=True)

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
        with self.progress.hidden():
            print_text(text)

    def row(self, table: PrintedTable, cells: Sequence[str]) -> None:
        """Print a row of a table to standard output unless quiet."""
        if not self.quiet:
            with self.progress.hidden():
                table.print_row(cells)

    def part(self, number: int, count: int, name: str) -> OnProgress:
        """Return the progress callback of task ``number`` of ``count``; the bar shows the progress of all tasks."""
        if count == 1:
            return self.progress
        shown = path_text(name)
        if len(shown) > NAME_LENGTH:
            shown = f"{shown[: NAME_LENGTH // 2]}…{shown[1 - NAME_LENGTH // 2 :]}"

        def progress(step: Step) -> None:
            stage = f"{number + 1}/{count} {shown}: {step.stage}"
            self.progress(Step(min((number + step.share) / count, 0.999), stage, step.vertices))

        return progress

    @contextmanager
    def working(self, stage: str) -> Iterator[None]:
        """Show a stage that reports no progress of its own while it lasts."""
        self.progress.work(stage)
        try:
            yield
        finally:
            self.progress.clear()

    @contextmanager
    def running(self, stage: str = "") -> Iterator[None]:
        """Show progress, the compilation of kernels, and a stage if one is named; if verbose, print the log.

        The bar is removed at the end, also after an error or a signal.
        """
        from normalmesh.runtime.compilation import compilation_reported

        cleanups.append(self.progress.close)
        try:
            with (
                _log_printed(self) if self.verbose else nullcontext(),
                compilation_reported(self.progress.compilation),
                self.working(stage) if stage else nullcontext(),
            ):
                yield
        finally:
            cleanups.remove(self.progress.close)
            self.progress.clear()

    def failure(self, error: Exception, about: Path | None = None) -> None:
        """Print the line of an error, and its traceback if ``--debug`` is given."""
        self.progress.clear()
        print_traceback(error)
        self.alert(f"normalmesh: {error_text(error, about)}")


@contextmanager
def _log_printed(console: Console) -> Iterator[None]:
    """Print what the library logs as details of a command."""
    logger, handler = logging.getLogger("normalmesh"), logging.Handler()
    handler.emit = lambda record: console.notice(field_text("log", record.getMessage()))  # type: ignore[method-assign]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def each_warning(handle: Callable[[str], None], *, shown: bool) -> Iterator[None]:
    """Call ``handle`` with the text of each warning of this package, and show it as usual, too, if ``shown``."""
    with warnings.catch_warnings():
        # By default Python shows a warning only once, but each input needs its own.
        warnings.simplefilter("always", NormalMeshWarning)
        show_as_usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: object) -> None:
            is_own = issubclass(category, NormalMeshWarning)
            if is_own:
                handle(str(message))
            if shown or not is_own:
                show_as_usual(message, category, *place)  # type: ignore[arg-type]

        warnings.showwarning = show  # type: ignore[assignment]
        yield
