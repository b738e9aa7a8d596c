"""The scoreboard: how two runs compare, what is kept, and what is skipped. Nothing is measured here."""

import json

import pytest
from benchmarks.scoreboard import __main__ as command
from benchmarks.scoreboard import accuracy, appearance
from benchmarks.scoreboard.figures import Better, Figure, Skipped, verdict
from benchmarks.scoreboard.history import Run, keep, last_kept, read_runs
from benchmarks.scoreboard.table import summary, table


def run_of(commit: str, *figures: Figure) -> Run:
    return Run(commit, "2030-01-01", "a machine", {}, {figure.name: figure.kept() for figure in figures})


@pytest.mark.parametrize(
    ("better", "before", "now", "expected"),
    [
        (Better.LOWER, 1.0, 0.9, "better"),
        (Better.LOWER, 1.0, 1.1, "worse"),
        (Better.LOWER, 1.0, 1.01, "same"),
        (Better.LOWER, 0.0, 0.0, "same"),
        (Better.LOWER, 0.0, 0.1, "worse"),
        (Better.HIGHER, 1.0, 1.1, "better"),
        (Better.HIGHER, 1.0, 0.9, "worse"),
        (Better.HIGHER, 1.0, 0.0, "worse"),
        (Better.NEAR_ONE, 1.6, 1.1, "better"),
        (Better.NEAR_ONE, 0.5, 0.9, "better"),
        (Better.NEAR_ONE, 1.1, 0.5, "worse"),
        (Better.NEAR_ONE, 0.8, 1.25, "same"),
        (Better.NEITHER, 1.0, 5.0, ""),
    ],
)
def test_direction(better, before, now, expected):
    kept = Figure("figure", before, "s", better, 0.02).kept()
    assert verdict(Figure("figure", now, "s", better, 0.02), kept) == expected


def test_larger_noise_of_two_runs_counts():
    figure, kept = Figure("made", 1.0, "mm", noise=0.01), Figure("made", 1.2, "mm", noise=0.3).kept()
    assert verdict(figure, kept) == "same"
    assert verdict(figure, {**kept, "noise": 0.01}) == "better"


def test_kept_runs_are_read_back_and_one_commit_is_one_run(tmp_path):
    path = tmp_path / "runs.json"
    assert read_runs(path) == []
    keep(run_of("aaa", Figure("speed", 3.0, "s"), Figure("made", 0.123456, "mm", note="0.1–0.2")), path)
    keep(run_of("bbb", Figure("speed", 2.0, "s")), path)
    keep(run_of("bbb", Figure("memory", 40.0, "B")), path)
    runs = read_runs(path)
    assert [run.commit for run in runs] == ["aaa", "bbb"]
    assert set(runs[1].figures) == {"speed", "memory"}
    assert runs[0].figures["made"] == {"value": 0.1235, "noise": 0.01, "note": "0.1–0.2"}
    assert '"made": { "value": 0.1235, "noise": 0.01, "note": "0.1–0.2" }' in path.read_text()
    # A figure that the last run lacks is compared with an earlier one.
    assert last_kept(runs, "made")[0] == "aaa"
    assert last_kept(runs, "speed")[0] == "bbb"
    assert last_kept(runs, "looks") is None


def test_table_names_what_got_worse():
    runs = [run_of("aaa", Figure("speed", 3.0, "s"), Figure("memory", 40.0, "B"))]
    figures = [Figure("speed", 4.5, "s"), Figure("memory", 40.1, "B"), Figure("looks", 1.0, "°")]
    speed, memory, looks = table(figures, runs).splitlines()[2:]
    assert "+50.0%" in speed
    assert "worse" in speed
    assert "aaa" in speed
    assert "same" in memory
    assert "new" in looks
    assert summary(figures, runs) == "0 better, 1 worse, 1 same; worse: speed"


@pytest.mark.parametrize("group", [accuracy.reference, accuracy.thresholds, accuracy.diligent])
def test_missing_cases_are_skipped_and_named(group, tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "CASES", tmp_path)
    monkeypatch.setattr(accuracy, "case_names", lambda: ["sphere512"])
    rows = list(group())
    assert rows
    assert all(isinstance(row, Skipped) for row in rows)
    assert any("is not on this machine" in row.reason for row in rows)


def test_looks_need_the_shared_cases(monkeypatch):
    monkeypatch.setattr(appearance, "map_names", list)
    assert list(appearance.looks()) == [Skipped("the shared cases are not on this machine")]


def test_command_says_what_was_skipped_and_keeps_nothing_that_failed(tmp_path, monkeypatch, capsys):
    def rows_of(collect, name, threads):
        if name == "speed":
            raise RuntimeError("broken")
        return [Figure("MAE", 0.75, "×"), Skipped("a case is not on this machine")]

    path = tmp_path / "runs.json"
    monkeypatch.setattr(command, "in_own_process", rows_of)
    monkeypatch.setattr(command, "new_run", lambda: run_of("aaa"))
    monkeypatch.setattr(command, "read_runs", lambda: read_runs(path))
    monkeypatch.setattr(command, "keep", lambda run: keep(run, path))
    monkeypatch.setattr("sys.argv", ["scoreboard", "--keep", "--only", "reference", "speed"])
    assert command.main() == 1
    assert "skipped: a case is not on this machine" in capsys.readouterr().out
    assert not path.exists()
    monkeypatch.setattr("sys.argv", ["scoreboard", "--keep", "--only", "reference"])
    assert command.main() == 0
    assert json.loads(path.read_text())[0]["groups"]["reference"]["skipped"] == ["a case is not on this machine"]
