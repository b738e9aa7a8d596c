"""A terminal that remembers what is printed to it."""

from __future__ import annotations

import io
import sys


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def screen(self):
        """Return the visible lines after all carriage returns."""
        lines = [""]
        for character in self.getvalue():
            if character == "\r":
                column = 0
            elif character == "\n":
                lines.append("")
            else:
                column = 0 if not lines[-1] else column
                lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1 :]
                column += 1
        return [line.rstrip() for line in lines]


def with_terminal(monkeypatch):
    """Replace standard error with a terminal, and return it.

    This is not a fixture because pytest replaces the stream again before each test begins.
    """
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr("normalmesh.cli.progress_display.INTERVAL", 0.0)
    return made
