"""Test ``normalmesh reconstruct`` on several inputs."""

import json
import math
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from click.testing import CliRunner

from invocation import write_medallion
from normalmesh.cli import normalmesh
from normalmesh.cli.console import Console
from normalmesh.cli.job import jobs_of
from normalmesh.cli.run_summary import RunSummary, table_of
from normalmesh.cli.settings import Settings
from normalmesh.runtime.monitor import Step
from terminal import with_terminal


def reconstruct(*arguments):
    return CliRunner().invoke(normalmesh, ["reconstruct", *map(str, arguments)])


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Return a folder of three maps of 64 × 64 pixels, of which the second is truncated."""
    folder = tmp_path_factory.mktemp("maps")
    for name in ("a", "b", "c"):
        write_medallion(folder / f"{name}.png", 64)
    (folder / "b.png").write_bytes((folder / "b.png").read_bytes()[:2000])
    return folder


@pytest.fixture
def here(maps, tmp_path, monkeypatch):
    """Copy the maps to a temporary folder, make it the current one, and return it."""
    for path in maps.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_damaged_file_does_not_stop_the_others(here):
    result = reconstruct("*.png", "--vertices", 60)
    assert result.exit_code == 1
    titles, *rows = (line.split() for line in result.stdout.splitlines())
    assert titles == ["input", "vertices", "angle", "seconds", "wrote"]
    assert [row[:2] + row[4:] for row in rows] == [["a.png", "60", "a.glb"], ["c.png", "60", "c.glb"]]
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    assert len(errors) == 1
    assert errors[0].startswith("normalmesh: error: b.png: cannot be read as PNG")
    assert result.stderr.splitlines()[-1] == "2 of 3 reconstructed, 1 failed"
    assert {path.name for path in here.glob("*.glb")} == {"a.glb", "c.glb"}


def test_the_output_folder_is_created(here):
    result = reconstruct("a.png", "c.png", "-o", "deep/out", "--vertices", 300, "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert {path.name for path in Path("deep/out").iterdir()} == {"a.glb", "c.glb"}
    single = reconstruct("a.png", "-o", "deep", "--vertices", 60)
    assert single.exit_code == 0
    assert Path("deep/a.glb").exists()


def test_json_has_one_line_per_input(here):
    result = reconstruct("?.png", "--vertices", 60, "--json", "-q")
    assert result.exit_code == 1
    first, broken, last = map(json.loads, result.stdout.splitlines())
    assert [first["input"], broken["input"], last["input"]] == ["a.png", "b.png", "c.png"]
    assert first["outputs"] == ["a.glb"]
    assert first["size"] == [64, 64]
    assert first["vertices"] == 60
    assert first["compression"] == pytest.approx(1 - 60 / first["foreground"])
    assert 0 < first["mae"] < 30
    assert 0 < first["uncertainty"]["median"] < first["uncertainty"]["high"]
    assert first["uncertainty"]["units"] == "px"
    assert {"read", "collapse", "solve", "write", "total"} <= first["seconds"].keys()
    assert first["error"] is None
    assert broken["outputs"] == []
    assert broken["vertices"] is None
    assert "damaged" in broken["error"]


def test_masks_by_the_name_of_the_input(here):
    for name, columns in (("a", 20), ("c", 30)):
        mask = np.zeros((64, 64), np.uint8)
        mask[20:40, 20 : 20 + columns] = 255
        Path(f"{name}_mask.tif").write_bytes(imagecodecs.tiff_encode(mask))
    result = reconstruct("a.png", "c.png", "--mask", "{stem}_mask.tif", "--vertices", 30, "--json")
    assert [json.loads(line)["foreground"] for line in result.stdout.splitlines()] == [400, 600]


def test_json_has_null_for_numbers_that_are_not_finite():
    summary = RunSummary(Path("a.png"))
    summary.figures["tolerance"] = {"reached": {"max_error": math.nan}}
    found = json.loads(summary.as_json(), parse_constant=pytest.fail)
    assert found["tolerance"] == {"reached": {"max_error": None}}


def test_warnings_name_their_input(here):
    image = np.full((32, 32, 3), (128, 128, 255), np.uint8)
    image[4, 4] = (128, 200, 10)
    for name in ("flat1.png", "flat2.png"):
        Path(name).write_bytes(imagecodecs.png_encode(image))
    result = reconstruct("flat?.png", "--vertices", 20, "--json", "-q")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert [line[:35] for line in lines] == [f"normalmesh: warning: flat{k}.png: 1 n" for k in (1, 2)]
    assert all(len(json.loads(line)["warnings"]) == 1 for line in result.stdout.splitlines())


def test_unexpected_errors_do_not_stop_the_others(here, monkeypatch):
    import normalmesh as package

    work = package.reconstruct

    def broken(normal_map, **options):
        if not broken.done:
            broken.done = True
            raise RuntimeError("a wheel came off\nand rolled away")
        return work(normal_map, **options)

    broken.done = False
    monkeypatch.setattr(package, "reconstruct", broken)
    result = reconstruct("a.png", "c.png", "--vertices", 60)
    assert result.exit_code == 1
    assert "normalmesh: internal error: a.png: RuntimeError: a wheel came off; --debug shows where\n" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout.splitlines()[1].startswith("c.png        60")
    broken.done = False
    assert "Traceback" in reconstruct("a.png", "c.png", "--vertices", 60, "--debug").stderr


def test_dry_run_of_many_writes_nothing(here):
    result = reconstruct("*.png", "-o", "out", "--dry-run", "--lod", "10%,50")
    assert result.exit_code == 1
    assert result.stdout.count("64 × 64") == 2
    assert result.stdout.splitlines()[1].startswith("a.png ")
    assert ", 50 " in result.stdout
    assert not Path("out").exists()
    objects = [json.loads(line) for line in reconstruct("*.png", "--dry-run", "--json").stdout.splitlines()]
    assert [each["error"] is None for each in objects] == [True, False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], ". is a folder: give its normal maps, such as '*.png'"),
        (["x*.png"], "no file matches 'x*.png'"),
        (
            ["a.png", "c.png", "-o", "out.glb"],
            "out.glb is not a folder: -o must be a folder, or contain {stem}, if there are 2 inputs",
        ),
        (["a.png", "sub/a.png", "-o", "out"], "would both be written to"),
        (["a.png", "A.png", "-o", "out"], "would both be written to"),
        (["a.png", "c.png", "--jumps", "jumps.png"], "--jumps must contain {stem}"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_rejected_before_work_begins(arguments, message, here):
    result = reconstruct(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("out").exists()


def test_inputs_are_sorted_and_unique(here):
    Path("c.preview.png").write_bytes(b"")
    jobs = jobs_of(["c.png", "*.png", "./a.png"], [], {}, Settings())
    assert [str(job.source) for job in jobs] == ["c.png", "a.png", "b.png"]
    Path("n[1].png").write_bytes(Path("a.png").read_bytes())
    assert [str(job.source) for job in jobs_of(["n[1].png"], [], {}, Settings())] == ["n[1].png"]


def test_one_progress_line_for_all_inputs(monkeypatch):
    terminal = with_terminal(monkeypatch)
    console = Console()
    second = console.part(1, 4, "b.png")
    second(Step(0.5, "collapse", 99))
    console.progress._display._live.refresh()
    (line,) = terminal.screen()
    console.progress.clear()
    assert line.startswith("2/4 b.png: collapse ")
    assert line.endswith("38 % 99 vertices")


def test_a_missed_tolerance_is_no_failure(here):
    missed = reconstruct("a.png", "c.png", "--max-angle", 0.01, "-o", "out")
    assert missed.exit_code == 3
    assert {path.name for path in Path("out").iterdir()} == {"a.glb", "c.glb"}
    assert missed.stderr.count("is out of reach") == 2
    assert missed.stderr.splitlines()[-1] == "2 of 2 reconstructed, 2 beyond the tolerance"
    failed = reconstruct("a.png", "b.png", "--max-angle", 0.01, "-o", "out")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1] == "1 of 2 reconstructed, 1 failed, 1 beyond the tolerance"


@pytest.mark.parametrize("columns", [80, 40])
def test_the_table_fits_on_the_terminal(columns, here, monkeypatch):
    terminal = with_terminal(monkeypatch, columns, "stdout")
    with_terminal(monkeypatch, columns)
    sources = [Path("maps") / ("[red]" + "long_name" * 4 + f"{k}.png") for k in range(2)]
    table = table_of(sources)
    for source in sources:
        table.print_row([str(source), "60", "14.59°", "0.2", source.with_suffix(".glb").name])
    lines = terminal.screen()
    assert columns == 40 or max(map(len, lines)) <= columns  # there, names are not broken
    assert "maps/[red]long_name" in "".join(lines)
    assert sum(line.startswith("input") for line in lines) == (1 if columns == 80 else 2)
