"""Test ``normalmesh evaluate``: it prints the figures of the library for files."""

import json

import imagecodecs
import numpy as np
import pytest

import normalmesh as nm
from invocation import SIZE, invoke, medallion, messages, succeed, write_medallion

NAMES = ("rmse", "made", "mae", "vertices", "compression", "covered", "spilled")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with normals, their true depth, and a reconstruction as a mesh and as a depth map."""
    folder = tmp_path_factory.mktemp("made")
    normal_map = nm.read_normal_map(write_medallion(folder / "n.png"))
    surface = nm.reconstruct(normal_map, compression=0.95)
    surface.save(folder / "s.ply")
    np.save(folder / "s.npy", surface.depth_map())
    np.save(folder / "truth.npy", medallion().height)
    return folder


def figures(*arguments):
    return json.loads(succeed("evaluate", *arguments, "--json").stdout)


def expected(result, folder, depth):
    found = nm.evaluate(result, nm.read_normal_map(folder / "n.png"), depth)
    return {name: pytest.approx(getattr(found, name)) for name in NAMES}


@pytest.mark.parametrize("result", ["s.ply", "s.npy"])
def test_figures_are_those_of_the_library(result, made):
    if result.endswith("ply"):
        pytest.importorskip("embreex")
    found = figures(made / result, "--normals", made / "n.png", "--truth", made / "truth.npy")
    assert {name: found[name] for name in NAMES} == expected(made / result, made, medallion().height)
    assert found["units"] == "px"


def test_report(made):
    result = succeed("evaluate", made / "s.npy", "--normals", made / "n.png", "--truth", made / "truth.npy")
    labels = [line.split()[0] for line in result.stdout.splitlines()]
    assert labels == ["RMSE", "MADE", "MAE", "vertices", "compression", "coverage"]


def test_looks_of_a_mesh(made):
    pytest.importorskip("embreex")
    found = figures(made / "s.ply", "--normals", made / "n.png")["looks"]
    looks = nm.evaluate(made / "s.ply", nm.read_normal_map(made / "n.png")).looks
    assert found["bad_area"] == pytest.approx(looks.bad_area)
    assert (found["cut_length"], found["teeth"], found["height"]) == (0, None, None)
    lines = succeed("evaluate", made / "s.ply", "--normals", made / "n.png").stdout.splitlines()
    assert [line[:12].strip() for line in lines[-6:]] == ["cuts", "bad area", "ghosts", "gaps", "rim", "needles"]
    assert lines[-1].endswith(f"{looks.needles}, largest aspect {looks.largest_aspect:.0f}; 0 inverted faces")
    assert figures(made / "s.npy", "--normals", made / "n.png")["looks"] is None


def test_without_truth_only_the_angle_is_measured(made):
    result = succeed("evaluate", made / "s.npy", "--normals", made / "n.png")
    assert result.stdout.startswith("MAE ")
    assert "no truth given" in result.stderr
    found = figures(made / "s.npy", "--normals", made / "n.png")
    assert (found["rmse"], found["made"]) == (None, None)


def test_truth_may_increase_away_from_the_viewer(made, tmp_path):
    np.save(tmp_path / "away.npy", -medallion().height)
    common = (made / "s.npy", "--normals", made / "n.png", "--truth")
    assert figures(*common, tmp_path / "away.npy", "--away") == figures(*common, made / "truth.npy")
    for wrong in ((tmp_path / "away.npy",), (made / "truth.npy", "--away")):
        with pytest.warns(
            nm.NormalMeshWarning, match=r"opposite directions: negate the truth \(add or remove --away\)"
        ):
            succeed("evaluate", *common, *wrong)
    assert messages(succeed("evaluate", *common, made / "truth.npy")) == ""


@pytest.mark.parametrize("truth", [True, False])
def test_error_map(truth, made, tmp_path):
    options = ("--truth", made / "truth.npy") if truth else ()
    common = (made / "s.npy", "--normals", made / "n.png", *options, "--error-map", tmp_path / "e.png")
    result = succeed("evaluate", *common, "--scale", 0.5)
    assert f"pale yellow is at least 0.5{' px' if truth else '°'}" in result.stderr
    picture = imagecodecs.imread(tmp_path / "e.png")
    assert picture.shape == (SIZE, SIZE, 3)
    white = (picture == 255).all(axis=-1)
    assert white[~medallion().normal_map.mask].mean() > 0.99
    assert white[medallion().normal_map.mask].mean() < 0.05


@pytest.mark.parametrize("camera", [[], ["--camera", "perspective"], ["--focal-px", 200]], ids=str)
def test_a_rendered_model_is_its_own_truth(camera, tmp_path):
    pytest.importorskip("embreex")
    normals, depth = tmp_path / "n.png", tmp_path / "d.npy"
    succeed("render", "stone", "--size", 64, *camera, "-o", normals, "--depth", depth)
    found = figures(depth, "--normals", normals, "--truth-model", "stone", *camera)
    assert found["rmse"] < 1e-4
    assert (found["covered"], found["spilled"]) == (1, 0)
    assert found["units"] == ("units" if camera else "px")
    assert figures(depth, "--normals", normals, "--truth", depth, "--units", "mm")["units"] == "mm"


def test_a_truth_that_does_not_match_is_reported(made):
    pytest.importorskip("embreex")
    result = succeed("evaluate", made / "s.npy", "--normals", made / "n.png", "--truth-model", "knot")
    assert "% of the foreground: check that it matches the normals" in result.stderr


def test_a_placed_mesh_is_its_own_truth(made):
    pytest.importorskip("embreex")
    found = figures(made / "s.ply", "--normals", made / "n.png", "--truth-model", made / "s.ply", "--placed")
    assert found["rmse"] == 0


def test_a_surface_in_millimetres(made, tmp_path):
    outputs = [tmp_path / f"mm.{kind}" for kind in ("glb", "tif", "png")]
    written = [word for output in outputs for word in ("-o", output)]
    succeed("reconstruct", made / "n.png", "--pixel-size", 0.01, *written, "--compression", 0.95)
    np.save(tmp_path / "truth.npy", 0.01 * medallion().height)
    common = ("--normals", made / "n.png", "--truth", tmp_path / "truth.npy")
    for output in outputs:
        found = figures(output, *common, "--pixel-size", 0.01)
        assert found["mae"] < 10
        assert found["rmse"] < 0.01
        assert found["units"] == "mm"
    assert figures(outputs[-1], *common)["mae"] == pytest.approx(found["mae"])  # its description has the pixel size


def test_no_overlap_is_a_failure(made, tmp_path):
    np.save(tmp_path / "nothing.npy", np.full((SIZE, SIZE), np.nan))
    result = invoke("evaluate", tmp_path / "nothing.npy", "--normals", made / "n.png")
    assert result.exit_code == 1
    assert "covers no foreground pixel" in result.stderr


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--truth", "a", "--truth-model", "b"], 2, "give only one of --truth, --truth-model"),
        (["--away"], 2, "--away requires --truth"),
        (["--placed"], 2, "--placed requires --truth-model"),
        (["--scale", 1], 2, "--scale requires --error-map"),
        (["--camera", "perspective", "--focal-px", 5], 2, "give only one of --camera, --focal-px"),
        (["--truth", "missing.npy"], 1, "missing.npy: there is no such file"),
        (["--error-map", "no/where.png"], 1, "does not exist"),
    ],
    ids=str,
)
def test_rejected_options(options, status, message, made):
    result = invoke("evaluate", made / "s.npy", "--normals", made / "n.png", *options)
    assert result.exit_code == status
    assert message in result.stderr


def test_a_tilt_is_forgiven(made, tmp_path):
    """A tilt of a few degrees is most of the error, until it is aligned."""
    rows = np.arange(SIZE)[:, None]
    np.save(tmp_path / "tilted.npy", medallion().height + 0.05 * rows)
    given = (tmp_path / "tilted.npy", "--normals", made / "n.png", "--truth", made / "truth.npy")
    tilted, rigid = figures(*given), figures(*given, "--align", "rigid")
    assert (tilted["align"], rigid["align"]) == ("offset", "rigid")
    assert rigid["rmse"] < 0.2 * tilted["rmse"]
    assert "aligned by   a rotation and a translation" in succeed("evaluate", *given, "--align", "rigid").stdout
    without_truth = invoke("evaluate", made / "s.npy", "--normals", made / "n.png", "--align", "rigid")
    assert without_truth.exit_code == 2


def test_the_camera_of_an_npz_file_is_taken(made, tmp_path):
    normal_map = nm.read_normal_map(made / "n.png", camera=nm.Perspective.centred(150.0, (SIZE, SIZE)))
    normal_map.save(tmp_path / "n.npz")
    depth = nm.integrate_pixels(normal_map)
    np.save(tmp_path / "d.npy", depth)
    found = figures(tmp_path / "d.npy", "--normals", tmp_path / "n.npz", "--truth", tmp_path / "d.npy")
    assert (found["align"], found["units"]) == ("scale", "units")
    assert found["mae"] == pytest.approx(nm.evaluate(depth, normal_map, depth).mae)
