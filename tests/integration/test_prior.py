"""Check depth priors: they make surfaces metric and correct biased normals."""

import warnings

import numpy as np
import pytest
from scipy import ndimage

from meshes import disc, point_mesh
from normalmesh import (
    NormalMap,
    NormalMeshError,
    NormalMeshWarning,
    Perspective,
    ScreenMesh,
    decimate,
    find_jumps,
    integrate,
    pixel_faces,
)
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.mesh_solver import SAMPLES
from normalmesh.integration.pixel_jumps import pixel_parts
from normalmesh.integration.prior import PIXEL_WEIGHT, POINT_WEIGHT, Prior
from normalmesh.integration.prior_faces import face_labels
from normalmesh.jumps.finding import jumps_along
from normalmesh.jumps.jump_pixels import PixelsInMemory
from normalmesh.normals.mask_labels import component_labels
from normalmesh.solvers import multigrid, sparse_system
from surfaces import centres, flap, grid_mesh, plane_map, rmse, sphere, wave_height, waves

FORMULATIONS = ["facets", "vertices"]
PINHOLE = Perspective(80.0, 80.0, 32.0, 32.0)


def two_halves():
    mask = np.ones((64, 64), bool)
    mask[:, 31:33] = False
    return mask


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_one_point_a_component_makes_planes_metric(formulation):
    """One point on each of the two parts of a plane restores the plane exactly."""
    plane = plane_map((0.3, -0.5, 1), (64, 64), mask=two_halves())
    normal = plane.normals[0, 0].astype(np.float64)
    points = []
    for u, v in ((10.5, 20.5), (50.2, 40.9)):
        points.append([u, v, 7 - (normal[0] * u - normal[1] * v) / normal[2]])
    surface = integrate(decimate(plane, vertices=60), plane, formulation=formulation, prior=points)
    assert surface.components.max() == 1
    np.testing.assert_allclose(surface.vertices @ normal, 7 * normal[2], atol=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_one_point_a_component_makes_depths_metric(formulation):
    normal_map, depth = sphere(64, PINHOLE, mask=two_halves())
    points = [[u, v, 300 * depth[int(v), int(u)]] for u, v in ((20.5, 32.5), (44.5, 30.5))]
    surface = integrate(decimate(normal_map, vertices=400), normal_map, formulation=formulation, prior=points)
    found = surface.depth_map()
    for u, v, value in points:
        assert found[int(v), int(u)] == pytest.approx(value, rel=3e-3)
    here = normal_map.mask & np.isfinite(found)
    assert np.abs(found[here] / (300 * depth[here]) - 1).mean() < 0.01


def test_components_without_a_point_keep_their_mean():
    normal_map, height = waves((64, 64), mask=two_halves())
    surface = integrate(decimate(normal_map, vertices=200), normal_map, prior=[[10.5, 20.5, 500 + height[20, 10]]])
    left = surface.components == surface.components[np.argmin(surface.screen[:, 0])]
    assert surface.vertices[left, 2].min() > 490
    of_right = ~left[surface.faces[:, 0]]
    heights = surface.vertices[surface.faces[of_right], 2].mean(axis=1)
    assert np.average(heights, weights=surface.mesh.areas[of_right]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("camera", [None, PINHOLE], ids=["parallel", "pinhole"])
def test_depth_maps(formulation, camera):
    normal_map, depth = waves((64, 64)) if camera is None else sphere(64, camera)
    known = np.where(normal_map.mask, depth + 5, np.nan)
    known[:20] = np.nan
    surface = integrate(decimate(normal_map, vertices=300), normal_map, formulation=formulation, prior=known)
    found = surface.depth_map()
    here = normal_map.mask & np.isfinite(found)
    scale = 1.0 if camera is None else 5.0
    truth = known if camera is None else depth + 5
    here[:20] = False
    assert np.sqrt(np.mean((found - truth)[here] ** 2)) < 0.15 * scale


def test_a_heavy_point_wins_over_a_light_one():
    plane = plane_map((0, 0, 1), (32, 32))
    mesh = point_mesh((32, 32), 40)
    points = np.array([[8.5, 8.5, 0.0, 1000.0], [24.5, 24.5, 1.0, 0.001]])
    one = integrate(mesh, plane, prior=points, discontinuities=False).vertices[:, 2]
    points[:, 3] = points[::-1, 3]
    other = integrate(mesh, plane, prior=points, discontinuities=False).vertices[:, 2]
    assert np.abs(one).max() < 1e-3
    assert np.abs(other - 1).max() < 1e-3


def test_prior_weight_is_that_of_points_without_one():
    normal_map = waves((32, 32))[0]
    mesh = point_mesh((32, 32), 40)
    points = np.array([[8.5, 8.5, 0.0], [24.5, 24.5, 3.0]])

    def heights(**options):
        return integrate(mesh, normal_map, refine=0, **options).vertices

    own = np.column_stack([points, [2.5, 2.5]])
    assert np.array_equal(heights(prior=points, prior_weight=2.5), heights(prior=own))
    assert np.array_equal(heights(prior=own, prior_weight=99.0), heights(prior=own))
    assert np.array_equal(heights(prior=points), heights(prior=points, prior_weight=POINT_WEIGHT))
    assert not np.array_equal(heights(prior=points), heights(prior=own))
    depth = np.zeros((32, 32))
    assert np.array_equal(heights(prior=depth), heights(prior=depth, prior_weight=PIXEL_WEIGHT))


def bent_waves():
    """Return the normals of waves with the bias of a bowl, and the heights of the waves alone."""
    normal_map, height = waves((64, 64))
    u, v = centres((64, 64))
    normals = normal_map.normals / normal_map.normals[..., 2:]
    normals[..., 0] -= 0.006 * (u - 32)
    normals[..., 1] += 0.006 * (v - 32)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True)), height


@pytest.mark.parametrize(
    "options", [{}, {"discontinuities": False}, {"formulation": "vertices"}], ids=["robust", "plain", "vertices"]
)
def test_points_correct_biased_normals(options):
    """Measured: 1.30 px without, 0.82 px with nine points, 0.59 px with sixteen."""
    bent, height = bent_waves()
    mesh = decimate(bent, vertices=300)
    errors = [rmse(integrate(mesh, bent, **options), height, bent.mask)]
    for axis in ((10.5, 32.5, 54.5), (8.5, 24.5, 40.5, 56.5)):
        points = [[u, v, height[int(v), int(u)]] for u in axis for v in axis]
        errors.append(rmse(integrate(mesh, bent, prior=points, **options), height, bent.mask))
    assert errors[1] < 0.7 * errors[0]
    assert errors[2] < 0.5 * errors[0]


@pytest.mark.filterwarnings("ignore:the prior changes the slope")
@pytest.mark.parametrize("options", [{}, {"discontinuities": False}, {"formulation": "vertices"}], ids=str)
def test_heavy_points_are_on_the_surface(options):
    """With a large weight the surface passes through points that contradict the normals and each other."""
    normal_map = waves((48, 48))[0]
    points = np.array([[12.2, 12.9, 5.0], [36.7, 12.1, -5.0], [24.4, 36.6, 0.0]])
    mesh = point_mesh((48, 48), 120)
    surface = integrate(mesh, normal_map, prior=points, prior_weight=1e6, refine=0, **options)
    owner = pixel_faces(mesh, (48, 48))
    for u, v, height in points:
        corners = surface.vertices[surface.faces[owner[int(v), int(u)]]]
        plane = np.linalg.solve(np.column_stack([corners[:, 0], -corners[:, 1], np.ones(3)]), corners[:, 2])
        assert plane @ [u, v, 1] == pytest.approx(height, abs=1e-2)


def test_points_off_the_foreground_are_left_out_once():
    normal_map = waves((64, 64), mask=disc(64, 25))[0]
    mesh = decimate(normal_map, vertices=100)
    points = [[32.0, 32.0, 4.0], [2.0, 2.0, 50.0], [-30.0, 1e12, 50.0]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        surface = integrate(mesh, normal_map, prior=points)
    assert [str(each.message) for each in caught if each.category is NormalMeshWarning] == [
        "2 control points lie off the foreground and are left out"
    ]
    assert np.array_equal(surface.vertices, integrate(mesh, normal_map, prior=points[:1]).vertices)


def middle_of(pixels):
    return pixels[len(pixels) // 2]


@pytest.mark.parametrize("given", ["depth map", "points"])
def test_each_component_of_a_porous_mask_keeps_its_own_points(given):
    """The decimated mesh leaves one pixel in eight uncovered, and covers pixels of other components."""
    noise = ndimage.gaussian_filter(np.random.default_rng(0).random((96, 96)), 0.7)
    normal_map, height = waves((96, 96), mask=noise > np.quantile(noise, 0.55), steepness=0.6)
    labels, count = component_labels(normal_map.mask)
    offset = np.random.default_rng(1).uniform(-100, 100, count + 1)
    truth = height + offset[labels]
    prior = np.where(normal_map.mask, truth, np.nan)
    if given == "points":
        pixels = np.array(
            [np.argwhere(labels == label)[np.count_nonzero(labels == label) // 2] for label in range(1, count + 1)]
        )
        prior = np.column_stack([pixels[:, ::-1] + 0.5, truth[tuple(pixels.T)]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mesh = decimate(normal_map, vertices=400)
        surface = integrate(mesh, normal_map, prior=prior, discontinuities=False)
    # Vertices lie on corners of pixels and between them: the truth of their component is continued to them.
    label = np.zeros(len(surface.vertices), int)
    label[surface.faces] = face_labels(surface.mesh, labels)[:, None]
    assert np.array_equal(np.unique(label), np.arange(1, count + 1))
    u, v = surface.screen.T
    errors = surface.vertices[:, 2] - offset[label] - wave_height(u, v, steepness=0.6)[0]
    worst = np.abs([np.median(errors[label == each]) for each in range(1, count + 1)])
    assert np.count_nonzero(worst > 1) == 0, f"{np.count_nonzero(worst > 1)} of {count} components"


def test_points_beside_a_component_go_to_the_nearest_foreground():
    mask = np.zeros((20, 40), bool)
    mask[4:16, 4:16] = mask[4:16, 19:36] = True
    plane = plane_map((0, 0, 1), (20, 40), mask=mask)
    points = [[16.9, 10.0, 3.0], [18.1, 10.0, 7.0]]
    surface = integrate(decimate(plane, vertices=8), plane, prior=points)
    left = surface.screen[:, 0] < 17.5
    np.testing.assert_allclose(surface.vertices[:, 2], np.where(left, 3.0, 7.0), atol=1e-9)


def test_points_far_from_the_mesh_of_their_component_are_left_out():
    normal_map = waves((32, 32))[0]
    mesh = grid_mesh(2, 8)
    with pytest.warns(NormalMeshWarning, match="1 points of the prior have no face of their component in reach"):
        surface = integrate(mesh, normal_map, prior=[[4.5, 4.5, 2.0], [30.5, 30.5, 90.0]])
    assert np.array_equal(surface.vertices, integrate(mesh, normal_map, prior=[[4.5, 4.5, 2.0]]).vertices)


def test_a_single_point_only_shifts_beside_a_jump():
    normal_map = flap()[1]
    jumps = find_jumps(normal_map)
    assert jumps.lines
    mesh = decimate(normal_map, vertices=200, jumps=jumps)
    plain = integrate(mesh, normal_map, jumps=jumps)
    found = integrate(mesh, normal_map, jumps=jumps, prior=[[20.5, 40.5, 1e6, 1e9]])
    assert np.array_equal(found.screen, plain.screen)
    assert np.ptp(found.vertices[:, 2] - plain.vertices[:, 2]) < 1e-8


def test_pixels_beside_a_jump_stay_on_their_side():
    """Cuts are smoother than the sides of pixels that they follow; a dome stands 40 px above the ground.

    Measured: 0.05 px, and 0.29 px if they may act on the other side.
    """
    u, v = centres((64, 64))
    inside = np.hypot(u - 32, v - 32) < 20
    dome = np.sqrt(np.maximum(40**2 - (u - 32) ** 2 - (v - 32) ** 2, 0))
    normals = np.where(inside[..., None], np.stack([u - 32, 32 - v, dome], axis=-1) / 40, [0.0, 0.0, 1.0])
    normal_map = NormalMap(normals)
    edge = inside & ~ndimage.binary_erosion(inside)
    jumps = jumps_along(edge, PixelsInMemory(normal_map))
    parts = pixel_parts(normal_map.mask, jumps.lines)
    truth = np.where(parts == parts[32, 32], dome, 0.0)
    assert np.count_nonzero((truth > 0) ^ inside) < 20
    mesh = decimate(normal_map, vertices=150, jumps=jumps)
    surface = integrate(mesh, normal_map, jumps=jumps, prior=truth, prior_weight=10.0)
    wrong_side = face_labels(surface.mesh, parts)[pixel_faces(surface.mesh, (64, 64))] != parts
    assert 0 < np.count_nonzero(wrong_side) < 100
    away = ndimage.distance_transform_edt(~edge) > 3
    assert np.sqrt(np.mean((surface.depth_map() - truth)[away] ** 2)) < 0.12


def unknown(surface):
    """Return the unknown of the camera at the vertices, in px."""
    depth = surface.camera.depth(surface.vertices)
    return (np.log(depth) if surface.camera.is_central else depth) / surface.camera.pixel_length


def by_multigrid(monkeypatch):
    monkeypatch.setattr(sparse_system, "installed_memory", lambda: 1)
    monkeypatch.setattr(multigrid, "_BOTTOM", 20)


@pytest.mark.parametrize("weight", [1e-9, 100.0, 1e9])
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("camera", [None, PINHOLE], ids=["parallel", "pinhole"])
def test_a_single_point_only_shifts(camera, formulation, weight):
    """Whatever its weight and its depth: the refined mesh is that without a prior, too."""
    normal_map = waves((64, 64))[0] if camera is None else sphere(64, camera)[0]
    mesh = decimate(normal_map, vertices=150)
    plain = integrate(mesh, normal_map, formulation=formulation)
    found = integrate(mesh, normal_map, formulation=formulation, prior=[[33.3, 30.1, 1e6, weight]])
    assert np.array_equal(found.faces, plain.faces)
    assert np.array_equal(found.screen, plain.screen)
    assert np.ptp(unknown(found) - unknown(plain)) < 1e-9
    assert found.integration.error < 1e-7


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_single_point_only_shifts_with_multigrid(formulation, monkeypatch):
    normal_map = waves((64, 64))[0]
    mesh = point_mesh((64, 64), 300)
    plain = integrate(mesh, normal_map, formulation=formulation, refine=0)
    by_multigrid(monkeypatch)
    found = integrate(mesh, normal_map, formulation=formulation, refine=0, prior=[[33.3, 30.1, 1e6, 1e9]])
    assert found.integration.method == "multigrid"
    assert np.ptp(unknown(found) - unknown(plain)) < 1e-6


def heights_with_two_points(mesh, normal_map, points, formulation):
    """Return the heights (N,) with two points, which pull with opposite forces at the surface without them."""
    if formulation == "facets":
        system = FacetSystem.of(FaceMeans.of(mesh, normal_map, SAMPLES))
    else:
        system = CotangentSystem.of(FaceMeans.of(mesh, normal_map))
    screen, depth, weights = points[:, :2], points[:, 2], points[:, 3]
    column, row = screen.astype(int).T
    rows, known = system.prior_rows(screen, pixel_faces(mesh, normal_map.shape)[row, column])
    inverse = np.linalg.pinv(system.matrix().toarray(), rcond=1e-12)
    plain, bend = inverse @ system.right_side(), inverse @ (rows[0] - rows[1]).toarray()[0]
    misfits, yielding = (depth - depth[0]) - known - rows @ plain, rows @ bend
    force = (misfits[0] - misfits[1]) / (yielding[0] - yielding[1] + (1 / weights).sum())
    found = plain + force * bend + (misfits[0] - force * yielding[0] - force / weights[0])
    return (system.at_vertices(found) if formulation == "facets" else found) + depth[0]


@pytest.mark.filterwarnings("ignore:the prior changes the slope")
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("weights", [(1e9, 1e9), (1e-9, 1e9), (1e-9, 1e-9), (1e9, 10.0)], ids=str)
def test_contradictory_points_of_any_weight_against_dense(weights, formulation, monkeypatch):
    normal_map = waves((48, 48))[0]
    mesh = point_mesh((48, 48), 120)
    points = np.array([[12.2, 12.9, 5e5, weights[0]], [36.7, 22.1, 5e5 - 5, weights[1]]])
    options = {"formulation": formulation, "refine": 0, "discontinuities": False}
    expected = heights_with_two_points(mesh, normal_map, points, formulation)
    surface = integrate(mesh, normal_map, prior=points, **options)
    assert np.abs(surface.vertices[:, 2] - expected).max() < 1e-8
    by_multigrid(monkeypatch)
    surface = integrate(mesh, normal_map, prior=points, **options)
    assert np.abs(surface.vertices[:, 2] - expected).max() < 1e-6
    assert surface.integration.error < 1e-6


@pytest.mark.filterwarnings("ignore:the prior changes the slope")
def test_heavy_depth_maps_are_exact_with_both_solvers(monkeypatch):
    normal_map, height = waves((24, 24))
    rough = height + np.random.default_rng(0).normal(size=height.shape) + 1e6
    mesh = point_mesh((24, 24), 40)
    options = {"refine": 0, "discontinuities": False, "prior": rough, "prior_weight": 1e9}
    direct = integrate(mesh, normal_map, **options)
    by_multigrid(monkeypatch)
    iterative = integrate(mesh, normal_map, **options)
    assert max(direct.integration.error, iterative.integration.error) < 1e-6
    assert np.abs(direct.vertices - iterative.vertices).max() < 1e-6


def test_a_mesh_between_pixel_centres_has_no_place_for_points():
    tiny = ScreenMesh(np.array([[3.6, 3.6], [3.6, 4.4], [4.4, 3.6]]), np.array([[0, 1, 2]], np.int32))
    with pytest.raises(NormalMeshError, match="no control point lies on the foreground"):
        integrate(tiny, waves((8, 8))[0], prior=[[0.5, 0.5, 4.0]])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([[1, 2]], r"prior must be control points \(number, 3 or 4\).* or a depth map of 8×8, not 1×2"),
        (np.zeros((8, 9)), "not 8×9"),
        (5.0, "prior must be control points"),
        ("far", "prior must be an array of numbers"),
        ([[1, 2, 3], [4]], "prior must be an array of numbers"),
        (np.empty((0, 3)), "the prior holds no finite depth on the foreground"),
        (np.full((8, 8), np.nan), "the prior holds no finite depth on the foreground"),
        ([[1, 2, np.nan]], "control points must be finite numbers, with positive weights"),
        ([[np.inf, 2, 1]], "control points must be finite numbers"),
        ([[1, 2, 1, 0]], "with positive weights"),
        ([[1, 2, 1, -1]], "with positive weights"),
        ([[100, 2, 1]], r"no control point lies on the foreground; are they u \(right\), v \(down\) in pixels\?"),
    ],
)
def test_invalid_priors_are_refused(prior, message):
    with pytest.raises(NormalMeshError, match=message):
        integrate(grid_mesh(2, 8), waves((8, 8))[0], prior=prior)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_wrong_weights_are_refused(weight):
    with pytest.raises(NormalMeshError, match="prior_weight must be a positive number"):
        integrate(grid_mesh(2, 8), waves((8, 8))[0], prior=[[1, 2, 3]], prior_weight=weight)


def test_depths_behind_a_pinhole_must_be_positive():
    normal_map = plane_map((0, 0, 1), (64, 64), PINHOLE)
    with pytest.raises(NormalMeshError, match="depths of the prior must be positive distances"):
        integrate(grid_mesh(2, 64), normal_map, prior=[[1, 2, -3]])
    assert Prior.of([[1, 2, np.e]], None, normal_map).unknown == pytest.approx([1.0])


@pytest.mark.parametrize("columns", [3, 4])
def test_points_that_could_be_a_depth_map_are_refused(columns):
    normal_map = plane_map((0.2, 0.1, 1), (5, columns))
    mesh = decimate(normal_map, vertices=10)
    with pytest.raises(NormalMeshError, match="could be control points or a depth map"):
        integrate(mesh, normal_map, prior=np.ones((5, columns)))
    assert len(integrate(mesh, normal_map, prior=np.ones((6, columns))).vertices) >= 3


def test_points_that_bend_the_surface_against_its_normals_are_reported():
    normal_map = plane_map((0.2, 0.1, 1), (40, 40))
    points = [[10, 10, 0], [13, 10, 30], [16, 10, 0], [19, 10, 30], [22, 10, 0]]
    with pytest.warns(NormalMeshWarning, match=r"the prior changes the slope of .* of a component by more than a half"):
        integrate(decimate(normal_map, vertices=30), normal_map, prior=points, prior_weight=1e6)
