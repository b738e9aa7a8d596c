"""Components of a normal map as maps of their own."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, Perspective
from normalmesh.normals.component_maps import component_maps


@pytest.mark.parametrize("camera", [Orthographic(0.7), Perspective(80.0, 75.0, 20.0, 18.0, skew=2.0)])
def test_components_look_as_they_do_in_the_image(camera):
    rng = np.random.default_rng(0)
    normals = rng.normal((0, 0, 1), 0.2, (40, 50, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    mask = np.zeros((40, 50), bool)
    mask[2:20, 5:30] = True
    mask[10:15, 10:12] = False
    mask[21:38, 31:48] = True
    mask[20, 30] = True  # touches both at a corner only
    normal_map = NormalMap(normals, mask, camera)
    found = list(component_maps(normal_map, 2))
    assert [(each.top, each.left) for each in found] == [(2, 5), (21, 31)]
    together = np.zeros_like(mask)
    for each in found:
        rows, columns = each.normal_map.shape
        window = np.s_[each.top : each.top + rows, each.left : each.left + columns]
        part = each.normal_map.mask
        assert part.any(axis=0).all()
        assert part.any(axis=1).all()
        assert np.array_equal(each.normal_map.normals[part], normal_map.normals[window][part])
        together[window] |= part
        u, v = np.array([0.5, 3.0]), np.array([1.5, 2.0])
        assert np.allclose(each.normal_map.camera.rays(u, v), camera.rays(u + each.left, v + each.top))
        assert each.normal_map.camera.pixel_length == pytest.approx(camera.pixel_length)
    mask[20, 30] = False
    assert np.array_equal(together, mask)
