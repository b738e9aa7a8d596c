"""Surfaces agree with the lines of their jumps: never worse than continuous ones, and as good as with true lines."""

import warnings

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshWarning, Orthographic, find_jumps, reconstruct
from scenes import Layer, Scene, everywhere
from surfaces import noisy

SIZE = 160


def ground(u, v):
    return 2.0 * np.sin(u / 25) * np.cos(v / 30)


def round_edge(inside, rim=6.0):
    """Return by how much a sheet turns down at a distance inside its outline."""
    t = np.clip(1 - inside / rim, 0, 0.95)
    return rim * (np.sqrt(1 - t * t) - 1)


def strip():
    """A strip that rises from the ground on the left and ends above it on the right."""
    inside = lambda u, v: np.minimum(np.minimum(v - 60, 100 - v), 130 - u)  # noqa: E731
    rise = lambda u, v: ground(u, v) + 12 * np.clip((u - 30) / 60, 0, 1) ** 2 * (3 - 2 * np.clip((u - 30) / 60, 0, 1))  # noqa: E731
    height = lambda u, v: rise(u, v) + round_edge(inside(u, v)) * np.clip((u - 30) / 60, 0, 1)  # noqa: E731
    return [Layer(ground, everywhere), Layer(height, lambda u, v: (inside(u, v) > 0) & (u > 30))]


def ramp():
    """A ramp that is cut on three sides."""
    inside = lambda u, v: np.minimum(np.minimum(v - 50, 110 - v), 120 - u)  # noqa: E731
    height = lambda u, v: ground(u, v) + 0.2 * (u - 40)  # noqa: E731
    return [Layer(ground, everywhere), Layer(height, lambda u, v: (inside(u, v) > 0) & (u > 40))]


def spheres():
    """Two overlapping spheres on a ground that they touch all around."""
    layers = [Layer(ground, everywhere)]
    for u0, v0, radius, level in ((62.0, 80.0, 34.0, 0.0), (98.0, 80.0, 34.0, 16.0)):
        squared = lambda u, v, at=(u0, v0, radius): at[2] ** 2 - (u - at[0]) ** 2 - (v - at[1]) ** 2  # noqa: E731
        height = lambda u, v, f=squared, z=level: 0.6 * np.sqrt(np.maximum(f(u, v), 0)) + z  # noqa: E731
        layers.append(Layer(height, lambda u, v, f=squared: f(u, v) > 1))
    return layers


def step():
    """A step of a relief, which fades out in the ground."""
    high = lambda u, v: ground(u, v) + 10 * np.clip(1 - ((v - 80) / 60) ** 2, 0, 1) ** 2 * np.clip(u / 80, 0, 1) ** 2  # noqa: E731
    return [Layer(ground, everywhere), Layer(high, lambda u, v: u < 80)]


SCENES = {"strip": strip, "ramp": ramp, "spheres": spheres, "step": step}


def perturbed(normal_map, kind):
    if kind == "8 bit":
        normals = np.rint((normal_map.normals + 1) * 127.5) / 127.5 - 1
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        return NormalMap(normals, normal_map.mask, normal_map.camera)
    return noisy(normal_map, kind) if kind else normal_map


def error(surface, truth):
    difference = surface.depth_map() - truth.depth(surface.camera)
    difference -= np.nanmean(difference)
    return float(np.sqrt(np.nanmean(difference**2)))


def true_lines(truth):
    image = np.zeros(truth.heights.shape, np.bool_)
    middles, _ = truth.silhouette()
    u, v = middles.T
    for du, dv in ((-0.25, -0.25), (0.25, 0.25)):
        image[np.floor(v + dv).astype(int), np.floor(u + du).astype(int)] = True
    return image


@pytest.mark.parametrize("kind", [0, 0.1, 3.0, "8 bit"])
@pytest.mark.parametrize("name", SCENES)
def test_surfaces_are_never_worse_than_continuous_ones(name, kind):
    truth = Scene.of(SCENES[name](), (SIZE, SIZE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        normal_map = perturbed(truth.normal_map(Orthographic()), kind)
        found, continuous, given = (
            error(reconstruct(normal_map, vertices=1500, **options), truth)
            for options in ({}, {"discontinuities": False}, {"jumps": true_lines(truth)})
        )
    assert found <= 1.1 * continuous
    assert given < 0.35 * continuous
    if name == "spheres":
        assert found <= 1.1 * given


@pytest.mark.parametrize("name", ["strip", "step"])
def test_clear_jumps_in_smooth_surroundings_are_found(name):
    """The strain of a single jump is spread all over the continuous surface, and nowhere large."""
    truth = Scene.of(SCENES[name](), (SIZE, SIZE))
    normal_map = truth.normal_map(Orthographic())
    found, given = (
        error(reconstruct(normal_map, vertices=1500, **options), truth)
        for options in ({}, {"jumps": true_lines(truth)})
    )
    assert found <= 1.1 * given


@pytest.mark.parametrize("name", SCENES)
def test_lines_that_are_given_back_make_the_same_surface(name):
    truth = Scene.of(SCENES[name](), (SIZE, SIZE))
    normal_map = truth.normal_map(Orthographic())
    jumps = find_jumps(normal_map)
    found, given = (
        error(reconstruct(normal_map, vertices=1500, jumps=each), truth)
        for each in (jumps, [line.path for line in jumps.lines])
    )
    assert found == pytest.approx(given, rel=0.3, abs=0.02)
