"""The uncertainty to be expected of a map, against that of its surface."""

from __future__ import annotations

import numpy as np
import pytest

import normalmesh as nm
from normalmesh.integration.expected_uncertainty import expected_uncertainty
from normalmesh.normals.noise import Noise

SHAPES = {
    "square": ((96, 96), lambda u, v: u >= 0),
    "disc": ((128, 128), lambda u, v: np.hypot(u - 64, v - 64) < 60),
    "ring": ((128, 128), lambda u, v: abs(np.hypot(u - 64, v - 64) - 50) < 10),
    "strip": ((24, 240), lambda u, v: u >= 0),
}


@pytest.mark.parametrize("camera", ["orthographic", "perspective"])
@pytest.mark.parametrize("shape", SHAPES)
def test_expected_uncertainty_is_about_that_of_the_surface(shape, camera):
    size, inside = SHAPES[shape]
    v, u = np.mgrid[: size[0], : size[1]] + 0.5
    normals = np.stack([-0.6 * np.cos(u / 9), 0.4 * np.sin(v / 12), np.ones(size)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    lens = nm.Orthographic() if camera == "orthographic" else nm.Perspective.centred(200, size)
    normal_map, noise = nm.NormalMap(normals, inside(u, v), lens), Noise(1.0)
    surface = nm.reconstruct(normal_map, compression=0.95, discontinuities=False)
    deviations = surface.uncertainty(noise, mesh=False)
    if camera == "perspective":
        deviations /= lens.depth(surface.vertices) * lens.pixel_length
    expected = expected_uncertainty(normal_map, noise, len(surface.vertices))
    assert expected == pytest.approx(np.median(deviations), rel=0.2)


def test_map_without_noise_and_tiny_maps():
    normal_map = nm.NormalMap(np.tile([0.0, 0.0, 1.0], (2, 3, 1)))
    assert expected_uncertainty(normal_map, Noise(0.0), 10) == 0
    assert expected_uncertainty(normal_map, Noise(1.0), 3) == pytest.approx(0.015, rel=0.5)


def test_smaller_faces_and_slopes_add_what_the_equations_say():
    def expected(slope: float, vertices: int) -> float:
        normals = np.tile([-slope, 0.0, 1.0] / np.hypot(slope, 1.0), (64, 64, 1))
        return expected_uncertainty(nm.NormalMap(normals), Noise(1.0), vertices)

    finer = expected(0.0, 40_000) ** 2 - expected(0.0, 10_000) ** 2
    assert finer == pytest.approx(np.radians(1.0) ** 2 * np.log(2) / (2 * np.pi), rel=1e-6)
    steeper = expected(1.0, 10_000) / expected(0.0, 10_000)
    # 1/cos² is 2 at 45°: the mean of the noise of slopes along the tilt and across.
    assert steeper**2 == pytest.approx((2**2 + 2) / 2, rel=1e-3)
