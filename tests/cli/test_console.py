"""Test the messages of a command, and the progress bar below them."""

import io
import logging
import sys

import pytest

from normalmesh import Step
from normalmesh.cli import interruption
from normalmesh.cli.console import Console
from normalmesh.cli.printing import field_text, print_field, print_markdown, print_text
from terminal import with_terminal


def drawn(console, terminal):
    """Return the visible lines after the bar is drawn."""
    console.progress._display._live.refresh()
    return terminal.screen()


def test_messages_are_printed_above_the_bar(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    with console.running():
        console.progress(Step(0.25, "collapse", 1234))
        assert "1234 vertices" in drawn(console, terminal)[-1]
        console.notice("compiling")
        lines = drawn(console, terminal)
        assert lines[0] == "compiling"
        assert lines[1].startswith("collapse")
        print("by another library", file=sys.stderr)
        assert drawn(console, terminal)[:2] == ["compiling", "by another library"]
    assert terminal.screen() == ["compiling", "by another library"]


def test_quiet_is_silent(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console(quiet=True)
    console.progress(Step(0.5, "collapse", 9))
    console.notice("compiling")
    assert terminal.getvalue() == ""


def test_no_bar_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    console = Console()
    console.progress(Step(0.5, "collapse", 9))
    console.notice("a [bold] name")
    assert stream.getvalue() == "a [bold] name\n"


def test_the_bar_is_erased_after_an_error(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    console.progress(Step(0.5, "collapse", 9))
    drawn(console, terminal)
    with pytest.raises(ZeroDivisionError), console.running():
        raise ZeroDivisionError
    assert terminal.screen() == [""]


def test_the_bar_does_not_return_after_a_signal(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    with console.running():
        console.progress(Step(0.5, "collapse", 9))
        drawn(console, terminal)
        interruption._print_last_line("interrupted")
        console.progress(Step(0.6, "collapse", 9))
    assert terminal.screen() == ["normalmesh: interrupted, nothing written"]
    assert terminal.getvalue().count("\x1b[?25h") == terminal.getvalue().count("\x1b[?25l")  # the cursor is shown


def test_long_fields_are_wrapped_to_their_column(monkeypatch):
    terminal = with_terminal(monkeypatch, 40, "stdout")
    print_field("coverage", "99.67 % of the foreground, 0.37 % outside it\nmore")
    assert terminal.screen() == [
        "coverage     99.67 % of the foreground,",
        "             0.37 % outside it",
        "             more",
    ]


def test_names_are_not_markup_and_stay_in_one_piece(monkeypatch):
    terminal = with_terminal(monkeypatch, 40, "stdout")
    name = "maps/[bold]a_long_name_that_does_not_fit_on_a_line:smile:.png"
    print_field("wrote", name)
    print_text(f"normalmesh: error: {name}")
    assert terminal.screen() == [f"wrote        {name}", f"normalmesh: error: {name}"]


def test_no_colours_if_not_wanted(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = with_terminal(monkeypatch)
    print_text("normalmesh: warning: careful", err=True)
    assert "\x1b[33m" not in terminal.getvalue()
    monkeypatch.delenv("NO_COLOR")
    print_text("normalmesh: warning: careful", err=True)
    assert "\x1b[33m" in terminal.getvalue()


def test_plain_text_elsewhere(capsys):
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    print_markdown(table)
    print_text(field_text("needs", "x" * 100))
    assert capsys.readouterr().out == f"{table}\nneeds        {'x' * 100}\n"


def test_verbose_shows_the_log(capsys):
    for verbose in (False, True):
        console = Console(verbose=verbose)
        with console.running():
            logging.getLogger("normalmesh.jumps").info("3 lines of jumps")
    assert capsys.readouterr().err == "log          3 lines of jumps\n"
