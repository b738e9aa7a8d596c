"""Test benchmarks: resuming, tables, and each benchmark on a tiny case."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from normalmesh import NormalMeshError, Orthographic, ScreenMesh, Surface
from normalmesh.cli import normalmesh
from normalmesh.cli.bench import BENCHMARKS
from normalmesh.paper.benchmark import Benchmark, Task, run_benchmark
from normalmesh.paper.density import vertex_density
from normalmesh.paper.sources import Source, chosen, own_sources
from normalmesh.paper.tables import Table, compared, figure, geometric_mean, mean_of

SETTINGS = {"data": "made up"}


def counting_benchmark(calls, fail_at=None, error=KeyboardInterrupt, count=4):
    """Return a benchmark of ``count`` tasks that records which of them run."""

    def run(number):
        if number == fail_at:
            raise error
        calls.append(number)
        return [{"method": method, "mae": number / 3} for method in ("a", "b")]

    def tables(rows):
        return [Table("Numbers", ["", "mae"], [[str(row["number"]), row["mae"]] for row in rows])]

    return Benchmark(
        "counting",
        "numbers",
        10,
        ("number",),
        lambda size: [],
        lambda sources, folder: [Task((f"{k}.0",), lambda k=k: run(k)) for k in range(count)],
        tables,
        lambda rows, folder: (folder / "drawn").write_text(str(len(rows))),
    )


class TestResuming:
    def test_resumes_after_an_interruption(self, tmp_path):
        calls, lines = [], []
        with pytest.raises(KeyboardInterrupt):
            run_benchmark(counting_benchmark(calls, fail_at=2), [], tmp_path, SETTINGS)
        assert calls == [0, 1]
        text = run_benchmark(counting_benchmark(calls), [], tmp_path, SETTINGS, report=lines.append)
        assert calls == [0, 1, 2, 3]
        assert "2 of 4 tasks are already done" in lines[0]
        assert lines[-1] == "[4/4] 3.0"
        assert run_benchmark(counting_benchmark(calls), [], tmp_path, SETTINGS) == text
        assert len(calls) == 4
        assert (tmp_path / "drawn").read_text() == "8"
        whole = run_benchmark(counting_benchmark([]), [], tmp_path / "other", SETTINGS)
        assert whole == text, "an interruption changed the result"

    def test_an_interrupted_restart_discards_old_rows(self, tmp_path):
        run_benchmark(counting_benchmark([]), [], tmp_path, SETTINGS)
        with pytest.raises(KeyboardInterrupt):
            run_benchmark(counting_benchmark([], fail_at=0), [], tmp_path, {"data": "other"}, restart=True)
        calls = []
        run_benchmark(counting_benchmark(calls), [], tmp_path, {"data": "other"})
        assert calls == [0, 1, 2, 3]

    def test_one_failing_case_does_not_stop_the_others(self, tmp_path):
        calls, lines = [], []
        bad = counting_benchmark(calls, fail_at=1, error=NormalMeshError("b.png: is damaged"))
        text = run_benchmark(bad, [], tmp_path, SETTINGS, report=lines.append)
        assert calls == [0, 2, 3]
        assert "- 1.0: b.png: is damaged" in text
        assert lines[1].startswith("[2/4] 1.0 failed: b.png: is damaged")
        repaired = run_benchmark(counting_benchmark(calls), [], tmp_path, SETTINGS)
        assert calls == [0, 2, 3, 1]
        assert "Failed" not in repaired

    def test_nothing_succeeded(self, tmp_path):
        benchmark = counting_benchmark([], fail_at=0, error=NormalMeshError("bad"), count=1)
        with pytest.raises(NormalMeshError, match=r"no task of counting succeeded; 0\.0: bad"):
            run_benchmark(benchmark, [], tmp_path, SETTINGS)

    def test_rows_are_exact(self, tmp_path):
        run_benchmark(counting_benchmark([]), [], tmp_path, SETTINGS)
        rows = list(csv.DictReader((tmp_path / "counting.csv").open()))
        assert [float(row["mae"]) for row in rows] == [k / 3 for k in (0, 0, 1, 1, 2, 2, 3, 3)]

    def test_other_settings_are_not_mixed(self, tmp_path):
        run_benchmark(counting_benchmark([]), [], tmp_path, SETTINGS)
        with pytest.raises(NormalMeshError, match="with data made up instead of other; discard them with --restart"):
            run_benchmark(counting_benchmark([]), [], tmp_path, {"data": "other"})
        calls = []
        run_benchmark(counting_benchmark(calls), [], tmp_path, {"data": "other"}, restart=True)
        assert calls == [0, 1, 2, 3]

    def test_versions_and_machine_are_recorded(self, tmp_path):
        text = run_benchmark(counting_benchmark([]), [], tmp_path, SETTINGS)
        for word in ("data made up", "normalmesh 0", "python 3", "numba", "processor", "threads"):
            assert word in text
        assert text == (tmp_path / "counting.md").read_text()
        assert json.loads((tmp_path / "counting.json").read_text())["bench"] == "counting"


class TestTables:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.0, "0"),
            (np.nan, "–"),
            (1.2345, "1.23"),
            (123.4, "123"),
            (12345.6, "12346"),
            (0.00123, "0.00123"),
            (4e-8, "4.00e-08"),
        ],
    )
    def test_figures(self, value, text):
        assert figure(value) == text

    def test_markdown(self):
        text = Table("T", ["name", "x"], [["a", 1.0], ["long", 0.5]], ["it is so"]).markdown()
        assert text == "## T\n\n| name | x     |\n|------|-------|\n| a    | 1.00  |\n| long | 0.500 |\n\n- it is so"

    def test_summaries(self):
        rows = [
            {"name": name, "method": method, "mae": value}
            for name, method, value in [("p", "a", 1.0), ("p", "b", 2.0), ("q", "a", 4.0), ("q", "b", 2.0)]
        ]
        assert mean_of(rows, "mae", method="a") == 2.5
        assert np.isnan(mean_of(rows, "mae", method="c"))
        assert compared(rows, "mae", "a", "b", by=("name",)) == (
            "a / b: geometric mean 1.00, below 1 in 1 of 2, from 0.500 to 2.00"
        )
        assert compared(rows, "mae", "a", "c", by=("name",)) == "a and c cannot be compared"
        assert geometric_mean([1, 4, np.nan]) == pytest.approx(2)


def test_sources():
    sources = own_sources(64)
    assert {source.camera for source in sources} == {"orthographic", "perspective"}
    assert [source.camera for source in chosen(sources, ["medal*"])] == ["orthographic", "perspective"]
    with pytest.raises(NormalMeshError, match=r"no case matches bear\*; the cases are: medallion, ridges"):
        chosen(sources, ["bear*"])
    loads = []
    source = Source("a", "a", "orthographic", lambda: loads.append(1) or "case")
    assert (source.load(), source.load(), loads) == ("case", "case", [1])


def test_density_of_the_full_mesh_is_one_vertex_per_pixel():
    mask = np.ones((40, 60), bool)
    mesh = ScreenMesh.from_mask(mask)
    surface = Surface.from_unknown(mesh, np.zeros(len(mesh.vertices)), Orthographic(), mask.shape)
    mask[:, :20] = False
    density = vertex_density(surface, mask)
    assert np.isnan(density[:, :20]).all()
    np.testing.assert_allclose(density[5:-5, 30:-5], 100, rtol=0.05)


class TestCommand:
    @pytest.fixture(autouse=True)
    def needs_plots(self):
        pytest.importorskip("matplotlib")

    def run(self, *arguments):
        return CliRunner().invoke(normalmesh, ["bench", *map(str, arguments)], catch_exceptions=False)

    # The maps are too small for some counts.
    @pytest.mark.parametrize("name", BENCHMARKS)
    def test_each_writes_table_csv_and_pictures(self, name, tmp_path, monkeypatch):
        if name == "runtime":
            monkeypatch.setattr("normalmesh.paper.run_times.MIN_SIDE", 64)
        result = self.run(name, "--size", 64, "--only", "medallion*", "--output", tmp_path)
        assert result.exit_code == 0
        folder = tmp_path / name
        assert result.stdout.strip() == (folder / f"{name}.md").read_text().strip()
        assert f"# {name}" in result.stdout
        assert "[1/" in result.stderr
        assert {row["name"].split()[0] for row in csv.DictReader((folder / f"{name}.csv").open())} == {"medallion"}
        pictures = list(folder.glob("*.png"))
        assert pictures
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
        again = self.run(name, "--size", 64, "--only", "medallion*", "--output", tmp_path)
        assert "tasks are already done" in again.stderr
        assert again.stdout == result.stdout

    def test_a_folder_without_a_data_set(self, tmp_path):
        result = self.run("accuracy", "--data", tmp_path, "--output", tmp_path / "out")
        assert result.exit_code == 1
        assert "--data" in result.stderr
        assert not (tmp_path / "out").exists()

    def test_unknown_benchmark(self):
        assert self.run("speed").exit_code == 2


def test_all_benchmarks_are_listed():
    folder = Path(__file__).parents[2] / "src/normalmesh/paper"
    defined = {path.stem for path in folder.glob("*.py") if "\nBENCHMARK = " in path.read_text()}
    assert defined == set(BENCHMARKS.values())
