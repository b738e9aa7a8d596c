"""Reading depth maps from every format, and what is refused."""

import imagecodecs
import numpy as np
import pytest
import tifffile
from scipy.io import savemat

from normalmesh import NormalMeshError
from normalmesh.output.heights import read_depth_map

DEPTH = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)
DEPTH[1, 2] = np.nan


def write_exr(path, channels):
    OpenEXR = pytest.importorskip("OpenEXR")
    OpenEXR.File({"type": OpenEXR.scanlineimage}, channels).write(str(path))


@pytest.mark.parametrize("suffix", ["npy", "npz", "mat", "tif", "exr"])
def test_formats(suffix, tmp_path):
    path = tmp_path / f"depth.{suffix}"
    if suffix == "npy":
        np.save(path, DEPTH)
    elif suffix == "npz":
        np.savez(path, mask=np.ones((3, 4)), depth=DEPTH)
    elif suffix == "mat":
        savemat(path, {"Depth_gt": DEPTH, "scale": 2.0})
    elif suffix == "tif":
        tifffile.imwrite(path, DEPTH)
    else:
        write_exr(path, {"Z": DEPTH})
    found = read_depth_map(path)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, DEPTH)


def test_zero_in_whole_numbers_is_unknown(tmp_path):
    stored = np.array([[0, 1], [500, 65535]], np.uint16)
    (tmp_path / "depth.png").write_bytes(imagecodecs.png_encode(stored))
    np.testing.assert_array_equal(read_depth_map(tmp_path / "depth.png"), [[np.nan, 1], [500, 65535]])


def test_infinity_is_unknown(tmp_path):
    np.save(tmp_path / "depth.npy", np.array([[1.0, np.inf]]))
    np.testing.assert_array_equal(read_depth_map(tmp_path / "depth.npy"), [[1, np.nan]])


def test_a_variable_can_be_named(tmp_path):
    np.savez(tmp_path / "a.npz", front=DEPTH, back=2 * DEPTH)
    np.testing.assert_array_equal(read_depth_map(tmp_path / "a.npz", "back"), 2 * DEPTH)
    with pytest.raises(NormalMeshError, match="several arrays could be the depths: front, back; name one as variable"):
        read_depth_map(tmp_path / "a.npz")
    write_exr(tmp_path / "a.exr", {"near": DEPTH, "far": 2 * DEPTH})
    np.testing.assert_array_equal(read_depth_map(tmp_path / "a.exr", "far"), 2 * DEPTH)
    with pytest.raises(NormalMeshError, match="the channels are far, near; name the one of the depths"):
        read_depth_map(tmp_path / "a.exr")


def test_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 2, 3)))
    with pytest.raises(NormalMeshError, match=r"a\.npy: depths must be numbers \(rows, columns\), not float64 2×2×3"):
        read_depth_map(tmp_path / "a.npy")
    with pytest.raises(NormalMeshError, match="a NPY file holds one image"):
        read_depth_map(tmp_path / "a.npy", "x")
    (tmp_path / "a.png").write_bytes(imagecodecs.png_encode(np.ones((4, 4, 3), np.uint8)))
    with pytest.raises(NormalMeshError, match="is a RGB image; a depth map has one grey channel"):
        read_depth_map(tmp_path / "a.png")
    (tmp_path / "a.txt").write_text("1 2 3")
    with pytest.raises(NormalMeshError, match="unknown format; expected an NPY, NPZ, MAT, EXR, TIFF or PNG file"):
        read_depth_map(tmp_path / "a.txt")
    with pytest.raises(NormalMeshError, match="there is no such file"):
        read_depth_map(tmp_path / "b.npy")
