"""A progress bar for terminals and notebooks; where there is neither, a line of text from time to time.

The command line shows it, and every function whose argument ``progress`` is True.
"""

from __future__ import annotations

import html
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from normalmesh.errors import count_text
from normalmesh.runtime.monitor import DONE, OnProgress, Progress, Step

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

#: Updates per second of the bar of a terminal, and of a notebook.
TERMINAL_RATE, NOTEBOOK_RATE = 10.0, 4.0
#: Seconds between two lines of text where no bar can be shown.
LINE_INTERVAL = 30.0
#: Columns of a usual stage, so that the bar stays in its place.
LABEL_COLUMNS = 9
#: An extrapolation from the first moments is useless: the least share and seconds from which the time left is shown.
MIN_SHARE, MIN_SECONDS = 0.02, 0.5
#: What is said of the compilation of kernels.
FIRST_RUN = "first run only"


@contextmanager
def progress_shown(progress: Progress) -> Iterator[OnProgress | None]:
    """Yield the callback for an argument ``progress``: a bar, which is removed at the end, if it is True."""
    if progress is not True:
        yield None if progress is False else progress
        return
    from normalmesh.runtime.compilation import compilation_reported

    bar = ProgressBar()
    try:
        with compilation_reported(bar.compilation):
            yield bar
    finally:
        bar.close()


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which lines can be replaced."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


class ProgressBar:
    """A callback for progress that shows stage, percentage, vertices and time left.

    It is shown on a stream, by default standard error, unless this is a notebook.
    """

    def __init__(self, enabled: bool = True, stream: TextIO | None = None) -> None:
        stream = sys.stderr if stream is None else stream
        # Programs without a console have no standard error.
        can_write = stream is not None and not getattr(stream, "closed", False)
        self._is_open = enabled and (can_write or _is_notebook())
        self.stage, self._compiling = "", ""
        self.share: float | None = None
        self.vertices: int | None = None
        self._began: float | None = None
        self._end: float | None = None
        self._display: _Display = _LineDisplay(self, stream)
        if _is_notebook():
            self._display = _NotebookDisplay(self)
        elif can_write and is_terminal(stream):
            self._display = _TerminalDisplay(self, stream)

    def __call__(self, step: Step) -> None:
        """Show the given step."""
        now = _working_seconds()
        if step.share == 0 or self._began is None:
            self._began = now
        elapsed = now - self._began
        is_known = step.share > MIN_SHARE and elapsed > MIN_SECONDS
        self._end = now + elapsed * (1 / step.share - 1) if is_known else None
        self._show(step.stage, step.share, step.vertices)

    def work(self, stage: str) -> None:
        """Show a stage of which no share is known."""
        self._end = None
        self._show(stage)

    def compilation(self, number: int, total: int) -> None:
        """Show that a kernel is being compiled: the callback of `compilation_reported`."""
        self._compiling = f"compiling kernels {number}/{total}, {FIRST_RUN}"
        if self._is_open:
            self._display.update()

    def _show(self, stage: str, share: float | None = None, vertices: int | None = None) -> None:
        self.stage, self.share, self.vertices = stage, share, vertices
        if self._is_open:
            (self._display.finish if stage == DONE else self._display.update)()

    def clear(self) -> None:
        """Remove the bar. The next step shows it again."""
        self._display.remove()

    def close(self) -> None:
        """Remove the bar for good."""
        self._is_open = False
        self.clear()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the bar while something else is printed."""
        was_shown = self._display.remove()
        try:
            yield
        finally:
            if was_shown and self._is_open:
                self._display.update()

    @property
    def label(self) -> str:
        """The number of the kernel that is being compiled, or the stage."""
        if self._compiling:
            from normalmesh.runtime.compilation import is_compiling

            self._compiling = self._compiling if is_compiling() else ""
        return self._compiling or self.stage

    @property
    def details(self) -> list[str]:
        """The percentage, the number of vertices, and the time left; empty if they are unknown."""
        left = None if self._end is None or self._compiling else self._end - _working_seconds()
        return [
            "" if self.share is None else f"{100 * self.share:3.0f} %",
            "" if self.vertices is None else count_text(self.vertices, "vertex", "vertices"),
            "" if left is None else f"{duration_text(left)} left",
        ]

    def __str__(self) -> str:
        return ", ".join(part.strip() for part in [self.label, *self.details] if part)


class _Display:
    """How the state of a bar is shown: `update` shows the current one."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._began = self._updated = time.monotonic()

    def update(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Show that the work is done."""
        self.remove()

    def remove(self) -> bool:
        """Remove what is shown, and return whether anything was."""
        return False


class _TerminalDisplay(_Display):
    """One line at the bottom of a terminal, which a thread draws."""

    def __init__(self, bar: ProgressBar, stream: TextIO) -> None:
        super().__init__(bar)
        self._stream = stream
        self._live: Live | None = None

    def update(self) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=self._stream),
                get_renderable=self._line,
                refresh_per_second=TERMINAL_RATE,
                transient=True,
                redirect_stdout=False,  # it may be a pipe
            )
            self._live.start()

    def remove(self) -> bool:
        live = self._live
        if live is not None:
            live.stop()  # draws once more
        self._live = None
        return live is not None

    def _line(self) -> Table:
        """Return the line: label, bar, percentage, and what else the width of the terminal allows."""
        from rich.progress_bar import ProgressBar as Bar
        from rich.table import Column, Table
        from rich.text import Text

        columns = 80 if self._live is None else self._live.console.width
        label, share = self._bar.label, self._bar.share
        percentage, vertices, left = self._bar.details
        label_columns = min(max(len(label), LABEL_COLUMNS), columns // 2)
        free = columns - columns // 4 - label_columns - len(percentage) - 2
        shown: list[str] = []
        # The time left matters most, so it gets its place first.
        for text in (left, vertices):
            if 0 < len(text) < free:
                shown.insert(0, text)
                free -= len(text) + 1
        line = Table.grid(
            Column(no_wrap=True, overflow="ellipsis", width=label_columns),
            Column(width=columns // 4),
            *(Column(no_wrap=True) for _ in (percentage, *shown)),
            padding=(0, 1),
        )
        line.add_row(Text(label, "bold"), Bar(1.0, share or 0.0, pulse=share is None), percentage, *shown)
        return line


class _NotebookDisplay(_Display):
    """An element of the output of a notebook's cell. It needs no widgets, and its last state is saved."""

    _handle = None

    def update(self) -> None:
        if self._handle is None or time.monotonic() - self._updated >= 1 / NOTEBOOK_RATE:
            self._show(str(self._bar))

    def finish(self) -> None:
        _, vertices, _ = self._bar.details
        seconds = f"{time.monotonic() - self._began:.1f} s"
        self._show(", ".join(part for part in (DONE, vertices, seconds) if part))

    def _show(self, text: str) -> None:
        from IPython.display import display

        self._updated = time.monotonic()
        value = "" if self._bar.share is None else f' value="{self._bar.share:.3f}"'
        shown = f'<progress max="1"{value} style="width: 20em; vertical-align: middle"></progress> '
        shown += f'<span style="font-family: monospace">{html.escape(text)}</span>'
        content = {"text/plain": text, "text/html": shown}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(content, raw=True)


class _LineDisplay(_Display):
    """Lines of text, for logs."""

    def __init__(self, bar: ProgressBar, stream: TextIO | None) -> None:
        super().__init__(bar)
        self._stream, self._has_told = stream, False

    def update(self) -> None:
        now, text = time.monotonic(), str(self._bar)
        if FIRST_RUN in text and not self._has_told:
            self._has_told = True
            print(f"compiling kernels, {FIRST_RUN}", file=self._stream, flush=True)
        elif now - self._updated >= LINE_INTERVAL:
            self._updated = now
            print(text, file=self._stream, flush=True)


def _is_notebook() -> bool:
    """Return whether output goes to the cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _working_seconds() -> float:
    """Return a time in seconds that stands still while kernels are compiled, which happens in the first run only."""
    from normalmesh.runtime.compilation import compilation_seconds

    return time.monotonic() - compilation_seconds()


def duration_text(seconds: float) -> str:
    """Return a duration in words: 8 s, 2 min 5 s, 1 h 10 min."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
