"""Check integration: exact on planes, second order elsewhere; sign, scale and gauge on any mesh."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import naive_integration
from meshes import bumpy_map, disc, point_mesh
from normalmesh import (
    NormalMap,
    NormalMeshError,
    Orthographic,
    Perspective,
    ScreenMesh,
    decimate,
    integrate,
)
from normalmesh.evaluation.synthetic.medallion import Medallion
from surfaces import grid_mesh, plane_map, rmse, sphere, waves
from thread_counts import on_one_and_on_several

FORMULATIONS = [
    {"formulation": "facets"},
    {"formulation": "vertices"},
    {"formulation": "vertices", "parameters": "constant"},
    {"formulation": "vertices", "parameters": "tight", "metric": "surface", "clamp": (0.026, 9.55)},
]
PINHOLE = Perspective(90.0, 80.0, 21.0, 14.0, skew=3.0)


@pytest.mark.parametrize("options", FORMULATIONS, ids=str)
@pytest.mark.parametrize("camera", [Orthographic(0.7), PINHOLE], ids=str)
def test_against_dense_twins(camera, options):
    normal_map = bumpy_map(camera=camera)
    mesh = point_mesh(normal_map.shape, 30)
    surface = integrate(mesh, normal_map, noise=0, refine=0, distance=2.0, discontinuities=False, **options)
    table = naive_integration.face_means(mesh, normal_map, 2 if options["formulation"] == "facets" else 1)
    if options["formulation"] == "facets":
        offsets = naive_integration.facet_offsets(mesh, table, camera is PINHOLE)
        expected = naive_integration.facets_at_vertices(mesh, table, offsets, camera is PINHOLE)
    else:
        rest = (options.get("parameters", "gradient"), options.get("metric", "screen"), options.get("clamp"))
        expected = naive_integration.vertex_unknowns(mesh, table, camera, *rest)
    found = camera.depth(surface.vertices)
    found = np.log(found) if camera is PINHOLE else found
    difference = found - expected
    assert np.ptp(difference) < 1e-7 * np.ptp(expected)
    assert surface.integration.method in ("cholesky", "multigrid")
    assert surface.integration.error <= 1e-7


@pytest.mark.parametrize("options", FORMULATIONS, ids=str)
@pytest.mark.parametrize("direction", [(0, 0, 1), (1, 0.2, 1), (-0.3, -2, 0.8), (0.5, 0.5, 0.3)])
def test_orthographic_planes_are_exact(direction, options):
    camera = Orthographic(0.25)
    whole, round_plane = (plane_map(direction, (40, 40), camera, mask) for mask in (None, disc(40, 19)))
    for mesh, plane in ((point_mesh((40, 40), 60), whole), (decimate(round_plane, vertices=40), round_plane)):
        surface = integrate(mesh, plane, **options)
        offset = surface.vertices @ plane.normals[20, 20].astype(np.float64)
        assert np.ptp(offset) <= 1e-9 * np.ptp(surface.vertices, axis=0).max()


@pytest.mark.parametrize("options", FORMULATIONS[:2], ids=str)
def test_perspective_planes_of_constant_depth_are_exact(options):
    plane = plane_map((0, 0, 1), (30, 40), PINHOLE)
    surface = integrate(point_mesh((30, 40), 60), plane, distance=3.0, **options)
    np.testing.assert_allclose(surface.vertices[:, 2], -3.0, rtol=1e-9)


SLANTED = plane_map((0.4, 0.2, 1), (128, 128), Perspective(160.0, 150.0, 64.0, 60.0, skew=1.0))


def off_plane(surface):
    """Return the spread of the logarithm of n · x over the vertices, 0 for a plane in space."""
    return np.log(-surface.vertices @ SLANTED.normals[0, 0].astype(np.float64)).std()


@pytest.mark.parametrize("discontinuities", [True, False])
def test_slanted_perspective_planes_are_exact(discontinuities):
    for mesh in (grid_mesh(7, 128), decimate(SLANTED, vertices=50)):
        assert off_plane(integrate(mesh, SLANTED, discontinuities=discontinuities)) < 1e-9


def test_slanted_perspective_planes_are_of_second_order_at_vertices():
    """The paper's system takes logarithms of depth to be linear on the screen, which they are not."""
    errors = [
        off_plane(integrate(grid_mesh(cells, 128), SLANTED, refine=0, formulation="vertices")) for cells in (3, 13)
    ]
    assert 1e-9 < errors[1] < errors[0] / 8


@pytest.mark.parametrize("options", FORMULATIONS[:2], ids=str)
@pytest.mark.parametrize(
    "camera", [Orthographic(), Perspective(400.0, 400.0, 128.0, 128.0)], ids=["parallel", "pinhole"]
)
def test_second_order_on_a_sphere(camera, options):
    """The diagonals of the cells miss the pixel centres. Measured factors: 3.6 to 4.0."""
    normal_map, depth = sphere(256, camera, radius=0.8 if isinstance(camera, Orthographic) else 1.2)
    errors = [
        rmse(integrate(grid_mesh(cells, 256), normal_map, refine=0, **options), depth, normal_map.mask)
        for cells in (5, 10, 20)
    ]
    assert errors[0] / errors[1] > 3.4
    assert errors[1] / errors[2] > 3.4


@pytest.mark.parametrize("options", FORMULATIONS, ids=str)
@pytest.mark.parametrize(
    "camera", [Orthographic(0.1), Perspective(80.0, 80.0, 32.0, 32.0)], ids=["parallel", "pinhole"]
)
def test_spheres_bulge_towards_the_viewer(camera, options):
    normal_map, depth = sphere(64, camera)
    surface = integrate(decimate(normal_map, vertices=150), normal_map, **options)
    found = surface.depth_map()
    here = normal_map.mask & np.isfinite(found)
    assert np.corrcoef(found[here], depth[here])[0, 1] > 0.99
    centre = surface.vertices[np.argmin(np.linalg.norm(surface.screen - 32, axis=1)), 2]
    assert centre > surface.vertices[:, 2].mean()
    assert (surface.face_normals[:, 2] > 0).mean() > 0.99
    assert rmse(surface, depth, normal_map.mask) < 0.03 * np.ptp(depth[here])


def test_pixel_size_scales_heights():
    mesh = point_mesh((48, 48), 100)
    one, other = (integrate(mesh, waves((48, 48), size)[0]) for size in (1.0, 0.02))
    np.testing.assert_allclose(0.02 * one.vertices, other.vertices, atol=1e-6)
    assert other.units == "px"
    assert integrate(mesh, waves((48, 48))[0], units="mm").units == "mm"


@pytest.mark.parametrize("distance", [1.0, 750.0])
def test_distance_is_the_mean_distance(distance):
    normal_map = sphere(48, Perspective(70.0, 70.0, 24.0, 24.0))[0]
    surface = integrate(decimate(normal_map, vertices=120), normal_map, distance=distance)
    depth = -surface.vertices[:, 2]
    mean = np.average(depth[surface.faces].mean(axis=1), weights=surface.mesh.areas)
    assert mean == pytest.approx(distance)
    again = integrate(decimate(normal_map, vertices=120), normal_map)
    np.testing.assert_allclose(surface.vertices, distance * again.vertices)


@pytest.mark.parametrize("options", FORMULATIONS, ids=str)
def test_wide_angles_stay_in_front_of_the_camera(options):
    """The view of 100° shows a wall, or the inside of a sphere around the camera."""
    focal = 32 / np.tan(np.radians(50))
    camera = Perspective(focal, focal, 32.0, 32.0)
    v, u = np.indices((64, 64)) + 0.5
    inside = -camera.rays(u, v)
    inside /= np.linalg.norm(inside, axis=-1, keepdims=True)
    for normals in (inside, np.broadcast_to([0.3, 0.0, 0.954], (64, 64, 3)).copy()):
        normal_map = NormalMap(normals, None, camera)
        surface = integrate(decimate(normal_map, vertices=200), normal_map, **options)
        depth = -surface.vertices[:, 2]
        assert np.isfinite(depth).all()
        assert depth.min() > 0
    normal_map = NormalMap(inside, None, camera)
    away = np.linalg.norm(integrate(decimate(normal_map, vertices=400), normal_map, **options).vertices, axis=1)
    assert away.std() < 0.02 * away.mean()


@pytest.mark.parametrize("options", FORMULATIONS[:2], ids=str)
def test_numbering_does_not_matter(options):
    normal_map = waves((48, 48))[0]
    mesh = point_mesh((48, 48), 100)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(mesh.vertices))
    number = np.argsort(order).astype(np.int32)
    faces = number[mesh.faces][rng.permutation(len(mesh.faces))]
    turned = np.stack([np.roll(face, rng.integers(3)) for face in faces])
    one = integrate(mesh, normal_map, refine=0, **options)
    other = integrate(ScreenMesh(mesh.vertices[order], turned), normal_map, refine=0, **options)
    np.testing.assert_allclose(other.vertices, one.vertices[order], atol=1e-7)


@pytest.mark.parametrize("options", FORMULATIONS[:2], ids=str)
def test_place_in_the_image_does_not_matter(options):
    mask = np.zeros((70, 80), bool)
    mask[2:42, 3:43] = True
    shifted = np.roll(mask, (20, 31), axis=(0, 1))
    here, there = waves(mask.shape, mask=mask)[0], waves(mask.shape, mask=shifted, shift=(31, 20))[0]
    mesh = decimate(here, vertices=120)
    moved = ScreenMesh(mesh.vertices + np.array([31.0, 20.0]), mesh.faces)
    one, other = integrate(mesh, here, refine=0, **options), integrate(moved, there, refine=0, **options)
    np.testing.assert_allclose(other.vertices[:, 2], one.vertices[:, 2], atol=1e-6)


def test_any_number_of_threads():
    normal_map = Medallion(100).normal_map
    mesh = decimate(normal_map, vertices=250)
    alone, together = on_one_and_on_several(lambda: integrate(mesh, normal_map, noise=2))
    assert np.array_equal(alone.vertices, together.vertices)
    assert np.array_equal(alone.faces, together.faces)
    assert alone.integration.refinements == together.integration.refinements


@pytest.mark.parametrize("options", FORMULATIONS, ids=str)
@pytest.mark.parametrize(
    "camera", [Orthographic(0.5), Perspective(90.0, 90.0, 30.0, 20.0)], ids=["parallel", "pinhole"]
)
def test_components_holes_and_isolated_vertices(camera, options):
    mask = np.ones((40, 60), bool)
    mask[:, 28:31] = False
    mask[10:20, 8:15] = mask[30, 50] = False
    mask[2:, 57:] = False
    mask[20, 58] = True
    normal_map = bumpy_map((40, 60), mask=mask, camera=camera, height=1.0)
    mesh = decimate(normal_map, vertices=150)
    alone = np.array([[5.0, 5.0], [35.0, 20.0]])
    loose = ScreenMesh(np.concatenate([alone[:1], mesh.vertices, alone[1:]]), mesh.faces + np.int32(1))
    surface = integrate(loose, normal_map, noise=0, distance=4.0, refine=0, **options)
    assert np.isfinite(surface.vertices).all()
    depth, faces = camera.depth(surface.vertices), surface.faces
    assert surface.components.max() == mesh.components.max() + 2
    mean = 0.0 if isinstance(camera, Orthographic) else 4.0
    for component in range(surface.components.max() + 1):
        here = faces[surface.components[faces[:, 0]] == component]
        if len(here):
            area = surface.mesh.areas[surface.components[faces[:, 0]] == component]
            assert np.average(depth[here].mean(axis=1), weights=area) == pytest.approx(mean, abs=1e-9)
    lonely = [0, len(loose.vertices) - 1]
    assert depth[lonely] == pytest.approx([mean, mean])
    assert np.array_equal(surface.screen[lonely], alone)
    without = integrate(mesh, normal_map, noise=0, distance=4.0, refine=0, **options)
    np.testing.assert_allclose(np.delete(surface.vertices, lonely, axis=0), without.vertices, atol=1e-7)
    # Refinement may leave out vertices without faces; no component gets more vertices instead.
    refined = integrate(loose, normal_map, noise=0, distance=4.0, **options)
    assert len(refined.vertices) in (len(mesh.vertices), len(loose.vertices))
    assert len(np.unique(refined.components[refined.faces[:, 0]])) == mesh.components.max() + 1


def test_components_are_alone():
    """A component does not depend on another one."""
    mask = np.ones((24, 49), bool)
    mask[:, 24] = False
    normal_map = waves(mask.shape, mask=mask)[0]
    left = mask & (np.arange(49) < 24)
    both = integrate(decimate(normal_map, vertices=120, rounds=1, passes=0), normal_map, refine=0)
    mesh = both.mesh
    part = mesh.faces[mesh.components[mesh.faces[:, 0]] == mesh.components[np.argmin(mesh.vertices[:, 0])]]
    alone = integrate(ScreenMesh(mesh.vertices, part), waves(mask.shape, mask=left)[0], refine=0)
    used = np.unique(part)
    np.testing.assert_allclose(alone.vertices[used], both.vertices[used], atol=1e-5)


masks = arrays.arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))).filter(np.any)


@pytest.mark.filterwarnings("ignore:.*were clamped:normalmesh.NormalMeshWarning")
@settings(max_examples=30)
@given(masks, st.integers(0, 3), st.sampled_from(FORMULATIONS), st.booleans())
def test_any_mask(mask, seed, options, perspective):
    camera = Perspective(20.0, 20.0, 5.0, 4.0) if perspective else Orthographic()
    normal_map = bumpy_map(mask.shape, seed, mask, camera)
    surface = integrate(decimate(normal_map, vertices=12), normal_map, refine=2, **options)
    assert np.isfinite(surface.vertices).all()
    assert surface.mesh.check().ok


@pytest.mark.parametrize("options", FORMULATIONS, ids=str)
def test_one_pixel(options):
    normal_map = plane_map((-0.5, 0.25, 1), (1, 1))
    surface = integrate(ScreenMesh.from_mask(normal_map.mask), normal_map, **options)
    expected = 0.5 * (surface.screen[:, 0] - 0.5) + 0.25 * (surface.screen[:, 1] - 0.5)
    np.testing.assert_allclose(surface.vertices[:, 2], expected, atol=1e-7)


def test_invalid_meshes_are_refused():
    normal_map = waves((8, 8))[0]
    square = np.array([[0.0, 0], [0, 8], [8, 8], [8, 0], [1, 7]])
    cases = {
        "the mesh cannot be integrated: 1 inverted face$": [[0, 2, 1]],
        "1 edge with more than two faces": [[0, 1, 2], [0, 2, 3], [0, 4, 2]],
        "it has no faces": np.empty((0, 3), np.int32),
    }
    for message, faces in cases.items():
        with pytest.raises(NormalMeshError, match=message):
            integrate(ScreenMesh(square, np.array(faces, np.int32)), normal_map)
    flat = ScreenMesh(np.array([[0.0, 0], [4, 4], [8, 8]]), np.array([[0, 1, 2]], np.int32))
    with pytest.raises(NormalMeshError, match=r"1 degenerate face$"):
        integrate(flat, normal_map)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formulation": "edges"}, "formulation must be one of facets, vertices, not 'edges'"),
        ({"formulation": "vertices", "parameters": "loose"}, "parameters must be one of"),
        ({"formulation": "vertices", "metric": "space"}, "metric must be one of"),
        ({"distance": 0}, "distance must be a positive number, not 0"),
        ({"distance": float("nan")}, "distance must be a positive number"),
        ({"refine": -1}, "refine must be a whole number from 0 to 10000, not -1"),
        ({"refine": 1.5}, "refine must be a whole number"),
        ({"refine": True}, "refine must be a whole number"),
        ({"noise": -1}, "noise must be an angle"),
        ({"units": ""}, "units must be the name of a unit"),
    ],
)
def test_wrong_options_are_refused(options, message):
    normal_map = waves((8, 8))[0]
    with pytest.raises(NormalMeshError, match=message):
        integrate(grid_mesh(2, 8), normal_map, **options)


@pytest.mark.parametrize("camera", [Orthographic(0.7), PINHOLE], ids=str)
def test_large_meshes_are_solved_with_less_memory_but_as_exactly(camera, monkeypatch):
    normal_map = bumpy_map(camera=camera)
    mesh = point_mesh(normal_map.shape, 60)
    expected = integrate(mesh, normal_map, noise=0, discontinuities=False)
    monkeypatch.setattr("normalmesh.integration.mesh_solver.SINGLE_FROM", 0)
    found = integrate(mesh, normal_map, noise=0, discontinuities=False)
    assert found.integration.error <= 1e-7
    np.testing.assert_allclose(found.vertices, expected.vertices, atol=1e-7)
