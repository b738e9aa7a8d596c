"""Print text, figures and tables: laid out for a terminal, or as plain lines; figures also as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from normalmesh.errors import escaped
from normalmesh.runtime.progress_bar import is_terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

#: Columns of a label and of the space after it.
LABEL_COLUMNS = 13
#: Least widths of the first and of the last column of a table.
MIN_FIRST, MIN_LAST = 16, 8
#: Colours of the words that begin a message.
STYLES = {"normalmesh: error:": "bold red", "normalmesh: internal error:": "bold red", "normalmesh: warning:": "yellow"}


def print_text(text: str, err: bool = False) -> None:
    """Print lines of text. On a terminal, long fields are wrapped to the second column, and labels are bold."""
    text = escaped(text)
    if (console := _terminal(err)) is None:
        click.echo(text, err=err)
        return
    for line in text.split("\n"):
        # What is wrapped here cannot be copied in one piece: that is left to the terminal where a word is too long.
        console.print(_laid_out(line, console.width), soft_wrap=not _is_wrapped(line, console.width))


def print_field(label: str, text: str) -> None:
    """Print a label and a text in two columns. Further lines of the text are indented to the second column."""
    print_text(field_text(label, text))


def field_text(label: str, text: str) -> str:
    """Return a label and a text in two columns."""
    return f"{label:<{LABEL_COLUMNS}}" + f"\n{'':<{LABEL_COLUMNS}}".join(text.splitlines())


class PrintedTable:
    """A table whose rows are printed one by one, as soon as they are known.

    Widths of columns are in characters, negative if they are aligned to the right. The last column takes the rest.
    """

    def __init__(self, titles: Sequence[str], widths: Sequence[int]) -> None:
        self._titles, self._widths = titles, [*widths, 0]
        self._has_titles = False

    def print_row(self, cells: Sequence[str]) -> None:
        """Print a row, below the titles if it is the first one. On a narrow terminal, each row becomes some fields."""
        console, is_first = _terminal(), not self._has_titles
        self._has_titles = True
        rows = [[escaped(cell) for cell in row] for row in ([self._titles, cells] if is_first else [cells])]
        first, *middle, _ = self._widths
        others = sum(abs(width) + 2 for width in middle) + 2
        if console is None:
            click.echo("\n".join(map(self._line, rows)))
        elif console.width < min(first, MIN_FIRST) + others + MIN_LAST:
            fields = "\n".join(map(field_text, self._titles, cells))
            print_text(fields if is_first else f"\n{fields}")
        else:
            first = min(first, console.width - others - MIN_LAST)
            console.print(_grid(rows, [first, *middle, console.width - first - others], is_first))

    def _line(self, cells: Sequence[str]) -> str:
        pairs = zip(cells, self._widths, strict=True)
        return "  ".join(
            f"{cell:>{-width}}" if width < 0 else f"{cell:<{width or 1}}" for cell, width in pairs
        ).rstrip()


def _grid(rows: Sequence[Sequence[str]], widths: Sequence[int], has_titles: bool) -> Table:
    """Return rows in columns for a terminal. What is too long is folded, or cut off in the last column."""
    from rich.table import Column, Table
    from rich.text import Text

    columns = [Column(width=abs(each), justify="right" if each < 0 else "left", overflow="fold") for each in widths]
    columns[-1].no_wrap, columns[-1].overflow = True, "ellipsis"
    table = Table.grid(*columns, padding=(0, 2, 0, 0))
    for number, row in enumerate(rows):
        table.add_row(*map(Text, row), style="bold" if has_titles and number == 0 else None)
    return table


def print_markdown(text: str) -> None:
    """Print Markdown: its tables are drawn on a terminal that is wide enough, and remain Markdown elsewhere."""
    text = escaped(text)
    console = _terminal()
    if console is None or max(map(len, text.splitlines())) > console.width:
        click.echo(text)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text))


def print_figures(figures: dict[str, Any], fields: Callable[[], dict[str, str]], as_json: bool) -> None:
    """Print figures as a JSON object, or as texts by label, in two columns."""
    if as_json:
        click.echo(json_text(figures))
        return
    for label, text in fields().items():
        print_field(label, text)


def size_text(shape: tuple[int, int], foreground: int, of: str = "foreground") -> str:
    """Return the size of an image of rows and columns, and its foreground, as text."""
    share = 100 * foreground / (shape[0] * shape[1])
    return f"{shape[1]} × {shape[0]} pixels, {share:.1f} % {of} ({foreground})"


def json_text(figures: dict[str, Any]) -> str:
    """Return a JSON object on one line. Numbers that are not finite become null."""
    return json.dumps(_serialisable(figures), allow_nan=False)


def _serialisable(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _serialisable(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_serialisable(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _terminal(err: bool = False) -> Console | None:
    """Return a console for standard output or standard error; None if that is not a terminal."""
    stream = sys.stderr if err else sys.stdout
    if not is_terminal(stream):
        return None
    from rich.console import Console

    return Console(file=stream, highlight=False)


def _is_field(line: str) -> bool:
    return line[LABEL_COLUMNS - 2 : LABEL_COLUMNS] == "  " and bool(line[LABEL_COLUMNS:].strip())


def _is_wrapped(line: str, columns: int) -> bool:
    """Return whether a line is a field that does not fit on the terminal, but whose words do."""
    return _is_field(line) and len(line) > columns and max(map(len, line.split())) <= columns - LABEL_COLUMNS


def _laid_out(line: str, columns: int) -> RenderableType:
    from rich.table import Column, Table
    from rich.text import Text

    if _is_wrapped(line, columns):
        field = Table.grid(Column(width=LABEL_COLUMNS), Column())
        field.add_row(Text(line[:LABEL_COLUMNS].rstrip(), "bold"), Text(line[LABEL_COLUMNS:]))
        return field
    text = Text(line)
    if _is_field(line):
        text.stylize("bold", 0, LABEL_COLUMNS)
    for beginning, style in STYLES.items():
        if line.startswith(beginning):
            text.stylize(style, 0, len(beginning))
    return text
