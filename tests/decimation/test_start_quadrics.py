"""Quadrics of coarse start meshes against their naive twins, and the vertex counts that thresholds lead to."""

import json
from statistics import geometric_mean

import numpy as np
import pytest

import naive
from meshes import bumpy_map, disc
from normalmesh import NormalMap, Orthographic, Perspective, decimate, pixel_faces
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.quadrics import Pixels, vertex_quadrics
from normalmesh.decimation.start_quadrics import start_quadrics
from normalmesh.evaluation.datasets import find_dataset
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.screen_mesh import ScreenMesh
from surfaces import noisy, sphere, waves


@pytest.mark.parametrize("camera", [Orthographic(0.3), Perspective(60, 56, 9, 8, skew=0.5)], ids=str)
def test_sums_against_loops(camera):
    mask = disc(20, 9.0)
    mask[9, 8] = False
    normal_map = bumpy_map(mask.shape, mask=mask, camera=camera)
    mesh = ClosedMesh.from_screen(Hierarchy.of(normal_map).mesh(np.inf), normal_map.shape)
    owner = np.where(mask, pixel_faces(mesh.to_screen(), normal_map.shape), -1)
    expected = np.zeros((len(mesh.vertices), 6))
    pixels_of_faces = set()
    for f, corners in enumerate(mesh.faces[: mesh.real_faces]):
        positions = mesh.vertices[corners]
        pixels = [tuple(at) for at in np.argwhere(owner == f)]
        pixels_of_faces.add(min(len(pixels), 2))
        if not pixels:
            column, row = np.floor(positions.mean(axis=0)).astype(int)
            assert mask[row, column]
            pixels = [(row, column)]
        of_face = naive.face_sum(positions, pixels, normal_map, 1e-3)
        for vertex in corners:
            expected[vertex] += naive.moved_quadric(of_face, mesh.vertices[vertex] - positions.mean(axis=0))
    assert pixels_of_faces == {0, 1, 2}
    found = start_quadrics(mesh, Pixels(normal_map, 1e-3))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_sums_on_the_pixel_grid_are_those_of_its_faces():
    """In the mean over vertices and directions: on the grid, the two faces of a pixel share its corners unevenly."""
    normal_map = waves((60, 60))[0]
    mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
    pixels = Pixels(normal_map)
    found, expected = start_quadrics(mesh, pixels), vertex_quadrics(mesh, pixels)
    assert found[:, [0, 2]].sum() == pytest.approx(expected[:, [0, 2]].sum(), rel=0.1)


def relief(size=300):
    return Medallion(size).normal_map


@pytest.mark.parametrize("threshold", [0.2, 2, 64, 2048])
@pytest.mark.parametrize("make", [relief, lambda: sphere(330)[0], lambda: noisy(waves((300, 300))[0], 1)])
def test_every_start_gives_as_many_vertices(make, threshold):
    normal_map = make()
    counts = [len(decimate(normal_map, threshold=threshold, start=start).vertices) for start in ("adaptive", "pixels")]
    assert counts[0] == pytest.approx(counts[1], rel=0.2)


def test_a_plane_has_vertices_by_its_threshold():
    """Where only λ counts, a coarse start is fine enough, too."""
    plane = NormalMap(np.tile(np.float32([0, 0, 1]), (400, 400, 1)))
    counts = [len(decimate(plane, threshold=1e-3, start=start).vertices) for start in ("adaptive", "pixels")]
    assert counts[1] > 1000
    assert counts[0] == pytest.approx(counts[1], rel=0.2)


@pytest.mark.parametrize("options", [{}, {"start": "pixels", "rounds": 5, "passes": 10, "align": "each"}], ids=str)
def test_thresholds_give_the_counts_of_the_authors_program(cases, options):
    reference = json.loads((cases / "reference_results.json").read_text())
    for threshold, names in {
        2: ("relief_igea512", "ridges512", "sphere512"),
        64: ("relief_igea512", "sphere512", "terrain_sthelens_327x466", "diligent_pot2", "mesh_nefertiti_persp_512"),
        2048: ("relief_igea512", "ridges512", "sphere512"),
    }.items():
        ratios = []
        for name in names:
            normal_map = find_dataset("folders").load(cases, name).normal_map
            count = len(decimate(normal_map, threshold=threshold, **options).vertices)
            ratios.append(count / reference[name][f"e{threshold}"]["vertices"])
        assert 0.9 < geometric_mean(ratios) < 1.1
        assert min(ratios) > 0.8
        assert max(ratios) < 1.25
