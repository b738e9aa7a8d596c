"""A terminal that remembers what is printed to it."""

from __future__ import annotations

import io
import re
import sys

#: Control sequences, of which those that move the cursor or erase a line are obeyed, and single characters.
TOKENS = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\s\S])")


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def screen(self):
        """Return the visible lines, without colours."""
        return screen(self.getvalue())


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows after a text with control sequences, without empty ones at the end."""
    lines, row, column = [""], 0, 0
    for number, command, character in TOKENS.findall(text):
        if command == "A":
            row -= int(number or 1)
        elif command == "K":
            lines[row] = ""
        elif character == "\r":
            column = 0
        elif character == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif character:
            lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            column += 1
    return "\n".join(line.rstrip() for line in lines).rstrip("\n").split("\n")


def with_terminal(monkeypatch, columns=80, stream="stderr"):
    """Replace a standard stream with a terminal, and return it.

    This is not a fixture because pytest replaces the stream again before each test begins.
    """
    made = Terminal()
    monkeypatch.setattr(sys, stream, made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    return made
