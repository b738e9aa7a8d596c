"""Check moments of places and slopes over the pixels of faces against NumPy."""

import numpy as np
import pytest

from meshes import bumpy_map, point_mesh
from normalmesh import Orthographic, Perspective, pixel_faces
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.gradient_moments import GradientMoments


@pytest.mark.parametrize("camera", [Orthographic(0.7), Perspective(300.0, 280.0, 12.0, 11.0, skew=1.0)], ids=str)
def test_moments_are_those_of_numpy(camera):
    mask = np.random.default_rng(0).random((24, 26)) > 0.3
    normal_map = bumpy_map(camera=camera, mask=mask, height=2.0)
    mesh = point_mesh(normal_map.shape, 60, 0)
    found = GradientMoments.of(mesh, normal_map)
    owners = np.where(mask, pixel_faces(mesh, mask.shape), -1)
    centres = mesh.vertices[mesh.faces].mean(axis=1)
    tangents = np.stack(camera.tangents)
    for face in range(len(mesh.faces)):
        row, column = np.nonzero(owners == face)
        assert found.count[face] == len(row)
        if len(row) < 2:
            continue
        normals = normal_map.normals[row, column].astype(np.float64)
        ray = camera.rays(*centres[face])
        slopes = -(normals @ tangents.T) / (normals @ ray)[:, None]
        places = np.stack([column, row], axis=1) + 0.5
        both = np.cov(np.hstack([slopes, places]).T, bias=True)
        np.testing.assert_allclose(found.slope[face], slopes.mean(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.spread[face], np.trace(both[:2, :2]), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(found.mixed[face], both[:2, 2:], rtol=1e-6, atol=1e-10)
        np.testing.assert_allclose(found.places[face], both[2:, 2:], rtol=1e-6, atol=1e-10)
        # Derivatives of the slopes with respect to the normal, which noise turns within its tangent plane.
        turned = tangents[None] + slopes[:, :, None] * ray
        noise = np.einsum("kix,kjx->kij", turned, turned) / (normals @ ray)[:, None, None] ** 2
        np.testing.assert_allclose(found.noise[face], noise.mean(axis=0), rtol=1e-9)
    assert (found.count == 0).any()
    np.testing.assert_allclose(
        found.slope[found.count > 0], FaceMeans.of(mesh, normal_map).gradients[found.count > 0], rtol=1e-9, atol=1e-12
    )
