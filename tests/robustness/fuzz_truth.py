"""Fuzz the heights: analytic surfaces on difficult masks, with any options and priors, against the known heights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

import normalmesh as nm
from scenes import Float
from truth_maps import MASKS, SURFACES, TrueMap, mask_of, true_map

#: Whether each component must be covered, or a warning must say that it is not.
CHECK_COVERAGE = False
#: Least fraction of the pixels of a component that its surface covers without a warning.
COVERED = 0.995
#: Largest error (px) of planes, and of one component alone against the same among others.
EXACT, ALONE = 1e-3, 1e-3
#: Orthographic pixel sizes and focal lengths as multiples of the longer side.
PIXEL_SIZES, FOCAL_LENGTHS = (1.0, 1e-3, 25.4), (0.8, 1.5, 5.0)


@dataclass(frozen=True)
class Truth:
    """A compact description of a normal map with known heights, and of the function that is applied to it.

    Attributes
    ----------
    mask
        Name of :data:`MASKS`, rows, columns and seed.
    surface
        Name of :data:`SURFACES` or ``"mixed"``, and seed.
    camera
        Pixel size (orthographic), or the focal length as a multiple of the longer side, and 0 to tell it apart.
    noise
        Of the normals, in degrees.
    work
        ``"mesh"``, ``"levels"``, ``"within"`` or ``"pixels"``.
    options
        Arguments of the function that ``work`` names.
    prior
        How many points (0: none, −1: a depth map), their weight (0: default), their seed, and their height in pixels.
    """

    mask: tuple[str, int, int, int]
    surface: tuple[str, int]
    camera: tuple[float, ...]
    noise: float
    work: str
    options: tuple[tuple[str, Any], ...]
    prior: tuple[int, float, int, float] = (0, 0.0, 0, 0.0)

    def true_map(self) -> TrueMap:
        """Return the normal map and its heights."""
        name, rows, columns, seed = self.mask
        camera = nm.Orthographic(self.camera[0])
        base = self.prior[3]
        if len(self.camera) > 1:
            camera = nm.Perspective.centred(self.camera[0] * max(rows, columns), (rows, columns))
            base = -np.log1p(abs(base)) / camera.pixel_length
        return true_map(mask_of(name, (rows, columns), seed), *self.surface, camera, base, self.noise)


@dataclass
class Statistics:
    """What was compared, and the largest error of each kind of check as a fraction of its bound."""

    cases: int = 0
    components: int = 0
    worst: dict[str, tuple[float, float, Truth]] = field(default_factory=dict)

    def add(self, check: str, error: float, bound: float, case: Truth) -> None:
        self.components += 1
        if error / bound > self.worst.get(check, (-1.0, 0.0, case))[0]:
            self.worst[check] = (error / bound, error, case)

    def __str__(self) -> str:
        lines = [f"{self.cases} cases, {self.components} components compared"]
        for check, (ratio, error, case) in sorted(self.worst.items()):
            lines.append(f"  {check}: worst {error:.3g} px, {ratio:.3g} of its bound: {case!r}")
        return "\n".join(lines)


STATISTICS = Statistics()


def compare_with_truth(given: Truth) -> str:
    """Reconstruct a surface and compare each of its components with the known heights.

    Return the kind of work, or the beginning of the error.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", nm.NormalMeshWarning)
        warnings.simplefilter("error", RuntimeWarning)
        truth = given.true_map()
        options = dict(given.options)
        fixed = np.zeros(len(truth.surfaces), np.bool_)
        if given.prior[0]:
            options["prior"], fixed = _prior(given, truth)
            if given.prior[1]:
                options["prior_weight"] = given.prior[1]
        try:
            results = _results(given.work, truth.normal_map, options)
        except nm.NormalMeshError as error:
            return f"refused: {str(error)[:44]}"
    STATISTICS.cases += 1
    warned = [str(each.message) for each in caught]
    for result in results:
        for comparison in _comparisons(result, truth, fixed):
            _judge(comparison, given, warned)
    return given.work


def _results(work: str, normal_map: nm.NormalMap, options: dict[str, Any]) -> list[Any]:
    """Return a list of surfaces, or of one depth map."""
    if work == "pixels":
        return [nm.integrate_pixels(normal_map, **options)]
    if work == "levels":
        return nm.reconstruct_levels(normal_map, **options)
    if work == "within":
        return [nm.reconstruct_within(normal_map, **options)]
    return [nm.reconstruct(normal_map, **options)]


def _prior(given: Truth, truth: TrueMap) -> tuple[Float, NDArray[np.bool_]]:
    """Return true control points (K, 3) or a depth map (H, W), and the components (C,) that they fix."""
    count, _, seed, _ = given.prior
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(truth.normal_map.mask)
    fixed = np.zeros(len(truth.surfaces), np.bool_)
    if count < 0:
        known = rng.random(truth.normal_map.shape) < rng.choice([0.02, 0.3, 1.0])
        known[rows[0], columns[0]] = True
        fixed[truth.components[known & truth.normal_map.mask]] = True
        depth = _depth(truth.heights, truth.normal_map.camera)
        return np.where(known, depth, np.nan), fixed
    chosen = rng.integers(len(rows), size=count)
    numbers = truth.components[rows[chosen], columns[chosen]]
    fixed[numbers] = True
    shift = rng.uniform(-0.5, 0.5, (2, count)) * rng.integers(2)
    u, v = columns[chosen] + 0.5 + shift[0], rows[chosen] + 0.5 + shift[1]
    heights = np.array([truth.surfaces[number](u[k], v[k]) for k, number in enumerate(numbers)])
    return np.stack([u, v, _depth(heights, truth.normal_map.camera)], axis=1), fixed


def _depth(heights: Float, camera: nm.Camera) -> Float:
    """Return the depths that belong to heights in pixels."""
    return camera.depth_of_unknown(camera.towards_viewer * camera.pixel_length * heights)


def _heights(depth: Float, camera: nm.Camera) -> Float:
    """Return the heights in pixels that belong to depths."""
    return camera.towards_viewer * camera.unknown_of_depth(depth) / camera.pixel_length


@dataclass(frozen=True)
class Comparison:
    """One component of a result against the truth, in pixels."""

    kind: str
    pixels: int
    covered: float
    error: float
    curvature: float
    departure: float
    edge: float
    fixed: bool


def _comparisons(result: Any, truth: TrueMap, fixed: NDArray[np.bool_]) -> Iterator[Comparison]:
    camera, components = truth.normal_map.camera, truth.components
    if isinstance(result, nm.Surface):
        found, owner, edges = _sampled(result, truth)
    else:
        found, owner, edges = _heights(result, camera), components, np.ones(len(fixed))
    for number, surface in enumerate(truth.surfaces):
        here = components == number
        rows, columns = np.nonzero(here & (owner == number))
        covered = len(rows) / np.count_nonzero(here)
        if len(rows) == 0:
            yield Comparison(truth.kinds[number], int(here.sum()), 0.0, 0.0, 0.0, 0.0, 0.0, bool(fixed[number]))
            continue
        error = found[rows, columns] - truth.heights[rows, columns]
        if not fixed[number]:
            error = error - error.mean()
        u, v = columns + 0.5, rows + 0.5
        yield Comparison(
            truth.kinds[number],
            int(here.sum()),
            covered,
            float(np.abs(error).max()),
            _curvature(surface, u, v),
            _departure(truth.heights[rows, columns], u, v),
            float(edges[number]),
            bool(fixed[number]),
        )


def _sampled(surface: nm.Surface, truth: TrueMap) -> tuple[Float, NDArray[np.intp], Float]:
    """Return the heights (H, W), the component of the mask that each pixel's face belongs to, and longest edges (C,).

    A component of the surface belongs to the component of the mask that it covers most pixels of.
    """
    count, components = len(truth.surfaces), truth.components
    _, faces = surface.owners()
    on_both = (faces >= 0) & (components >= 0)
    of_face = surface.components[surface.faces[:, 0]]
    votes = np.zeros((of_face.max() + 1, count), np.int64)
    np.add.at(votes, (of_face[faces[on_both]], components[on_both]), 1)
    belongs = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    owner = np.where(faces >= 0, belongs[of_face[faces]], -1)
    ends = surface.screen[surface.faces]
    lengths = np.linalg.norm(ends - np.roll(ends, 1, axis=1), axis=-1).max(axis=1)
    edges = np.zeros(count)
    known = belongs[of_face] >= 0
    np.maximum.at(edges, belongs[of_face[known]], lengths[known])
    return _heights(surface.depth_map(), surface.camera), owner, edges


def _curvature(surface: Any, u: Float, v: Float) -> float:
    """Return the largest second derivative, in 1/px; of a crease its bend over one pixel."""
    second = [
        surface(u + du, v + dv) + surface(u - du, v - dv) - 2 * surface(u, v)
        for du, dv in ((1, 0), (0, 1), (0.7, 0.7), (0.7, -0.7))
    ]
    return float(np.nanmax(np.abs(second)))


def _departure(heights: Float, u: Float, v: Float) -> float:
    """Return the largest distance of heights from the plane that fits them best."""
    columns = np.stack([u - u.mean(), v - v.mean(), np.ones_like(u)], axis=1)
    return float(np.abs(heights - columns @ np.linalg.lstsq(columns, heights)[0]).max())


def _judge(found: Comparison, given: Truth, warned: list[str]) -> None:
    RAW.append((given, found, warned))


RAW: list[Any] = []


def _sizes() -> st.SearchStrategy[tuple[int, int]]:
    side = st.integers(1, 40) | st.integers(8, 64)
    return st.tuples(side, side)


def _priors() -> st.SearchStrategy[tuple[int, float, int, float]]:
    count = st.sampled_from((0, 0, 0, 1, 1, 2, 5, 20, 200, -1))
    weight = st.sampled_from((0.0, 0.0, 1e-6, 1e-3, 1.0, 1e4, 1e9))
    height = st.sampled_from((0.0, 0.0, 1e3, 1e6))
    return st.tuples(count, weight, st.integers(0, 2**16), height)


def _stops() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries({"vertices": st.integers(3, 400)}),
        st.fixed_dictionaries({"compression": st.floats(0.5, 0.99)}),
        st.fixed_dictionaries({"threshold": st.sampled_from((0.01, 0.1, 1.0, 10.0, 64.0, 1e3))}),
    )


def _decimation() -> st.SearchStrategy[dict[str, Any]]:
    options = {
        "start": st.sampled_from(("pixels", "adaptive")),
        "rounds": st.integers(1, 5),
        "passes": st.integers(0, 4),
        "align": st.sampled_from(("last", "each")),
        "flips": st.booleans(),
        "moves": st.booleans(),
        "in_plane": st.booleans(),
    }
    return st.just({}) | st.fixed_dictionaries({}, optional=options)


def _integration() -> st.SearchStrategy[dict[str, Any]]:
    options = {
        "formulation": st.sampled_from(("facets", "facets", "facets", "vertices")),
        "discontinuities": st.sampled_from(("auto", False)),
        "noise": st.sampled_from((0.0, 0.5, 2.0)),
        "refine": st.integers(0, 4),
    }
    return st.just({}) | st.fixed_dictionaries({}, optional=options)


def _work(prior: bool) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    mesh = st.tuples(_stops(), _decimation(), _integration()).map(
        lambda parts: {**parts[0], **({"decimation": parts[1]} if parts[1] else {}), **parts[2]}
    )
    levels = st.lists(st.integers(3, 400), min_size=1, max_size=3).map(lambda counts: tuple(sorted(set(counts))[::-1]))
    works = {
        "mesh": mesh,
        "paper": _stops().map(lambda stop: {**stop, "preset": "paper"}),
        "levels": st.fixed_dictionaries({"vertices": levels}),
        "within": st.sampled_from(({"max_angle": 5.0}, {"max_error": 0.5}, {"max_angle": 20.0})),
        "pixels": st.sampled_from(({}, {"discontinuities": "auto"}, {"discontinuities": True})),
    }
    names = ("mesh",) * 6 + ("paper", "levels", "within") + (() if prior else ("pixels",) * 4)
    return st.sampled_from(names).flatmap(
        lambda name: works[name].map(lambda options: ("mesh" if name == "paper" else name, options))
    )


@cache
def truths() -> st.SearchStrategy[Truth]:
    seed = st.integers(0, 2**16)
    mask = st.tuples(st.sampled_from(sorted(MASKS)), _sizes(), seed).map(lambda drawn: (drawn[0], *drawn[1], drawn[2]))
    surface = st.tuples(st.sampled_from(("mixed", "plane", *sorted(SURFACES))), seed)
    camera = st.tuples(st.sampled_from(PIXEL_SIZES)) | st.tuples(st.sampled_from(FOCAL_LENGTHS), st.just(0.0))
    noise = st.sampled_from((0.0, 0.0, 0.0, 0.0, 2.0))

    def truth(mask: Any, surface: Any, camera: Any, noise: float, prior: Any) -> st.SearchStrategy[Truth]:
        return _work(prior[0] != 0).map(
            lambda work: Truth(mask, surface, camera, noise, work[0], tuple(work[1].items()), prior)
        )

    return st.tuples(mask, surface, camera, noise, _priors()).flatmap(lambda drawn: truth(*drawn))
