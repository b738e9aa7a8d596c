"""Test the progress bar in terminals, in notebooks, and where there is neither."""

import io
import re
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest

import normalmesh as nm
from normalmesh import Step
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.runtime import compilation
from normalmesh.runtime.kernels import kernel
from normalmesh.runtime.progress_bar import ProgressBar, duration_text, progress_shown
from terminal import TOKENS, with_terminal


class Clock:
    """A time that tests set, and the part of it that went into compilation."""

    def __init__(self, monkeypatch):
        self.now, self.compiled = 100.0, 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(compilation, "compilation_seconds", lambda: self.compiled)


def line_of(bar, terminal):
    bar._display._live.refresh()
    return terminal.screen()[-1]


def plain_lines(text):
    """Return all that was ever printed, without control sequences, in lines."""
    return re.split(r"[\r\n]", "".join(character for *_, character in TOKENS.findall(text)))


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (80, ["collapse", "25 %", "1 vertex", "1 min 30 s left"]),
        (50, ["collapse", "25 %", "1 min 30 s left"]),
        (30, ["collapse", "25 %"]),
    ],
)
def test_what_fits_is_shown(columns, shown, monkeypatch):
    terminal, clock = with_terminal(monkeypatch, columns), Clock(monkeypatch)
    bar = ProgressBar()
    bar(Step(0.0, "start"))
    clock.now += 30
    bar(Step(0.25, "collapse", 1))
    line = line_of(bar, terminal)
    bar.close()
    assert len(line) <= columns
    assert all(part in line for part in shown)
    assert terminal.screen() == [""]


@pytest.mark.parametrize("columns", [30, 40, 60, 80])
def test_figures_are_never_cut_off(columns, monkeypatch):
    terminal, clock = with_terminal(monkeypatch, columns), Clock(monkeypatch)
    bar = ProgressBar()
    bar(Step(0.0, "start"))
    clock.now += 30
    bar(Step(0.25, "12/40 a_long_name_of_a_file.png: collapse", 53613))
    line = line_of(bar, terminal)
    bar.close()
    assert len(line) <= columns
    assert line.count("…") == 1  # in the name
    assert "25 %" in line
    assert ("left" in line) == (" 1 min 30 s left" in line)
    # The last picture, before the line is removed, is as wide.
    assert all(len(each) <= columns for each in plain_lines(terminal.getvalue()))


def test_compilation_does_not_count_into_the_time_left(monkeypatch):
    clock = Clock(monkeypatch)
    bar = ProgressBar(stream=io.StringIO())
    bar(Step(0.0, "start"))
    clock.now, clock.compiled = 130.0, 28.0
    bar(Step(0.5, "collapse"))
    assert str(bar) == "collapse, 50 %, 2 s left"
    bar(Step(0.51, "collapse"))
    clock.now += 1
    assert str(bar) == "collapse, 51 %, 1 s left"


def test_a_kernel_that_compiles_is_shown_and_counted(monkeypatch):
    listener, event = compilation._Compilation(), SimpleNamespace(data={"dispatcher": kernel(lambda: None)})
    monkeypatch.setattr(compilation, "_compilation", listener)
    bar = ProgressBar(stream=io.StringIO())
    bar(Step(0.5, "collapse"))
    listener.on_start(event)
    bar.compilation(3, 40)
    assert str(bar) == "compiling kernels 3/40, first run only, 50 %"
    listener.on_start(event)  # a kernel that it calls
    time.sleep(0.02)
    listener.on_end(event)
    listener.on_end(event)
    assert str(bar) == "collapse, 50 %"
    assert 0.02 <= compilation.compilation_seconds() < 1


def test_lines_of_text_where_there_is_no_terminal(monkeypatch):
    clock, stream = Clock(monkeypatch), io.StringIO()
    bar = ProgressBar(stream=stream)
    for share in (0.0, 0.1, 0.2, 0.4):
        bar(Step(share, "collapse", 9))
        clock.now += 20
    bar(Step(1.0, "done", 9))
    assert stream.getvalue() == "collapse, 20 %, 9 vertices, 2 min 40 s left\n"


@pytest.mark.parametrize(
    "work",
    [
        lambda given, **options: nm.reconstruct(given, vertices=60, **options),
        lambda given, **options: nm.reconstruct_levels(given, [80, 60], **options),
        lambda given, **options: nm.reconstruct_within(given, max_angle=20, **options),
        lambda given, **options: nm.integrate(nm.decimate(given, vertices=60, **options), given, **options),
    ],
    ids=["reconstruct", "levels", "within", "steps"],
)
def test_true_shows_a_bar(work, monkeypatch):
    normal_map = sphere(48).normal_map
    terminal = with_terminal(monkeypatch)
    work(normal_map, progress=False)
    assert terminal.getvalue() == ""
    work(normal_map, progress=True)
    assert "\x1b[?25l" in terminal.getvalue()  # the cursor is hidden while there is a bar
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")
    assert terminal.screen() == [""]
    assert sys.stderr is terminal


@pytest.mark.parametrize("closed", [False, True])
def test_no_bar_without_a_standard_error(closed, monkeypatch):
    stream = io.StringIO() if closed else None
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_shown(True) as report:
        report(Step(0.0, "collapse"))
        report(Step(1.0, "done"))


def test_the_bar_is_removed_after_an_error(monkeypatch):
    terminal = with_terminal(monkeypatch)

    def work():
        with progress_shown(True) as report:
            report(Step(0.5, "collapse"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert terminal.screen() == [""]
    assert sys.stderr is terminal


def test_a_bar_in_a_notebook(monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = """
        import sys
        sys.modules["ipywidgets"] = None  # not needed
        import normalmesh as nm
        from normalmesh.evaluation.synthetic.analytic import sphere
        surface = nm.reconstruct(sphere(48).normal_map, vertices=60, progress=True)
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(code))])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data"
    assert output.data["text/plain"].startswith("done, 60 vertices, ")
    assert '<progress max="1" value="1.000"' in output.data["text/html"]


def test_durations():
    assert [duration_text(seconds) for seconds in (0.2, 59.4, 125, 4230)] == ["1 s", "59 s", "2 min 5 s", "1 h 10 min"]
