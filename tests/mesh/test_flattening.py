"""Test that flattening finds a known tilt and bend under a relief, and records them."""

from dataclasses import replace

import numpy as np
import pytest

from normalmesh import (
    NormalMeshError,
    NormalMeshWarning,
    Orthographic,
    Perspective,
    Repeats,
    ScreenMesh,
    Surface,
    from_heights,
    reconstruct,
)
from normalmesh.mesh.flattening import relief_tilt

PIXEL = 0.1


def tilted(mask, slopes=(0.05, -0.03), bend=(0.0, 0.0, 0.0), relief=0.0, offsets=(0.0,)):
    """Return a surface in mm with a known tilt and bend, relief on the left sixth, and offsets of its components."""
    mesh = ScreenMesh.from_mask(mask)
    rows, columns = np.shape(mask)
    x, y = PIXEL * (mesh.vertices[:, 0] - columns / 2), PIXEL * (rows / 2 - mesh.vertices[:, 1])
    heights = slopes[0] * x + slopes[1] * y + bend[0] * x**2 + bend[1] * x * y + bend[2] * y**2
    heights += np.take(offsets, mesh.components % len(offsets))
    raised = relief * (mesh.vertices[:, 0] < columns / 6)
    return Surface.from_unknown(mesh, heights + raised, Orthographic(PIXEL), (rows, columns), "mm"), raised


def test_the_tilt_of_a_relief_is_told_but_not_that_of_an_object():
    relief = np.ones((24, 32), bool)
    told = relief_tilt(tilted(relief, relief=0.3)[0])
    assert told.tilt == pytest.approx(np.degrees(np.arctan(np.hypot(0.05, 0.03))), abs=0.05)
    assert relief_tilt(tilted(relief, slopes=(0.005, 0.0), relief=0.3)[0]) is None
    assert relief_tilt(tilted(relief, relief=0.3)[0].flattened("plane")) is None
    v, u = np.indices(relief.shape)
    assert relief_tilt(tilted(np.hypot(u - 16, v - 12) < 12)[0]) is None


def test_a_tilt_is_found_under_relief():
    surface, raised = tilted(np.ones((24, 32)), relief=1.0)
    flat = surface.flattened("plane")
    found = flat.flattening
    assert found.tilt == pytest.approx(np.degrees(np.arctan(np.hypot(0.05, 0.03))), abs=0.02)
    assert found.direction == pytest.approx(np.degrees(np.arctan2(-0.03, 0.05)) % 360, abs=0.5)
    assert found.bow == 0
    np.testing.assert_allclose(flat.vertices[:, 2], raised, atol=2e-3)
    np.testing.assert_array_equal(flat.vertices[:, :2], surface.vertices[:, :2])
    np.testing.assert_allclose(flat.before_flattening.vertices, surface.vertices, atol=1e-12)


def test_a_surface_without_extent_is_refused():
    surface, _ = tilted(np.ones((4, 4)))
    surface.vertices[:] = 1
    with pytest.raises(NormalMeshError, match="no area"):
        surface.flattened("plane")


def test_a_bend_is_found_and_its_bow_measured():
    bend = (0.02, 0.01, -0.015)
    surface, _ = tilted(np.ones((24, 32)), bend=bend)
    flat = surface.flattened("quadratic")
    np.testing.assert_allclose(flat.flattening.coefficients, [0.05, -0.03, *bend], atol=1e-9)
    np.testing.assert_allclose(flat.vertices[:, 2], 0, atol=1e-9)
    x, y = surface.vertices[:, 0] - 1.6, surface.vertices[:, 1] + 1.2
    assert flat.flattening.bow == pytest.approx(np.ptp(bend[0] * x**2 + bend[1] * x * y + bend[2] * y**2))
    assert "bow 0.0" in str(flat.flattening)
    assert "mm over 3.2 mm" in str(flat.flattening)
    # A plane leaves the bend.
    assert np.ptp(surface.flattened("plane").vertices[:, 2]) > 0.05


def test_components_share_the_tilt_and_lose_their_offsets():
    mask = np.ones((16, 33), bool)
    mask[:, 16] = False
    surface, _ = tilted(mask, offsets=(0.0, 7.0))
    flat = surface.flattened("plane")
    np.testing.assert_allclose(flat.vertices[:, 2], 0, atol=1e-9)
    np.testing.assert_allclose(flat.flattening.coefficients, [0.05, -0.03], atol=1e-9)


def test_what_cannot_be_flattened():
    surface, _ = tilted(np.ones((4, 4)))
    with pytest.raises(NormalMeshError, match="opposite sides would no longer meet"):
        replace(surface, repeats=Repeats(True, True, (4, 4))).flattened("plane")
    with pytest.raises(NormalMeshError, match="plane, quadratic"):
        surface.flattened("cubic")
    with pytest.raises(NormalMeshError, match="flattened already"):
        surface.flattened("plane").flattened("quadratic")
    pinhole = Surface.from_unknown(surface.mesh, np.zeros(25), Perspective.centred(8.0, (4, 4)), (4, 4))
    with pytest.raises(NormalMeshError, match="orthographic"):
        pinhole.flattened("plane")
    with pytest.warns(NormalMeshWarning, match="a tilt of 30.0° .* by 13 %"):
        tilted(np.ones((4, 4)), slopes=(np.tan(np.pi / 6), 0.0))[0].flattened("plane")
    # One pixel has no bend of its own.
    lone, _ = tilted(np.ones((1, 1)))
    assert np.isfinite(lone.flattened("quadratic").vertices).all()


def test_heights_before_flattening_are_exaggerated_with_the_rest():
    surface, _ = tilted(np.ones((8, 10)), relief=0.5)
    changed = surface.flattened("plane").exaggerated(2.0)
    np.testing.assert_allclose(changed.before_flattening.vertices, surface.exaggerated(2.0).vertices, atol=1e-12)
    assert str(changed.flattening) == str(surface.flattened("plane").flattening)


def test_parts_that_jumps_cut_off_keep_their_step():
    v, u = np.mgrid[:24, :24] + 0.5
    raised = np.abs(u - 12) < 5
    line = [np.array([[at, 0.0], [at, 24.0]]) for at in (7.0, 17.0)]
    normal_map = from_heights(0.05 * u + 0.02 * v)
    prior = np.where(raised, 6.0, 0.0) + 0.05 * u + 0.02 * v
    surface = reconstruct(normal_map, compression=0.8, jumps=line, prior=prior)
    assert surface.components.max() == 2
    assert np.abs(surface.discontinuities.jumps) == pytest.approx(6, abs=0.5)
    flat = surface.flattened("plane")
    assert np.abs(flat.discontinuities.jumps) == pytest.approx(6, abs=0.5)
    assert np.ptp(flat.vertices[:, 2]) == pytest.approx(6, abs=0.5)
    np.testing.assert_allclose(flat.before_flattening.discontinuities.jumps, surface.discontinuities.jumps, atol=1e-9)
    np.testing.assert_array_equal(flat.discontinuities.screen, surface.discontinuities.screen)
