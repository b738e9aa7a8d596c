"""Test the messages and the progress line of a command."""

import io
import sys

import pytest

from normalmesh import Step
from normalmesh.cli import interruption
from normalmesh.cli.console import Console, progress_line_removed
from normalmesh.cli.progress_display import duration_text, step_text
from terminal import with_terminal


def test_progress_line(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    console.progress(Step(0.0, "start"))
    console.progress(Step(0.25, "collapse", 1234567))
    assert terminal.screen() == ["collapse   25 %, 1234567 vertices"]
    console.notice("compiling")
    console.progress(Step(0.5, "align", 9))
    assert terminal.screen() == ["compiling", "align      50 %, 9 vertices"]
    console.progress(Step(1.0, "done", 9))
    assert terminal.screen() == ["compiling", ""]


def test_quiet_is_silent(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console(quiet=True)
    console.progress(Step(0.5, "collapse", 9))
    console.notice("compiling")
    assert terminal.getvalue() == ""


def test_no_line_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    console = Console()
    console.progress(Step(0.5, "collapse", 9))
    console.notice("compiling")
    assert stream.getvalue() == "compiling\n"


def test_the_line_is_erased_after_an_error(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    console.progress(Step(0.5, "collapse", 9))
    with pytest.raises(ZeroDivisionError), progress_line_removed(console):
        raise ZeroDivisionError
    assert terminal.screen() == [""]


def test_the_line_is_erased_after_a_signal(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    with progress_line_removed(console):
        console.progress(Step(0.5, "collapse", 9))
        interruption._print_last_line("interrupted")
    assert terminal.screen() == ["normalmesh: interrupted, nothing written", ""]


def test_time_left():
    assert step_text(Step(0.25, "solve", 10), 30.0) == "solve      25 %, 10 vertices, 1 min 30 s left"
    assert step_text(Step(0.01, "noise"), 30.0) == "noise       1 %"
    assert [duration_text(seconds) for seconds in (0.2, 59.4, 125, 4230)] == ["1 s", "59 s", "2 min 5 s", "1 h 10 min"]
