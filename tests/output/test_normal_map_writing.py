"""Save normal maps: reading gives the same map, up to quantisation."""

import warnings

import numpy as np
import pytest
import scipy.io

from meshes import bumpy_map, disc
from normalmesh import NormalMap, NormalMeshError, NormalMeshWarning, Orthographic, Perspective, read_normal_map
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.maps.inspection import inspect_file

CAMERA = Perspective(70.0, 64.0, 20.0, 9.0, 0.5)


def masked():
    """Return a map with an outline and a hole of a single pixel, which readers would fill without a mask."""
    mask = disc(40, 17)
    mask[20, 18] = False
    return bumpy_map((40, 40), mask=mask)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("convention", ["opengl", "opencv", "-y+x+z"])
@pytest.mark.parametrize(
    ("name", "bits", "error"),
    [
        ("n.png", None, 2e-5),
        ("n.png", 8, 5e-3),
        ("n.tif", None, 1e-7),
        ("n.tiff", 16, 2e-5),
        ("n.tif", 8, 5e-3),
        ("n.exr", None, 1e-7),
        ("n.EXR", 16, 5e-4),
        ("n.npz", None, 1e-7),
    ],
)
def test_round_trip(name, bits, error, convention, tmp_path):
    pytest.importorskip("OpenEXR")
    normal_map = masked()
    normal_map.save(tmp_path / name, convention=convention, bits=bits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bumps without an outline fit several conventions
        again = read_normal_map(tmp_path / name, convention=convention)
    np.testing.assert_array_equal(again.mask, normal_map.mask)
    np.testing.assert_allclose(again.normals, normal_map.normals, atol=error)


def test_plain_arrays_are_zero_outside(tmp_path):
    normal_map = masked()
    normal_map.save(tmp_path / "n.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "n.npy"), normal_map.normals)


def test_full_frame_with_a_flat_border(tmp_path):
    """Without background, an opaque alpha or the mask of an NPZ file says so."""
    ball = sphere(48).normal_map
    normals = np.where(ball.mask[..., None], ball.normals, [0, 0, 1])
    whole = NormalMap(normals.astype(np.float32))
    whole.save(tmp_path / "n.png")
    whole.save(tmp_path / "n.npz")
    assert read_normal_map(tmp_path / "n.png", alpha="mask").mask.all()
    assert read_normal_map(tmp_path / "n.npz").mask.all()


@pytest.mark.parametrize("camera", [CAMERA, Orthographic(0.25), Orthographic()], ids=str)
def test_npz_holds_the_camera(camera, tmp_path):
    bumpy_map(camera=camera).save(tmp_path / "n.npz")
    assert read_normal_map(tmp_path / "n.npz").camera == camera
    assert inspect_file(tmp_path / "n.npz").camera == camera
    assert read_normal_map(tmp_path / "n.npz", camera=Orthographic(3.0)).camera == Orthographic(3.0)


def test_a_camera_that_is_lost_is_named(tmp_path):
    with pytest.warns(NormalMeshWarning, match="does not hold the camera .*focal length 70 × 64 px.*matrix="):
        bumpy_map(camera=CAMERA).save(tmp_path / "n.png")
    with pytest.warns(NormalMeshWarning, match=r"pixels of side 0.2\).*or write NPZ$"):
        bumpy_map(camera=Orthographic(0.2)).save(tmp_path / "n.png")


def test_matrix_file(tmp_path):
    bumpy_map(camera=CAMERA).save(tmp_path / "n.png", matrix=tmp_path / "K.txt")
    assert read_normal_map(tmp_path / "n.png", camera=tmp_path / "K.txt").camera == CAMERA


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("n.jpg", {}, "must be one of .png, .exr, .tif, .tiff, .npy, .npz"),
        ("n.png", {"bits": 32}, "must be 16 or 8, not 32"),
        ("n.npz", {"bits": 8}, "must be 32, not 8"),
        ("n.png", {"convention": "auto"}, "unknown convention"),
        ("n.png", {"matrix": "K.txt"}, "has no matrix to write"),
        ("missing/n.png", {}, "does not exist"),
    ],
)
def test_refused(name, options, message, tmp_path):
    if "matrix" in options:
        options = {"matrix": tmp_path / options["matrix"]}
    with pytest.raises(NormalMeshError, match=message):
        bumpy_map().save(tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


class TestSlopeFiles:
    """NPZ and MAT files that hold p and q instead of normals."""

    ROWS, COLUMNS = np.indices((20, 24))
    P, Q = 0.04 * (COLUMNS - 12) + 0.1, 0.03 * (10 - ROWS)

    @pytest.mark.parametrize("names", [("p", "q"), ("Zx", "Zy"), ("gx", "gy")])
    def test_read(self, names, tmp_path):
        mask = np.zeros(self.P.shape, np.uint8)
        mask[2:18, 3:20] = 1
        content = {**dict(zip(names, (self.P, self.Q), strict=True)), "mask": mask}
        np.savez(tmp_path / "s.npz", **content)
        scipy.io.savemat(tmp_path / "s.mat", content)
        expected = np.dstack([-self.P, -self.Q, np.ones_like(self.P)])
        expected /= np.linalg.norm(expected, axis=2, keepdims=True)
        for file in ("s.npz", "s.mat"):
            found = read_normal_map(tmp_path / file)
            np.testing.assert_array_equal(found.mask, mask)
            np.testing.assert_allclose(found.normals[mask > 0], expected[mask > 0], atol=1e-6)

    def test_normals_are_preferred(self, tmp_path):
        normals = np.dstack([0 * self.P, 0 * self.P, np.ones_like(self.P)])
        normals[3, 4] = [0.6, 0, 0.8]
        np.savez(tmp_path / "s.npz", p=self.P, q=self.Q, normals=normals, mask=np.ones(self.P.shape))
        assert read_normal_map(tmp_path / "s.npz").normals[3, 4, 0] == pytest.approx(0.6)

    def test_integers_are_refused(self, tmp_path):
        np.savez(tmp_path / "s.npz", p=self.COLUMNS, q=self.ROWS)
        with pytest.raises(NormalMeshError, match="slopes must be floats, not int64"):
            read_normal_map(tmp_path / "s.npz")
