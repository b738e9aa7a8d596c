"""The background of maps without a mask: the same in every format, and none in a relief that fills the image."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import pytest

import naive
from normalmesh import read_normal_map
from normalmesh.maps._background import BACKGROUND, COLOURED, flood_from_border
from normalmesh.maps.background import find_background
from normalmesh.maps.decoding import HeldWindows

pytestmark = [
    pytest.mark.usefixtures("no_diagnosis"),
    pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning"),
]

BACKGROUNDS = {"black": (0, 0, 0), "grey": (127, 128, 127), "flat": (128, 128, 255), "own": (130, 120, 200)}
KINDS = ["png8", "png16", "90 420", "90 444", "75 420", "75 444"]


def offsets(size):
    """Distances right and up (size, size) from the centre of an image."""
    v, u = np.mgrid[0:size, 0:size] + 0.5 - size / 2
    return u, -v


def ball(size=240, radius=90):
    """Normals and mask of a ball."""
    x, y = (part / radius for part in offsets(size))
    inside = x**2 + y**2 < 1
    return np.dstack([x, y, np.sqrt(np.where(inside, 1 - x**2 - y**2, 0))]), inside


def bust(size=240):
    """Normals and mask of a vertical cylinder that the image cuts off at the bottom, with a ball on it."""
    x, y = (part / 80 for part in offsets(size))
    head, inside = ball(size, 80)
    body = (np.abs(x) < 0.7) & (y < 0)
    trunk = np.dstack([x / 0.7, 0 * x, np.sqrt(np.clip(1 - (x / 0.7) ** 2, 0, 1))])
    return np.where((body & ~inside)[..., None], trunk, head), inside | body


OBJECTS = {"ball": ball(), "bust": bust(), "small ball": ball(100, 25)}


def relief(height):
    """Normals of a height map."""
    down, right = np.gradient(height)
    n = np.dstack([-right, down, np.ones_like(height)])
    return n / np.linalg.norm(n, axis=2, keepdims=True)


def reliefs():
    u, v = offsets(240)
    r = np.hypot(u, v)
    stud = np.hypot(u % 60 - 30, v % 60 - 30)
    return {
        "bump": relief(80 * np.exp(-((r / 40) ** 2))),
        "cone": relief(np.clip(90 - r, 0, None)),
        "steep cone": relief(1.8 * np.clip(90 - r, 0, None)),
        "cap": relief(np.clip(np.sqrt(np.clip(90**2 - r**2, 0, None)) - 45, 0, None)),
        "studs": relief(1.5 * np.clip(22 - stud, 0, 6)),
        "plane": np.broadcast_to([0.0, 0.0, 1.0], (240, 240, 3)),
        "slope": np.broadcast_to([0.6, 0.0, 0.8], (240, 240, 3)),
        "waves": relief(10 * np.sin(u / 20) * np.cos(v / 15)),
    }


def write(folder, normals, kind, mask=None, colour=(0, 0, 0)):
    """Write normals, with a background of a colour of 8 bit, and return the path."""
    mask = np.ones(normals.shape[:2], bool) if mask is None else mask
    maximum, dtype = (65535, np.uint16) if kind == "png16" else (255, np.uint8)
    values = np.rint((normals + 1) / 2 * maximum).astype(dtype)
    values = np.where(mask[..., None], values, np.array(colour, dtype) * dtype(maximum // 255))
    path = folder / ("n.png" if kind.startswith("png") else "n.jpg")
    if kind.startswith("png"):
        path.write_bytes(imagecodecs.png_encode(values))
    else:
        quality, subsampling = kind.split()
        path.write_bytes(imagecodecs.jpeg8_encode(values, level=int(quality), subsampling=subsampling))
    return path


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_every_format_has_the_same_background(tmp_path, name, background):
    normals, mask = OBJECTS[name]
    for kind in KINDS:
        found = read_normal_map(write(tmp_path, normals, kind, mask, BACKGROUNDS[background])).mask
        allowed = 0 if kind.startswith("png") else 0.01 if kind.startswith("90") else 0.015
        assert np.mean(found != mask) <= allowed, kind


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_steep_rims_of_jpeg_are_as_far_from_the_truth_as_their_noise(tmp_path, background):
    """No pixel of the mask holds a mixture with the background that points elsewhere."""
    normals, mask = ball()
    result = read_normal_map(write(tmp_path, normals, "90 444", mask, BACKGROUNDS[background]))
    both = mask & result.mask
    angles = np.degrees(np.arccos(np.clip(np.sum(result.normals * normals, axis=2)[both], -1, 1)))
    assert np.median(angles) < 1.5
    assert np.mean(angles > 20) < 0.01


@pytest.mark.parametrize("name", reliefs())
@pytest.mark.parametrize("kind", ["png8", "png16", "90 420", "75 420"])
def test_a_relief_that_fills_the_image_keeps_every_pixel(tmp_path, name, kind):
    assert read_normal_map(write(tmp_path, reliefs()[name], kind)).mask.all()


def test_a_flat_spot_of_an_object_on_flat_ground_stays(tmp_path):
    normals, mask = ball()
    normals = normals.copy()
    normals[100:140, 100:140] = 0, 0, 1
    found = read_normal_map(write(tmp_path, normals, "png8", mask, BACKGROUNDS["flat"])).mask
    np.testing.assert_array_equal(found, mask)


def test_holes_of_a_colour_that_is_no_normal_are_background(tmp_path):
    normals, mask = ball()
    mask = mask.copy()
    mask[100:140, 100:140] = False
    for colour in ("black", "grey", "own"):
        found = read_normal_map(write(tmp_path, normals, "png8", mask, BACKGROUNDS[colour])).mask
        np.testing.assert_array_equal(found, mask)


@pytest.mark.parametrize("value", [(0.0, 0.0, 1.0), (0.1, -0.2, 0.4), (0.0, 0.0, -1.0)])
def test_floats_have_backgrounds_too(tmp_path, value):
    normals, mask = ball()
    np.save(tmp_path / "n.npy", np.where(mask[..., None], normals, value))
    np.testing.assert_array_equal(read_normal_map(tmp_path / "n.npy").mask, mask)


def test_gentle_ground_between_steep_stones_is_no_background():
    v, u = np.indices((192, 192)) + 0.5
    slopes = 0.05 * np.stack([np.cos(u / 5), np.sin(v / 6)], axis=-1)
    x, y = (each % 48 - 24 for each in (u, v))
    stone = np.hypot(x, y) < 19
    slopes[stone] = -3 * np.stack([x, y], axis=-1)[stone] / np.sqrt(20.0**2 - (x**2 + y**2)[stone, None])
    normals = np.stack([-slopes[..., 0], slopes[..., 1], np.ones_like(u)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    assert read_normal_map(np.rint((normals + 1) * 127.5).astype(np.uint8)).mask.all()


def test_a_given_mask_is_not_questioned(tmp_path):
    normals, mask = ball()
    path = write(tmp_path, normals, "png8", mask, BACKGROUNDS["flat"])
    assert read_normal_map(path, mask=np.ones(mask.shape)).mask.all()


@pytest.mark.parametrize("shortest", [1, 3, 60])
def test_the_flood_reaches_what_is_connected_to_the_border(shortest):
    rng = np.random.default_rng(5)
    for share in (0.3, 0.45, 0.6, 0.8, 1):
        coloured = rng.random((40, 50)) < share
        state = np.where(coloured, COLOURED, 0).astype(np.uint8)
        flood_from_border(state, shortest)
        np.testing.assert_array_equal(state == BACKGROUND, naive.connected_to_border(coloured, shortest))


def test_shared_cases_agree_between_png_and_jpeg(continuous_cases, tmp_path):
    """Objects and reliefs alike, with the backgrounds that a file may have."""
    for folder in continuous_cases:
        camera = folder / "K.txt" if (folder / "K.txt").exists() else None
        given = read_normal_map(folder / "normals.png", folder / "mask.png", camera)
        if given.mask.size > 600_000:
            continue
        for colour in ("black", "grey", "own"):
            painted = (given.mask, BACKGROUNDS[colour])
            first, second = (
                read_normal_map(write(tmp_path, given.normals, kind, *painted), camera=camera).mask
                for kind in ("png8", "90 420")
            )
            assert np.mean(first != second) < 0.01, (folder.name, colour)
            assert np.mean(first != given.mask) < 0.01, (folder.name, colour)


def test_a_small_object_in_a_large_image():
    """A sample of the whole image may miss the object."""
    vectors = np.zeros((200, 200, 3), np.float32)
    vectors[83:88, 83:88] = (0.6, 0.0, 0.8)
    windows = HeldWindows(Path("map"), vectors, np.ones((200, 200), bool))
    border = vectors[0]
    _, state = find_background(windows, border, border[:0], 2 / 255)
    assert np.array_equal(state < BACKGROUND, vectors.any(axis=-1))
