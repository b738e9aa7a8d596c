"""Components of a normal map as maps of their own."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, Perspective
from normalmesh.decimation.near_cells import SIZE
from normalmesh.normals.component_maps import ALIGNED, component_maps


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
    assert [(each.top, each.left) for each in found] == [(0, 0), (16, 24)]
    assert [each.number for each in found] == [0, 2]
    together = np.zeros_like(mask)
    for each in found:
        window, part = each.window, each.normal_map.mask
        # Cells of this size lie as they do in the image, and the window ends with the component.
        assert each.top % ALIGNED == each.left % ALIGNED == 0
        assert part[:ALIGNED].any()
        assert part[:, :ALIGNED].any()
        assert part[-1].any()
        assert part[:, -1].any()
        assert np.array_equal(each.normal_map.normals[part], normal_map.normals[window][part])
        together[window] |= part
        u, v = np.array([0.5, 3.0]), np.array([1.5, 2.0])
        assert np.allclose(each.normal_map.camera.rays(u, v), camera.rays(u + each.left, v + each.top))
        assert each.normal_map.camera.pixel_length == pytest.approx(camera.pixel_length)
    mask[20, 30] = False
    assert np.array_equal(together, mask)


def test_one_component_is_the_map_itself():
    mask = np.zeros((20, 30), bool)
    mask[3:9, 5:30] = True
    normal_map = NormalMap(np.broadcast_to([0.0, 0.0, 1.0], (20, 30, 3)), mask)
    (found,) = component_maps(normal_map)
    assert found.normal_map is normal_map
    assert (found.number, found.top, found.left) == (0, 0, 0)
    assert list(component_maps(normal_map, 151)) == []


def test_windows_are_aligned_with_the_cells_of_jump_meshes():
    assert ALIGNED % SIZE == 0
