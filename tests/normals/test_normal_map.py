"""NormalMap: what it promises, what it repairs and counts, what it refuses."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import naive
from normalmesh import NormalMap, NormalMeshError, NormalMeshWarning, Orthographic, Perspective, Repairs
from normalmesh.normals._normal_map import nearest_pixel

CAMERAS = [Orthographic(), Perspective(60, 50, 3, 2.5, skew=5)]
WIDE = Perspective(6, 5, 3, 2.5, skew=0.5)


def towards_viewer(camera, shape):
    """Unit vectors (H, W, 3) from each pixel to the viewer."""
    v, u = np.mgrid[0 : shape[0], 0 : shape[1]] + 0.5
    rays = camera.towards_viewer * camera.rays(u, v)
    return rays / np.linalg.norm(rays, axis=2, keepdims=True)


def at_angle(camera, shape, degrees):
    """Unit normals (H, W, 3) at an angle from the viewing rays."""
    ray = towards_viewer(camera, shape)
    across = np.cross(ray, [0.3, 1, 0.2])
    across /= np.linalg.norm(across, axis=2, keepdims=True)
    return np.cos(np.radians(degrees)) * ray + np.sin(np.radians(degrees)) * across


def quietly(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return NormalMap(*arguments)


def flat(rows=4, columns=5):
    return np.full((rows, columns, 3), (0.0, 0.0, 1.0))


@pytest.mark.parametrize("camera", [*CAMERAS, WIDE], ids=repr)
@given(
    normals=hnp.arrays(np.float64, (5, 6, 3), elements=st.floats(-9, 9, width=32) | st.sampled_from([np.nan, np.inf])),
    mask=hnp.arrays(np.bool_, (5, 6)),
)
def test_promises_hold_for_any_input(camera, normals, mask):
    normals[0, 0], mask[0, 0] = at_angle(camera, (5, 6), 10)[0, 0], True
    result = quietly(normals, mask, camera)
    assert result.normals.dtype == np.float32
    assert result.normals.flags.c_contiguous
    assert not np.any(result.mask & ~mask)
    assert not result.normals[~result.mask].any()
    inside = result.normals[result.mask].astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(inside, axis=1), 1, atol=1e-6)
    cosines = np.sum(inside * towards_viewer(camera, (5, 6))[result.mask], axis=1)
    assert np.all(cosines >= np.cos(np.radians(85)) - 2e-6)
    assert result.repairs.excluded == np.count_nonzero(mask) - result.foreground
    assert result.repairs.invalid + result.repairs.back_facing == result.repairs.extended + result.repairs.excluded


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
@given(normals=hnp.arrays(np.float64, (4, 5, 3), elements=st.floats(-1, 1)))
def test_idempotent(camera, normals):
    normals[0, 0] = at_angle(camera, (4, 5), 10)[0, 0]
    once = quietly(normals, None, camera)
    twice = NormalMap(once.normals.copy(), once.mask, camera)
    np.testing.assert_allclose(twice.normals, once.normals, atol=1e-6)
    np.testing.assert_array_equal(twice.mask, once.mask)
    assert twice.repairs == Repairs()


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_good_normals_pass_unchanged(camera, dtype):
    normals = at_angle(camera, (4, 5), 60)
    result = NormalMap(normals.astype(dtype), camera=camera)
    np.testing.assert_allclose(result.normals, normals, atol=2e-3 if dtype == np.float16 else 1e-6)
    assert result.mask.all()
    assert result.repairs == Repairs()
    assert result.camera is camera


NO_MEASUREMENT = [(np.nan, 0, 1), (0, np.inf, 1), (0, 0, 0), (0, 0, 0.02), (0, 0, -1), (0.6, 0, -0.8), (1, 0, 0)]


@pytest.mark.parametrize("bad", NO_MEASUREMENT)
def test_what_is_no_measurement_takes_the_mean_of_its_neighbours(bad):
    normals = at_angle(Orthographic(), (4, 5), 20)
    normals[2, 3] = at_angle(Orthographic(), (4, 5), 60)[2, 3]
    mean = normals[0:3, 1:4].sum(axis=(0, 1)) - normals[1, 2]
    normals[1, 2] = bad
    with pytest.warns(NormalMeshWarning, match="1 pixel without a measurement took the mean normal of its neighb"):
        result = NormalMap(normals, np.ones((4, 5)))
    assert result.mask.all()
    np.testing.assert_allclose(result.normals[1, 2], mean / np.linalg.norm(mean), atol=1e-6)
    faces_away = int(np.isfinite(bad).all() and bad[2] <= 0 and any(bad))
    assert result.repairs == Repairs(invalid=1 - faces_away, back_facing=faces_away, extended=1)


@pytest.mark.parametrize("bad", NO_MEASUREMENT)
def test_without_a_mask_what_is_no_measurement_is_background_but_for_specks(bad):
    normals = flat(9, 12)
    normals[:, :4] = bad
    normals[4, 8] = bad
    result = quietly(normals)
    expected = np.ones((9, 12), bool)
    expected[:, :4] = False
    np.testing.assert_array_equal(result.mask, expected)
    assert result.repairs.extended == 1
    assert result.repairs.invalid == result.repairs.excluded == 0


def test_background_without_a_mask_is_no_repair():
    normals = flat()
    normals[:2] = np.nan
    assert NormalMap(normals).repairs == Repairs()


@pytest.mark.parametrize("length", [1e-3, 1, 700])
def test_short_vectors_are_those_far_below_the_typical_length(length):
    normals = length * flat(20, 20)
    normals[:, :14] *= 0.04
    assert quietly(normals).mask.tolist() == [[False] * 14 + [True] * 6] * 20
    normals[:, :14] *= 1.5
    assert quietly(normals).mask.all()


def test_what_the_mask_leaves_out_is_not_counted():
    normals = flat()
    normals[1, 2] = np.nan
    mask = np.ones((4, 5), bool)
    mask[1, 2] = False
    assert NormalMap(normals, mask).repairs == Repairs()


@pytest.mark.parametrize(("length", "rescaled"), [(1.01, 0), (0.99, 0), (1.03, 1), (0.97, 1), (0.1, 1), (1e200, 1)])
def test_lengths(length, rescaled):
    normals = flat()
    normals[0, 0] = np.array([0.6, 0, 0.8]) * length
    result = quietly(normals)
    np.testing.assert_allclose(result.normals[0, 0], [0.6, 0, 0.8], atol=1e-6)
    assert result.repairs == Repairs(rescaled=rescaled)


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
@pytest.mark.parametrize(
    ("degrees", "repairs"),
    [
        (84.9, Repairs()),
        (85.1, Repairs(grazing=1)),
        (89.9, Repairs(grazing=1)),
    ],
)
def test_clamping(camera, degrees, repairs):
    normals = at_angle(camera, (4, 5), 20)
    normals[2, 3] = at_angle(camera, (4, 5), degrees)[2, 3]
    result = quietly(normals, None, camera)
    np.testing.assert_allclose(result.normals[2, 3], at_angle(camera, (4, 5), min(degrees, 85))[2, 3], atol=1e-6)
    assert result.repairs == repairs
    assert result.mask.all()


def test_one_warning_says_everything():
    normals = flat()
    normals[0, 0] = np.nan
    normals[0, 1] = 0, 0, 2
    normals[1] = 0.6, 0, -0.8
    with pytest.warns(NormalMeshWarning) as caught:
        result = NormalMap(normals, np.ones((4, 5)))
    assert result.repairs == Repairs(invalid=1, rescaled=1, back_facing=5, extended=6)
    (warning,) = caught
    assert str(warning.message) == (
        "1 normal is NaN, infinite or of (nearly) zero length; "
        "5 normals (26 %) point away from the viewer; is the convention right?; "
        "6 pixels without a measurement took the mean normal of their neighbours; "
        "1 normal was not of unit length and was normalised"
    )
    assert warning.filename == __file__


def test_few_back_facing_normals_do_not_question_the_convention():
    normals = flat()
    normals[0, 0] = 0.6, 0, -0.8
    with pytest.warns(NormalMeshWarning, match=r"1 normal \(5 %\) points away from the viewer$"):
        NormalMap(normals)


def test_grazing_normals_are_not_worth_a_warning():
    normals = flat()
    normals[0, 0] = at_angle(Orthographic(), (4, 5), 88)[0, 0]
    assert NormalMap(normals).repairs == Repairs(grazing=1)


@pytest.mark.parametrize("degrees", [86, 89.9])
def test_a_plane_that_is_too_steep_is_reported(degrees):
    with pytest.warns(NormalMeshWarning, match=r"20 normals \(100 %\) .* clamped to 85°: the surface is too flat"):
        NormalMap(at_angle(Orthographic(), (4, 5), degrees))


def test_a_small_component_that_is_too_steep_is_reported():
    normals, mask = flat(60, 60), np.ones((60, 60), bool)
    normals[50:56, 50:56] = at_angle(Orthographic(), (6, 6), 87)
    assert NormalMap(normals, mask).repairs == Repairs(grazing=36)
    mask[49:57, 49] = mask[49:57, 56] = mask[49, 49:57] = mask[56, 49:57] = False
    with pytest.warns(NormalMeshWarning, match=r"36 normals .* clamped to 85°: 1 component of the mask consists"):
        NormalMap(normals, mask)


def test_a_focal_length_that_is_too_short_for_the_pixels_is_reported():
    normals = np.broadcast_to([0.6, 0.0, 0.8], (16, 16, 3))
    assert NormalMap(normals, None, Perspective.centred(60, (16, 16))).repairs == Repairs()
    with pytest.warns(NormalMeshWarning, match=r"in \d+ pixels depth changes by more than a quarter .* focal length"):
        NormalMap(normals, None, Perspective.centred(4, (16, 16)))


def test_immutable():
    normals, mask = flat(), np.ones((4, 5), bool)
    result = NormalMap(normals, mask)
    for array in (result.normals, result.mask):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.camera = Orthographic(2)
    normals[:] = 7
    mask[:] = False
    np.testing.assert_array_equal(result.normals, flat())
    assert result.mask.all()


def test_properties():
    result = NormalMap(flat(), np.eye(4, 5))
    assert result.shape == (4, 5)
    assert result.foreground == 4
    assert repr(result) == "NormalMap(5 × 4 pixels, 4 of them foreground, orthographic)"


def test_as_an_array_it_is_its_normals():
    result = NormalMap(flat())
    assert np.asarray(result) is result.normals
    assert np.asarray(result, np.float64).dtype == np.float64
    copy = np.array(result)
    copy[:] = 0  # a copy may be written to
    np.testing.assert_array_equal(result.normals, flat())


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_masks_of_any_type(dtype, order):
    mask = np.eye(4, 5, dtype=bool)
    result = NormalMap(flat(), np.asarray(3 * mask, dtype, order=order))
    np.testing.assert_array_equal(result.mask, mask)
    assert result.mask.flags.c_contiguous


@pytest.mark.parametrize(
    ("normals", "reason"),
    [
        (np.ones((4, 5)), r"normals must have the shape \(rows, columns, 3\), not 4×5"),
        (np.ones((4, 5, 4)), "not 4×5×4"),
        (1.0, "not a single number"),
        (np.ones((0, 5, 3)), r"normals are empty \(0×5×3\)"),
        (np.ones((4, 5, 3), np.uint8), "normals must be floats, not uint8; decode an image"),
        (np.full((4, 5, 3), np.nan), "no usable normal is left: all 20 in the mask"),
        (-flat(), "all normals point away from the viewer"),
        (np.full((4, 5, 3), (0.6, 0, -0.8)), "all normals point away from the viewer: .* convention='opencv'"),
    ],
)
def test_normals_that_are_refused(normals, reason):
    with pytest.raises(NormalMeshError, match=reason):
        NormalMap(normals)


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (np.ones((4, 6)), "mask is 4×6 but normals are 4×5"),
        (np.ones((4, 5, 1)), "mask is 4×5×1 but normals are 4×5"),
        (np.zeros((4, 5)), "mask is empty: no pixel is foreground"),
        (np.full((4, 5), np.nan), "mask must be boolean or finite numbers"),
        (np.full((4, 5), "x"), "mask must be boolean or finite numbers"),
    ],
)
def test_masks_that_are_refused(mask, reason):
    with pytest.raises(NormalMeshError, match=reason):
        NormalMap(flat(), mask)


def test_cameras_that_are_refused():
    with pytest.raises(
        NormalMeshError, match=r"camera must be Orthographic\(\.\.\.\) or Perspective\(\.\.\.\), not str"
    ):
        NormalMap(flat(), camera="K.txt")


@pytest.mark.parametrize("share", [0.03, 0.2, 0.9])
def test_the_nearest_pixel_is_the_one_with_the_nearest_centre(share):
    rng = np.random.default_rng(0)
    found = []
    for u, v in rng.uniform(-3, 15, (300, 2)):
        mask = rng.random((11, 13)) < share
        found.append(nearest_pixel(mask, u, v))
        assert found[-1] == naive.nearest_pixel(mask, (u, v))
    assert share == 0.9 or (-1, -1) in found
    assert len(set(found)) > 50


def test_of_equally_near_pixels_the_first_is_taken():
    mask = np.zeros((5, 5), bool)
    mask[1, 2] = mask[2, 1] = mask[2, 3] = True
    assert nearest_pixel(mask, 2.5, 2.5) == (1, 2)
