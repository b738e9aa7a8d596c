"""Test inputs on which the fuzzer found a fault."""

import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tifffile
from fuzz_chain import Chain, check_surface
from fuzz_files import Damaged, with_checksums
from fuzz_truth import Truth, compare_with_truth

from normal_map_files import dome, encode
from normalmesh import (
    NormalMap,
    NormalMeshError,
    Orthographic,
    Perspective,
    evaluate,
    read_normal_map,
    reconstruct,
    reconstruct_within,
)
from normalmesh.errors import ShortfallWarning
from normalmesh.files.masks import read_mask
from normalmesh.maps.inspection import inspect_file
from normalmesh.output.textures import colour_image

LENGTH, WIDTH = 257, 256


@pytest.fixture(autouse=True)
def _no_stray_warnings():
    """Turn the warnings of NumPy into errors: they are of no use to a user on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def with_tag(content, tag, value):
    """Return a little-endian TIFF with another value of a tag that holds one long integer."""
    at = content.index(struct.pack("<HHI", tag, 4, 1))
    return content[: at + 8] + struct.pack("<I", value) + content[at + 12 :]


@pytest.mark.parametrize("tag", [LENGTH, WIDTH])
@pytest.mark.parametrize("read", [read_normal_map, read_mask])
def test_tiff_without_pixels(tmp_path, tag, read):
    path = tmp_path / "n.tif"
    tifffile.imwrite(path, encode(dome(), np.uint8), photometric="rgb", metadata=None, byteorder="<")
    path.write_bytes(with_tag(path.read_bytes(), tag, 0))
    with pytest.raises(NormalMeshError, match=r"n\.tif: cannot be read as TIFF"):
        read(path)


def test_damaged_tiff_gives_one_line(tmp_path):
    path = tmp_path / "n.tif"
    path.write_bytes(Damaged("tiff", (("drop", 20, 7),), "inspection").content())
    command = [sys.executable, "-m", "normalmesh", "inspect", str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1, result.stderr


def test_signalling_nan(tmp_path):
    normals = dome().astype(np.float32)
    normals[0, 0] = np.array(0x7FA00000, np.uint32).view(np.float32)
    path = tmp_path / "n.npy"
    np.save(path, normals)
    assert not read_normal_map(path).mask[0, 0]


def test_normal_near_the_maximum_of_float32(tmp_path):
    normals = dome().astype(np.float32)
    normals[5, 5, 0] = 3e38
    path = tmp_path / "n.npy"
    np.save(path, normals)
    assert inspect_file(path).mask.foreground == normals[..., 0].size


@pytest.mark.parametrize(
    "content",
    [
        with_checksums(Damaged("png", (("set", 16, 4, "big", 2**31),), "texture").content()),
        Damaged("planar bigtiff", (("flip", 15, 128),), "texture").content(),
    ],
    ids=["huge png", "bigtiff without pages"],
)
def test_damaged_textures(tmp_path, content):
    path = tmp_path / "photo"
    path.write_bytes(content)
    with pytest.raises(NormalMeshError, match=r"photo: (claims|cannot be read as a texture)"):
        colour_image(path)


def test_depths_behind_the_camera():
    truth = NormalMap(dome(), camera=Perspective.centred(40, dome().shape[:2]))
    with pytest.raises(NormalMeshError, match=r"values of the depth map must be positive.*the smallest is -1"):
        evaluate(np.full(truth.shape, -1.0), truth)


@pytest.mark.parametrize(
    "camera", [Orthographic(), Perspective.centred(40, dome().shape[:2])], ids=["height", "distance"]
)
def test_infinite_depths_are_unknown(camera):
    truth, depth = NormalMap(dome(), camera=camera), np.full(dome().shape[:2], 2.0)
    expected = evaluate(np.where(np.eye(*depth.shape), np.nan, depth), truth)
    found = evaluate(np.where(np.eye(*depth.shape), np.inf, depth), truth)
    assert (found.mae, found.covered, found.normals_compared) == (
        expected.mae,
        expected.covered,
        expected.normals_compared,
    )


def test_bound_on_a_surface_whose_faces_all_touch_a_cut():
    rows = "/".join(["#" * 16] * 16)
    normal_map = Chain(rows, ("grazing", 16), (), (53368.0, 53368.0, 1.0, 1.05, 0.0), "within", (), ".ply").normal_map()
    check_surface(reconstruct_within(normal_map, max_error=5.0), normal_map)


@pytest.mark.parametrize("weight", [2.8e14, 1e308])
def test_prior_weight_beyond_double_precision(weight):
    normal_map = NormalMap(np.array([[[0.0, 0, 1]]]))
    with pytest.raises(NormalMeshError, match="weight"):
        reconstruct(normal_map, vertices=4, prior=[[0, 0, 0]], prior_weight=weight)
    assert reconstruct(normal_map, vertices=4, prior=[[0, 0, 5]], prior_weight=1e9).depth_map() == pytest.approx(5)


def test_tolerance_on_a_ring_that_coarse_meshes_do_not_cover():
    ring = "/".join(["#" * 22, *["#" + "." * 20 + "#"] * 2, "#" * 22])
    chain = Chain(ring, ("checkerboard", 1), ((0, (0.0, 0.0, 0.0)),), (1.0,), "within", (("max_angle", 1.0),), ".ply")
    with pytest.warns(ShortfallWarning, match="a mean angle of 1° is out of reach"):
        surface = reconstruct_within(chain.normal_map(), max_angle=1.0)
    assert surface.decimation.tolerance.missed == ["max_angle"]
    check_surface(surface, chain.normal_map())


@pytest.mark.parametrize(
    "case",
    [
        Truth(("full", 24, 33, 0), ("plane", 9729), (0.8, 0.0), 0.0, "mesh", (("threshold", 10.0),), (5, 0.0, 3, 0.0)),
        Truth(("frame", 19, 21, 351), ("plane", 9), (1.5, 0.0), 0.0, "mesh", (("vertices", 40),), (-1, 1e-3, 3, 1e3)),
    ],
    ids=["points", "depth map"],
)
def test_true_prior_keeps_planes_seen_by_a_perspective_camera(case):
    """The logarithm of the depth is not linear on a large face; read as if it were, the planes are off by 0.7 px."""
    assert compare_with_truth(case) == "mesh"


@pytest.mark.parametrize(
    "case",
    [
        Truth(("frame", 60, 60, 88), ("plane", 12894), (25.4,), 0.0, "levels", (("vertices", (3,)),)),
        Truth(("filigree", 34, 48, 849), ("plane", 4871), (1e-3,), 0.0, "mesh", (("threshold", 1000.0),)),
    ],
    ids=["frame", "filigree"],
)
def test_coarse_faces_take_no_normals_of_other_components(case):
    assert compare_with_truth(case) == case.work


def test_true_points_hold_their_own_components():
    options, prior = (("max_angle", 20.0),), (200, 1.0, 25, 1e6)
    case = Truth(("dust", 25, 25, 790), ("plane", 25), (5.0, 0.0), 0.0, "within", options, prior)
    assert compare_with_truth(case) == "within"


def test_contradictory_points_on_a_single_face():
    normal_map = NormalMap(np.array([[[0.0, 0.0, 1.0]]]))
    surface = reconstruct(normal_map, vertices=3, prior=[[0.3, 0.3, 0.0], [0.6, 0.6, 1.0]])
    assert len(surface.faces) == 1
    assert surface.depth_map() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("factor", "message"), [(1.7e308, "more pixels than any memory holds"), (1e-9, "no foreground is left")]
)
def test_resizing_by_an_extreme_factor(factor, message):
    normal_map = NormalMap(np.tile([0.0, 0.0, 1.0], (4, 5, 1)))
    with pytest.raises(NormalMeshError, match=message):
        normal_map.resize(factor)


def test_exaggerating_beyond_the_largest_number():
    surface = reconstruct(NormalMap(np.tile([0.6, 0.0, 0.8], (4, 5, 1))))
    with pytest.raises(NormalMeshError, match="strength is too large"):
        surface.exaggerated(1.7e308)
