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
