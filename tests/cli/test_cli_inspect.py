"""Test ``normalmesh inspect`` on good and damaged files."""

import json

import imagecodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from invocation import SIZE, invoke, medallion, messages, succeed, write_medallion
from normalmesh import ScreenMesh, read_normal_map
from normalmesh.evaluation.synthetic import analytic
from normalmesh.files.encoding import encode_normals
from normalmesh.maps.inspection import MaskStatistics, inspect_file
from normalmesh.normals.noise import closure_error, component_noise


def labels(text):
    return [line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")]


def figures(path, *options):
    return json.loads(succeed("inspect", path, "--json", *options).stdout)


@given(arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 9))).filter(np.any))
def test_components_and_holes_are_those_of_the_mesh(mask):
    found, check = MaskStatistics.of(mask), ScreenMesh.from_mask(mask).check()
    assert (found.components, found.holes) == (check.components, check.holes.sum())
    inner = mask.copy()
    inner[0], inner[-1], inner[:, 0], inner[:, -1] = False, False, False, False
    assert found.border == mask.sum() - inner.sum()
    assert 0 < found.largest <= found.foreground == mask.sum()


def test_noise_of_averaged_normals_is_called_inconsistency(tmp_path):
    noise = np.random.default_rng(0).normal(scale=0.25, size=(64, 64, 3))
    normals = np.array([0, 0, 1]) + noise
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    texts = []
    for name, lengths in (("measured", 1.0), ("averaged", 0.85)):
        path = tmp_path / f"{name}.png"
        path.write_bytes(imagecodecs.png_encode(np.rint((lengths * normals + 1) * 127.5).astype(np.uint8)))
        texts.append(succeed("inspect", path).stdout)
    assert ["inconsistency" in text for text in texts] == [False, True]


def test_a_valid_file(tmp_path):
    path = write_medallion(tmp_path / "n.png")
    result = succeed("inspect", path)
    names = ["file", "mask", "normals", "camera", "noise", "convention", "needs", "recommended"]
    assert labels(result.stdout) == [str(path), *names]
    assert f"PNG, {SIZE} × {SIZE} pixels, 3 channels and alpha, 16 bit" in result.stdout
    assert f"foreground ({medallion().normal_map.foreground}), from the alpha channel" in result.stdout
    assert "1 component, 0 holes, no pixel on the image border" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("recommended  read it with --convention opengl")


def test_json_holds_the_figures(tmp_path):
    path = write_medallion(tmp_path / "n.png")
    found = figures(path)
    normal_map = read_normal_map(path)
    assert (found["rows"], found["columns"], found["mask"]["foreground"]) == (SIZE, SIZE, normal_map.foreground)
    noise = component_noise(normal_map).usual
    assert found["noise_degrees"] == pytest.approx(noise.degrees)
    assert found["closure_error_px"] == pytest.approx(closure_error(normal_map, noise.as_white))
    assert found["needs"]["vertices"] == round(0.02 * normal_map.foreground)
    assert set(found["repairs"].values()) == {0}
    assert found["camera"] == {"kind": "orthographic", "pixel_size": 1.0}


@pytest.mark.parametrize(("axes", "name"), [((1, -1, 1), "directx"), ((1, -1, -1), "opencv"), ((-1, 1, 1), "-x+y+z")])
def test_another_convention_is_recommended(axes, name, tmp_path):
    ball = analytic.sphere((SIZE, SIZE)).normal_map
    path = tmp_path / "n.png"
    path.write_bytes(encode_normals(path, ball.normals * axes, ball.mask))
    result = succeed("inspect", path)
    assert f"recommended  read it with --convention {name}: the data show it, and speak against opengl" in result.stdout
    assert f"read as {name}: " in result.stdout
    assert "back-facing" not in result.stdout
    assert messages(result) == ""
    found = figures(path)["convention"]
    assert found["contradicted"]
    assert found["found"] == found["read_as"]
    agreed = succeed("inspect", path, "--convention", name).stdout
    assert agreed.splitlines()[-1].endswith(f"{name}: the data agree")
    assert succeed("inspect", path, "--convention", "auto").stdout.splitlines()[-1].endswith(": the data show it")


@pytest.mark.parametrize(("axes", "name"), [((1, 1, 1), "opengl"), ((1, -1, 1), "directx"), ((1, -1, -1), "opencv")])
def test_of_the_conventions_that_fit_the_common_one_is_recommended(axes, name, tmp_path):
    """The bumps of a flat medallion cannot be distinguished from dents."""
    last = succeed("inspect", write_medallion(tmp_path / "n.png", axes=axes)).stdout.splitlines()[-1]
    assert last.startswith(f"recommended  read it with --convention {name}: the only common one that fits; ")
    assert last.endswith("; opengl does not") == (name != "opengl")


def test_undetermined_convention(tmp_path):
    """A plane is consistent with every convention that faces the viewer."""
    image = np.full((40, 40, 3), (128, 128, 255), np.uint8)
    (tmp_path / "flat.png").write_bytes(imagecodecs.png_encode(image))
    result = succeed("inspect", tmp_path / "flat.png")
    last = result.stdout.splitlines()[-1]
    assert last.startswith("recommended  ask where the file is from: ")
    assert "opengl" in last
    assert "directx" in last
    assert "156 pixels on the image border" in result.stdout


def test_bad_files_do_not_stop_the_others(tmp_path):
    good = write_medallion(tmp_path / "good.png")
    (tmp_path / "empty.png").write_bytes(b"")
    bad = [tmp_path / "empty.png", tmp_path / "missing.png"]
    result = invoke("inspect", bad[0], good, bad[1], good)
    assert result.exit_code == 1
    assert labels(result.stdout).count("recommended") == 2
    errors = messages(result).splitlines()
    assert [error.split(": ")[:3] for error in errors] == [["normalmesh", "error", str(path)] for path in bad]
    lines = invoke("inspect", *bad, good, "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["file"] for each in found] == [*map(str, bad), str(good)]
    assert ["error" in each for each in found] == [True, True, False]


def test_warnings_name_the_file_if_there_are_several(tmp_path):
    image = np.full((8, 8, 3), (128, 128, 255), np.uint8)
    image[2, 2] = (128, 200, 10)
    (tmp_path / "n.png").write_bytes(imagecodecs.png_encode(image))
    assert messages(succeed("inspect", tmp_path / "n.png")).startswith("normalmesh: warning: 1 normal")
    both = succeed("inspect", tmp_path / "n.png", write_medallion(tmp_path / "m.png"))
    assert messages(both).startswith(f"normalmesh: warning: {tmp_path / 'n.png'}: 1 normal")
    assert len(figures(tmp_path / "n.png")["warnings"]) == 1


def test_srgb_encoding_is_detected(tmp_path):
    encoded = (medallion().normal_map.normals.astype(np.float64) + 1) / 2
    curved = np.where(encoded <= 0.0031308, 12.92 * encoded, 1.055 * encoded ** (1 / 2.4) - 0.055)
    image = np.dstack([np.round(255 * curved), 255 * medallion().normal_map.mask]).astype(np.uint8)
    (tmp_path / "n.png").write_bytes(imagecodecs.png_encode(image))
    result = succeed("inspect", tmp_path / "n.png")
    assert "recommended  undo the sRGB curve" in result.stdout


def test_camera_and_mask_are_used(tmp_path):
    path = write_medallion(tmp_path / "n.png")
    (tmp_path / "K.txt").write_text("150 0 47.5\n0 150 47.5\n0 0 1\n")
    mask = np.zeros((SIZE, SIZE), np.uint8)
    mask[40:50, 40:50] = mask[60:65, 40:45] = 255
    mask[43, 43] = 0
    (tmp_path / "m.png").write_bytes(imagecodecs.png_encode(mask))
    result = succeed("inspect", path, "--camera", tmp_path / "K.txt", "--mask", tmp_path / "m.png")
    assert "perspective, focal length 150 px, principal point (48, 48)" in result.stdout
    assert "2 components (the largest has 79.8 % of the pixels), 1 hole" in result.stdout


def test_other_formats_are_described(tmp_path):
    normal_map = medallion().normal_map
    np.savez(tmp_path / "n.npz", normals=normal_map.normals, mask=normal_map.mask)
    np.save(tmp_path / "n.npy", normal_map.normals.astype(np.float64))
    assert "NPZ, 96 × 96 pixels, 3 channels and a mask, float32" in succeed("inspect", tmp_path / "n.npz").stdout
    found = inspect_file(tmp_path / "n.npy")
    assert (found.format, found.kind) == ("NPY", "3 channels, float64")
    assert found.mask_source == "the pixels that differ from the background, (0, 0, 0)"


def test_shared_cases_are_opengl(continuous_cases):
    """The recommended convention is that of the data."""
    for folder in continuous_cases:
        camera = folder / "K.txt"
        found = inspect_file(folder / "normals.png", folder / "mask.png", camera if camera.exists() else None)
        assert found.recommendation.startswith("read it with --convention opengl"), folder.name
        assert all("point away from the viewer" in warning for warning in found.warnings)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
def test_alpha_is_what_the_option_says(tmp_path):
    path = write_medallion(tmp_path / "n.png")
    image = imagecodecs.png_decode(path.read_bytes())
    image[..., 3] = np.linspace(1000, 65000, image[..., 3].size).reshape(image.shape[:2])
    path.write_bytes(imagecodecs.png_encode(image))
    ignored = succeed("inspect", path)
    assert "the alpha channel, from 1000 to 65000, does not look like a mask and was ignored" in ignored.stderr
    assert "alpha is ignored" in ignored.stdout
    assert "alpha channel" not in succeed("inspect", path, "--alpha", "ignore").stderr
    assert "from the alpha channel" in succeed("inspect", path, "--alpha", "mask").stdout
    counts = {
        alpha: json.loads(succeed("reconstruct", path, "--alpha", alpha, "--dry-run", "--json").stdout)["foreground"]
        for alpha in ("auto", "ignore", "mask")
    }
    assert counts["auto"] == counts["ignore"] > counts["mask"]
