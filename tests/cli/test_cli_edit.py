"""Test ``normalmesh edit``: files hold what the methods of the library give."""

import json

import numpy as np
import pytest

import normalmesh as nm
from invocation import SIZE, invoke, succeed, write_medallion


@pytest.fixture(scope="module")
def normals(tmp_path_factory):
    return write_medallion(tmp_path_factory.mktemp("edited") / "n.png")


def test_format_and_convention(normals, tmp_path):
    result = succeed("edit", normals, tmp_path / "n.tif", "--to", "directx", "--bits", 16)
    assert f"size         {SIZE} × {SIZE} pixels" in result.stdout
    found, given = nm.read_normal_map(tmp_path / "n.tif", convention="directx"), nm.read_normal_map(normals)
    np.testing.assert_array_equal(found.mask, given.mask)
    np.testing.assert_allclose(found.normals, given.normals, atol=5e-5)


def test_all_changes_and_their_camera(normals, tmp_path):
    camera = nm.Perspective.centred(150.0, (SIZE, SIZE))
    np.savetxt(tmp_path / "K.txt", camera.matrix())
    changes = ("--fill", "--crop", "mask", "--margin", 3, "--rotate", 90, "--resize", "50%")
    printed = succeed("edit", normals, tmp_path / "n.npz", "--camera", tmp_path / "K.txt", *changes, "--json").stdout
    expected = nm.read_normal_map(normals, camera=camera).filled().crop(margin=3).rotated(90).resize(0.5)
    found = nm.read_normal_map(tmp_path / "n.npz")
    np.testing.assert_allclose(found.normals, expected.normals, atol=1e-6)
    np.testing.assert_allclose(found.camera.frame, expected.camera.frame)
    figures = json.loads(printed)
    assert (figures["rows"], figures["columns"], figures["foreground"]) == (*expected.shape, expected.foreground)


def test_rectangle_and_matrix(normals, tmp_path):
    np.savetxt(tmp_path / "K.txt", nm.Perspective(150.0, 150.0, 50.0, 40.0).matrix())
    options = ("--camera", tmp_path / "K.txt", "--crop", "40x30+20+10", "--matrix", tmp_path / "K2.txt")
    succeed("edit", normals, tmp_path / "part.png", *options)
    part = nm.read_normal_map(tmp_path / "part.png", camera=tmp_path / "K2.txt")
    assert part.shape == (30, 40)
    assert part.camera == nm.Perspective(150.0, 150.0, 30.0, 30.0)


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["out.jpg"], 1, "must be one of .png"),
        (["out.png", "--margin", 3], 2, "--margin requires --crop"),
        (["out.png", "--crop", "1,2,3,4"], 2, "neither mask nor a rectangle"),
        (["out.png", "--crop", "4000x3+0+0"], 1, "4000x3+0+0 (columns x rows + left + top) is not inside the image"),
        (["out.png", "--resize", "big"], 2, "neither a factor"),
        (["n.png"], 1, "this file is read, too"),
    ],
)
def test_refused(options, status, message, normals):
    result = invoke("edit", normals, normals.parent / options[0], *options[1:])
    assert result.exit_code == status
    assert message in result.output + str(result.exception)
