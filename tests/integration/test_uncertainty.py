"""Standard deviations of heights, against sampled noise, the dense algebra, and each other."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import normalmesh as nm
from normalmesh.errors import NormalMeshError
from normalmesh.integration.noise_propagation import NoisePropagation
from normalmesh.integration.uncertainty import HeightDifference, part_text
from normalmesh.normals.noise import Noise
from thread_counts import on_one_and_on_several

SHAPE = 64, 80
DRAWS = 250


def _normals() -> np.ndarray:
    """Return the unit normals (H, W, 3) of a wavy surface."""
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    p, q = 0.7 * np.cos(u / 8) * np.cos(v / 11), -0.5 * np.sin(u / 8) * np.sin(v / 11)
    normals = np.stack([-p, q, np.ones(SHAPE)], axis=-1)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def _mask() -> np.ndarray:
    """Return a disc with a hole, and a smaller disc beside it."""
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    ring = (np.hypot(u - 29, v - 32) < 28) & (np.hypot(u - 24, v - 30) > 6)
    return ring | (np.hypot(u - 69, v - 20) < 9)


def _noisy(normals: np.ndarray, degrees: float, random: np.random.Generator) -> np.ndarray:
    """Return unit normals (H, W, 3) with noise of this standard deviation in each direction."""
    noise = math.radians(degrees) * random.normal(size=normals.shape)
    noise -= (noise * normals).sum(axis=-1, keepdims=True) * normals
    noisy = normals + noise
    return noisy / np.linalg.norm(noisy, axis=-1, keepdims=True)


def _integrated(mesh: nm.ScreenMesh, normals: np.ndarray, camera: nm.Camera, degrees: float, **options) -> nm.Surface:
    return nm.integrate(
        mesh, nm.NormalMap(normals, _mask(), camera), refine=0, discontinuities=False, noise=degrees, **options
    )


def _mesh(camera: nm.Camera, compression: float = 0.95) -> nm.ScreenMesh:
    return nm.decimate(nm.NormalMap(_normals(), _mask(), camera), compression=compression)


CAMERAS = {"orthographic": nm.Orthographic(0.1), "perspective": nm.Perspective.centred(100, SHAPE)}


@pytest.mark.parametrize(
    ("camera", "degrees", "options"),
    [
        ("orthographic", 0.5, {}),
        ("orthographic", 2.0, {}),
        ("orthographic", 0.5, {"formulation": "vertices"}),
        ("orthographic", 0.5, {"prior": [[10.5, 30.5, 2.0], [50.5, 30.5, 2.2]]}),
        ("perspective", 0.5, {"distance": 300.0}),
    ],
)
def test_deviations_are_those_of_sampled_noise(camera, degrees, options):
    lens, random = CAMERAS[camera], np.random.default_rng(1)
    mesh, normals = _mesh(lens), _normals()
    surface = _integrated(mesh, normals, lens, degrees, **options)
    draws = [_integrated(mesh, _noisy(normals, degrees, random), lens, degrees, **options) for _ in range(DRAWS)]
    heights = np.array([each.vertices[:, 2] for each in draws])
    sampled, found = heights.std(axis=0), surface.uncertainty(mesh=False)
    for part in range(2):
        here = surface.components == part
        ratio = np.sqrt((found[here] ** 2).mean() / (sampled[here] ** 2).mean())
        assert ratio == pytest.approx(1, abs=0.08 if part else 0.06)
    usual = found > 0.5 * np.median(found)
    assert np.quantile(found[usual] / sampled[usual], [0.05, 0.95]) == pytest.approx([1, 1], abs=0.22)
    pairs = random.choice(np.flatnonzero(surface.components == 0), (12, 2))
    ratios = [surface.height_difference(a, b).noise / (heights[:, a] - heights[:, b]).std() for a, b in pairs if a != b]
    assert np.median(ratios) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("camera", CAMERAS)
def test_model_is_that_of_dense_algebra(camera):
    surface = _integrated(_mesh(CAMERAS[camera]), _normals(), CAMERAS[camera], 1.0)
    model = NoisePropagation.of(surface, None)
    inverse = np.linalg.pinv(model.matrix.toarray(), hermitian=True)
    covariance = inverse @ model.middle.toarray() @ inverse
    part = surface.components
    centring = np.eye(len(part)) - (part[:, None] == part) * model.levels
    covariance = centring @ covariance @ centring.T
    np.testing.assert_allclose(model.variances(), np.diag(covariance), rtol=1e-5)
    functional = np.zeros(len(part))
    functional[np.flatnonzero(part == 1)[[3, 11]]] = 1, -1
    np.testing.assert_allclose(model.variance(functional), [0, functional @ covariance @ functional], rtol=1e-5)


def test_differences_agree_with_vertices():
    # The centre of a pixel: a prior acts on the face that owns it.
    fixed = (20.5, 50.5)
    camera = CAMERAS["orthographic"]
    surface = _integrated(_mesh(camera), _normals(), camera, 1.0, prior=[[*fixed, 1.0]])
    assert surface.height_difference(fixed, fixed).standard_deviation == 0
    # The prior makes the heights of its part absolute, and that of its point exact.
    vertex = int(np.linalg.norm(surface.screen - (45, 20), axis=1).argmin())
    found = surface.height_difference(vertex, fixed)
    assert found.noise == pytest.approx(surface.uncertainty(mesh=False)[vertex], rel=0.01)
    assert found.value == pytest.approx(surface.vertices[vertex, 2] - 1.0, abs=1e-3)


def test_positions_are_interpolated_as_in_the_depth_map():
    for camera in CAMERAS.values():
        surface = _integrated(_mesh(camera), _normals(), camera, 1.0)
        depth, sign = surface.depth_map(), -1 if camera.is_central else 1
        found = surface.height_difference((40.5, 12.5), (20.5, 50.5))
        assert found.value == pytest.approx(sign * (depth[12, 40] - depth[50, 20]), rel=1e-9)
        assert found == surface.height_difference([40.5, 12.5], np.array([20.5, 50.5]))


def test_noise_is_that_of_each_component_or_given():
    surface = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    one = surface.uncertainty(mesh=False)
    np.testing.assert_allclose(surface.uncertainty(2.0, mesh=False), 2 * one, rtol=1e-9)
    assert (surface.uncertainty(noise=0, mesh=False) == 0).all()
    # Noise that is blurred by 1 px is shared by about 4 π pixels.
    blurred = surface.uncertainty(Noise(1.0, 1.0), mesh=False)
    np.testing.assert_allclose(blurred, math.sqrt(4 * math.pi) * one, rtol=1e-3)
    both, by_mesh = surface.uncertainty(), surface.uncertainty(noise=0)
    np.testing.assert_allclose(both, np.hypot(one, by_mesh), rtol=1e-9)
    without = surface.height_difference((40.5, 12.5), (20.5, 50.5), noise=0)
    assert without.noise == 0
    assert without.standard_deviation == without.mesh > 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(surface)).uncertainty(), both)
    clean, noisy = _normals(), _noisy(_normals(), 3.0, np.random.default_rng(2))
    clean[:, 60:] = noisy[:, 60:]
    own = nm.integrate(_mesh(CAMERAS["orthographic"]), nm.NormalMap(clean, _mask()), refine=0)
    assert own.integration is not None
    noises = own.integration.height_noise.degrees[own.components]
    right = own.screen[:, 0] > 59
    assert noises[right].min() > 5 * noises[~right].max()


def test_difference_between_unconnected_parts_is_a_guess():
    surface = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    found = surface.height_difference((29.5, 50.5), (69.5, 20.5))
    assert not found.is_determined
    assert "the normals do not determine it" in str(found)


def test_part_that_a_jump_cuts_off_is_a_guess():
    normal_map = nm.NormalMap(_normals())
    line = np.array([[40.0, 0.0], [40.0, SHAPE[0]]])
    surface = nm.reconstruct(normal_map, compression=0.95, jumps=[line], noise=1.0)
    assert surface.components.max() == 1
    assert not surface.height_difference((20.5, 30.5), (60.5, 30.5)).is_determined
    assert surface.height_difference((20.5, 30.5), (30.5, 30.5)).is_determined
    assert np.isfinite(surface.uncertainty()).all()
    points = [[20.5, 30.5, 0.0], [60.5, 30.5, 5.0]]
    held = nm.reconstruct(normal_map, compression=0.95, jumps=[line], noise=1.0, prior=points)
    found = held.height_difference((60.5, 30.5), (20.5, 30.5))
    assert found.value == pytest.approx(5, abs=1e-3)
    assert found.noise == pytest.approx(0, abs=1e-4)


def test_text_has_two_digits_of_the_deviation():
    assert str(HeightDifference(0.13204, 0.0033, 0.00247, "mm")) == "0.1320 ± 0.0041 mm"
    assert str(HeightDifference(-12.34, 0.0996, 0.0, "px")) == "-12.34 ± 0.10 px"
    assert str(HeightDifference(1234.5, 0.0, 12.0, "µm")) == "1234 ± 12 µm"
    assert str(HeightDifference(12345.67, 0.0, 123.4, "px")) == "12350 ± 120 px"
    assert str(HeightDifference(123.456, 99.6, 0.0, "px")) == "120 ± 100 px"
    assert str(HeightDifference(-0.001, 0.0, 4.0, "px")) == "0.0 ± 4.0 px"
    assert str(HeightDifference(2.0, 0.0, 0.0, "px")) == "2 ± 0 px"
    assert str(HeightDifference(2.0, 0.1, math.nan, "px")) == "2.00 ± 0.10 px, by noise alone"


def test_a_part_that_does_not_matter_is_zero():
    assert (part_text(1.8e-17, 0.06), part_text(0.0, 0.0), part_text(0.0123, 0.06)) == ("0", "0", "0.012")


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (10**6, "a must be the number of a vertex"),
        (-1, "a must be the number of a vertex"),
        (1.5, "a must be the number of a vertex"),
        ((1, 2, 3), "a must be the number of a vertex"),
        ((math.nan, 2), "a must be the number of a vertex"),
        (None, r"a must be the number of a vertex, .* not None"),
        (True, r"a must be the number of a vertex, .* not True"),
        (("3", "4"), r"a must be the number of a vertex, .* not \('3', '4'\)"),
        ((0.5, 0.5), "where the surface has no face"),
    ],
)
def test_points_off_the_surface_are_refused(a, message):
    surface = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    with pytest.raises(NormalMeshError, match=message):
        surface.height_difference(a, 0)


def test_faces_that_were_turned_over_or_repeated():
    surface = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    before, between = surface.uncertainty(2.0), surface.height_difference(3, 40, 2.0)
    surface.faces[::2] = surface.faces[::2, ::-1].copy()
    np.testing.assert_allclose(surface.uncertainty(2.0), before, rtol=1e-6)
    found = surface.height_difference(3, 40, 2.0)
    assert (found.noise, found.mesh) == pytest.approx((between.noise, between.mesh), rel=1e-6)
    surface.faces[:] = surface.faces[0]  # all other vertices have no face
    expected = ~np.isin(np.arange(len(before)), surface.faces[0])
    np.testing.assert_array_equal(np.isinf(surface.uncertainty(2.0)), expected)
    surface.screen[:] = 0
    with pytest.raises(NormalMeshError, match="no area on the screen"):
        surface.uncertainty(2.0)


@pytest.mark.parametrize("noise", [-1, math.nan, [1.0, 1.0], Noise(-1.0), Noise(math.nan), Noise(1.0, -1.0)])
def test_noise_that_is_none_is_refused(noise):
    surface = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    for measure in (surface.uncertainty, lambda noise: surface.height_difference(0, 5, noise)):
        with pytest.raises(NormalMeshError, match="noise must be"):
            measure(noise)


def test_surface_of_unknown_noise_asks_for_it():
    whole = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    surface = nm.Surface(whole.vertices, whole.faces, whole.screen, whole.camera, whole.shape)
    with pytest.raises(NormalMeshError, match="give the noise in degrees"):
        surface.uncertainty()
    # The deviation of the mesh is not known either.
    np.testing.assert_allclose(surface.uncertainty(noise=1.0), whole.uncertainty(mesh=False), rtol=1e-9)
    assert math.isnan(surface.height_difference(0, 5, noise=1.0).mesh)


def test_exaggerated_and_flattened_heights_have_the_uncertainty_of_the_measured_ones():
    surface = _integrated(_mesh(CAMERAS["orthographic"]), _normals(), CAMERAS["orthographic"], 1.0)
    deviations, between = surface.uncertainty(), surface.height_difference(3, 40)
    changed = surface.flattened("quadratic").exaggerated(-3.0)
    assert changed.uncertainty() == pytest.approx(3 * deviations, rel=1e-6)
    difference = changed.height_difference(3, 40)
    assert difference.standard_deviation == pytest.approx(3 * between.standard_deviation, rel=1e-6)
    assert difference.value == pytest.approx(changed.vertices[3, 2] - changed.vertices[40, 2])


def test_surface_that_repeats_is_as_certain_as_sampled_noise():
    rows, columns = SHAPE
    v, u = np.mgrid[:rows, :columns] + 0.5
    p, q = (0.5 * np.sin(4 * np.pi * at / period) for at, period in ((u, columns), (v, rows)))
    normals = np.stack([-p, q, np.ones(SHAPE)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    # The foreground is connected across the sides only.
    mask = (u < 20) | (u > 64)
    random = np.random.default_rng(2)
    mesh = nm.decimate(nm.NormalMap(normals, mask), compression=0.9, tileable="x")

    def integrated(normals: np.ndarray) -> nm.Surface:
        return nm.integrate(mesh, nm.NormalMap(normals, mask), refine=0, discontinuities=False, noise=1.0)

    surface = integrated(normals)
    draws = [integrated(_noisy(normals, 1.0, random)) for _ in range(120)]
    # Tidying moves some of the vertices.
    sampled = np.array([each.vertices[:, 2] - each.depth_map()[mask].mean() for each in draws]).std(axis=0)
    found = surface.uncertainty(mesh=False)
    assert np.median(found) == pytest.approx(np.median(sampled), rel=0.1)
    heights = np.array([each.depth_map()[mask] for each in draws])
    places = np.stack([u, v], axis=-1)[mask]
    for left, right in ((500, 1500), (5, 2000), (1200, 30)):
        difference = surface.height_difference(places[left], places[right])
        sampled = (heights[:, left] - heights[:, right]).std()
        assert difference.noise == pytest.approx(sampled, rel=0.25)
    twins, whole = surface.repeats.wrap(surface.mesh).twins, surface.uncertainty()
    for each in (found, whole):
        assert np.array_equal(each[twins[:, 0]], each[twins[:, 1]])
    assert (whole > found).all()
    # A point and its copy have the same height; points near opposite sides are neighbours.
    assert surface.height_difference(*map(int, twins[0])).standard_deviation == 0
    left, inside, right = ((0.5, 20.5), (1.0, 20.5), (columns - 0.5, 20.5))
    across, within = (surface.height_difference(left, each).mesh for each in (right, inside))
    assert across < 4 * within


def test_deviations_do_not_depend_on_the_number_of_threads():
    normal_map = nm.NormalMap(_normals(), camera=CAMERAS["orthographic"])
    surface = nm.reconstruct(normal_map, tileable=True, compression=0.9, noise=1.0)

    def found() -> tuple[np.ndarray, float]:
        return surface.uncertainty(), surface.height_difference(3, 40).standard_deviation

    (alone, between), (several, same) = on_one_and_on_several(found)
    assert np.array_equal(alone, several)
    assert between == same
