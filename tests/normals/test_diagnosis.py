"""diagnose: the right convention or none, on surfaces made here and on the shared cases."""

from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from scipy import ndimage

from normalmesh import Convention, NormalMap, NormalMeshError, NormalMeshWarning, Orthographic, Perspective, diagnose
from normalmesh.normals.diagnosis import CANDIDATES

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def from_height(height):
    """Unit normals (H, W, 3) of a height map (H, W) in pixels, rows downwards."""
    along_v, along_u = np.gradient(height)
    normals = np.stack([-along_u, along_v, np.ones_like(height)], axis=-1)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def sphere(size=160):
    """Normals and mask of a sphere that fills 90 % of the image."""
    v, u = (np.mgrid[:size, :size] + 0.5) / size * 2 - 1
    x, y = u / 0.9, -v / 0.9
    mask = x**2 + y**2 < 0.999
    z = np.sqrt(np.where(mask, 1 - x**2 - y**2, 0))
    return np.where(mask[..., None], np.stack([x, y, z], axis=-1), 0), mask


def relief(size=160):
    """Normals of smooth random bumps, full frame."""
    height = ndimage.gaussian_filter(np.random.default_rng(3).normal(size=(size, size)), 6, mode="wrap")
    return from_height(height / height.std() * 3)


def cap(u, v, sign):
    """Normals of a cap (sign 1) or bowl (−1) of radius 100, up to 45° steep 70 pixels from its middle."""
    z = np.sqrt(np.maximum(100**2 - u**2 - v**2, 1))
    return np.stack([sign * u, -sign * v, z], axis=-1) / 100


def eight_bit(channels):
    return np.rint((channels + 1) * 127.5) / 127.5 - 1


def noisy(normals, degrees):
    normals = normals + np.random.default_rng(1).normal(0, np.deg2rad(degrees), normals.shape)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def same_up_to_in_and_out(axes):
    """The convention, and the one with x and y reversed."""
    return {axes, axes[:4].translate(str.maketrans("+-", "-+")) + axes[4:]}


@pytest.mark.parametrize("axes", CANDIDATES)
def test_sphere_is_told_in_every_convention(axes):
    normals, mask = sphere()
    convention = Convention(axes)
    found = diagnose(convention.from_project(normals), mask)
    assert found.axes == axes
    assert found.candidates == (axes,)
    assert found.confidence > 0.9
    assert not found.strongly_excludes(convention)
    assert sum(found.strongly_excludes(Convention(other)) for other in CANDIDATES) >= 8
    assert found.outline[axes] > 0.9
    assert found.curl[axes] < 0.1 * max(found.curl.values())


@pytest.mark.parametrize("background", [0.0, np.nan, -1.0])
def test_background_stands_in_for_a_mask(background):
    normals, mask = sphere()
    assert diagnose(np.where(mask[..., None], normals, background)).axes == "+x+y+z"


@pytest.mark.parametrize("axes", CANDIDATES)
@pytest.mark.parametrize("spoil", [np.asarray, eight_bit, lambda normals: noisy(normals, 5)])
def test_full_frame_relief_is_told_but_for_in_and_out(axes, spoil):
    found = diagnose(Convention(axes).from_project(spoil(relief())))
    assert found.axes is None
    assert found.confidence == 0
    assert set(found.candidates) == same_up_to_in_and_out(axes)
    assert found.outline is None
    assert not found.strongly_excludes(Convention(axes))


@pytest.mark.parametrize("spoil", [eight_bit, lambda normals: noisy(normals, 5)])
def test_sphere_is_told_when_spoilt(spoil):
    normals, mask = sphere()
    assert diagnose(Convention("+x-y+z").from_project(spoil(normals)), mask).axes == "+x-y+z"


@pytest.mark.parametrize("axes", ["+x+y+z", "+x-y-z", "-y+x+z"])
def test_perspective_object(axes):
    camera = Perspective(fx=220, fy=220, cx=80, cy=70)
    v, u = np.mgrid[:160, :160] + 0.5
    rays = camera.rays(u, v)
    centre = camera.rays(85.0, 75.0) * 4
    along, squared = rays @ centre, np.sum(rays**2, axis=-1)
    discriminant = along**2 - squared * (centre @ centre - 1.2**2)
    mask = discriminant > 0
    distance = (along - np.sqrt(np.where(mask, discriminant, 0))) / squared
    normals = np.where(mask[..., None], (distance[..., None] * rays - centre) / 1.2, 0)
    assert diagnose(Convention(axes).from_project(normals), mask, camera).axes == axes


@pytest.mark.parametrize("tilt", [0.0, 0.7])
def test_plane_tells_only_z(tilt):
    normals = np.broadcast_to([np.sin(tilt), 0, np.cos(tilt)], (96, 96, 3)).astype(np.float32)
    found = diagnose(normals)
    assert found.axes is None
    assert set(found.candidates) == set(CANDIDATES[:8])


@pytest.mark.parametrize("spoil", [np.asarray, eight_bit, lambda normals: noisy(normals, 2)])
def test_separable_ridges_do_not_tell_the_signs(spoil):
    v, u = np.mgrid[:192, :192]
    found = diagnose(spoil(from_height(4 * np.sin(u / 7) + 3 * np.cos(v / 11))))
    assert found.axes is None
    assert set(found.candidates) == {"+x+y+z", "+x-y+z", "-x+y+z", "-x-y+z"}
    assert not found.excluded & set(found.candidates)


def test_paraboloid_does_not_tell_swapped_axes():
    v, u = np.mgrid[:128, :128] - 63.5
    found = diagnose(from_height(-(u**2 + v**2) / 200))
    assert found.axes is None
    assert "+y+x+z" in found.candidates


@pytest.mark.parametrize("sign", [1, -1])
def test_shallow_cap_does_not_tell_bump_from_bowl(sign):
    v, u = np.mgrid[:160, :160] - 79.5
    mask = u**2 + v**2 < 70**2
    found = diagnose(cap(u, v, sign), mask)
    assert found.axes is None
    assert same_up_to_in_and_out("+x+y+z") <= set(found.candidates)


def test_bowl_masked_at_its_rim_raises_no_alarm():
    normals, mask = sphere()
    assert not diagnose(normals * [-1, -1, 1], mask).strongly_excludes(Convention("+x+y+z"))


def test_steep_slope_on_one_side_is_no_silhouette():
    v, u = np.mgrid[:160, :160] + 0.0
    mask = (np.abs(u - 80) < 50) & (np.abs(v - 80) < 50)
    height = -np.exp((u - 80) / 12) + 2 * np.sin((u + v) / 9) * np.sin((u - 2 * v) / 13)
    assert diagnose(from_height(height), mask).axes is None


@pytest.mark.parametrize("mask", [None, sphere()[1]])
def test_random_vectors_tell_nothing(mask):
    normals = np.random.default_rng(0).normal(size=(160, 160, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    found = diagnose(normals, mask)
    assert found.axes is None
    assert not found.world_space
    assert not found.excluded


def test_world_space_is_noticed():
    normals, mask = sphere()
    found = diagnose(np.where(mask[..., None], normals[..., [2, 0, 1]], 0))
    assert found.world_space
    assert found.axes is None
    assert set(found.candidates) == set(CANDIDATES)
    assert not found.excluded
    assert "world" in str(found)


def test_values_of_raw_channels():
    normals, mask = sphere()
    found = diagnose(normals, mask)
    assert (found.unit_length, found.eight_bit, found.srgb) == (1.0, False, False)
    assert found.mean_z == pytest.approx(2 / 3, abs=0.01)
    assert diagnose(eight_bit(normals), mask).eight_bit
    assert diagnose(0.8 * normals, mask).unit_length == 0


def test_srgb_is_noticed_and_undone():
    normals, mask = sphere()
    stored = (Convention("+x-y+z").from_project(normals) + 1) / 2
    encoded = np.where(stored <= 0.0031308, 12.92 * stored, 1.055 * stored ** (1 / 2.4) - 0.055)
    found = diagnose(eight_bit(2 * encoded - 1), mask)
    assert found.srgb
    assert found.axes == "+x-y+z"
    assert "sRGB" in found.summary()
    assert not diagnose(0.8 * normals, mask).srgb


def test_normal_map_brings_mask_and_camera():
    normals, mask = sphere()
    found = diagnose(NormalMap(normals, mask, Orthographic()))
    assert found.axes == "+x+y+z"
    assert found.eight_bit is None
    assert found.srgb is None
    with pytest.warns(NormalMeshWarning, match="away from the viewer"):
        flipped = NormalMap(np.where(mask[..., None], normals * [1, -1, 1] + [0, 0, -0.05], 0), mask)
    assert diagnose(flipped).strongly_excludes(Convention.parse("opengl"))
    with pytest.raises(NormalMeshError, match="its own mask"):
        diagnose(flipped, mask)


def test_large_maps_are_sampled_at_pixel_and_object_scale():
    v, u = np.mgrid[:1500, :1500]
    height = 200 * np.sin(u / 300) * np.cos(v / 200) + 2 * np.sin(u / 7 + v / 11) * np.cos(v / 5)
    found = diagnose(Convention("+x-y+z").from_project(from_height(height)).astype(np.float32))
    assert set(found.candidates) == same_up_to_in_and_out("+x-y+z")


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("camera", [None, Perspective(3000.0, 3000.0, 1500.0, 1500.0)])
def test_a_small_object_in_a_large_image(camera, masked):
    """An overview of the whole image has too few pixels of it."""
    v, u = np.mgrid[:36, :36] - 17.5
    inside = np.hypot(u, v) < 17
    normals, mask = np.zeros((3000, 3000, 3), np.float32), np.zeros((3000, 3000), bool)
    height = np.sqrt(np.maximum(17.2**2 - u**2 - v**2, 1))
    window = np.s_[1483 : 1483 + 36, 1481 : 1481 + 36]
    mask[window] = inside
    normals[window][inside] = (np.stack([u, v, height], axis=-1) / 17.2)[inside]
    found = diagnose(normals, mask if masked else None, camera)
    assert found.axes == "+x-y+z"
    assert found.confidence > 0.9


def test_summary_says_what_is_told_and_what_is_not():
    normals, mask = sphere()
    summary = str(diagnose(Convention("+x-y+z").from_project(normals), mask))
    assert "directx" in summary
    assert "outwards" in summary
    still_open = diagnose(relief()).summary()
    assert "undetermined" in still_open
    assert "no outline" in still_open


@pytest.mark.parametrize(
    ("normals", "mask", "message"),
    [
        (np.zeros((8, 8)), None, r"8×8"),
        (np.zeros((8, 8, 3), int), None, "floats"),
        (np.zeros((8, 8, 3)), None, "no pixel holds a normal"),
        (np.ones((8, 8, 3)) * 0.6, np.ones((4, 8)), r"mask is 4×8 but normals are 8×8"),
    ],
)
def test_unusable_input_is_refused(normals, mask, message):
    with pytest.raises(NormalMeshError, match=message):
        diagnose(normals, mask)


@pytest.mark.skipif(not CASES.is_dir(), reason="shared cases are not here")
@pytest.mark.parametrize(
    ("case", "is_determined"),
    [
        ("diligent_bear", True),
        ("diligent_ball_ps", True),
        ("psm_owl", True),
        ("queau_vase", True),
        ("mesh_nefertiti_persp_512", True),
        ("ridges512", False),
        ("terrain_sthelens_327x466", False),
    ],
)
def test_shared_cases(case, is_determined):
    folder = CASES / case
    normals = imagecodecs.imread(str(folder / "normals.png")) * np.float32(2 / 65535) - 1
    mask = imagecodecs.imread(str(folder / "mask.png"))
    matrix = folder / "K.txt"
    camera = Perspective.from_matrix(np.loadtxt(matrix)) if matrix.exists() else Orthographic()
    for axes in ("+x-y+z", "-y+x-z"):
        found = diagnose(Convention(axes).from_project(normals), mask, camera)
        assert found.axes == (axes if is_determined else None)
        assert set(found.candidates) <= same_up_to_in_and_out(axes)
        assert axes in found.candidates
        assert not found.strongly_excludes(Convention(axes))
