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
from truth_maps import MASKS, SURFACES, TrueMap, mask_of, true_map

import normalmesh as nm
from jump_scenes import AGREEING, KINDS, RATIO, SMALL, depth_rms, perturbed_scene
from normalmesh.decimation.thin_parts import thin_pixels
from normalmesh.mesh.raster import pixel_faces
from scenes import Float

#: Least fraction of pixels that are covered without a warning. Components that are covered less are not compared.
COVERED = 0.995
#: Words of the warnings about pixels that are not covered, and about points that bend the surface.
UNCOVERED, BENT = "of the foreground, and", "changes the slope"
#: Words of errors that are no faults: bounds that no mesh satisfies, points on parts that a coarse mesh leaves out, and
#: priors of the shape of the map.
REFUSED = ("is out of reach", "no control point lies on the foreground", "could be control points or a depth map")
#: Largest error (px) of planes without and with prior, and of one component alone against the same among others.
EXACT, EXACT_WITH_PRIOR, ALONE = 1e-4, 1e-3, 1e-3
#: Error of curved surfaces: this multiple of curvature times the square of the longest edge, or of the curvature of one
#: pixel and the departure from a plane if that is less; plus an error that is always allowed, in pixels.
CURVED, ALWAYS = 4.0, 0.25
#: Weight of control points above which they are heavy.
HEAVY = 100.0
#: How much worse they may make a surface without a warning.
STIFF = 4.0
#: Noise (degrees) of the options above which normals are filtered.
FILTERED = 1.0
#: Error of noisy normals for one radian, by the square root of the number of pixels, with slopes as they are seen.
NOISY = 12.0
#: One input of this number is a scene with jumps.
JUMPS_EVERY = 20
#: Orthographic pixel sizes, and focal lengths as multiples of the longer side.
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
        ``"mesh"``, ``"levels"``, ``"within"``, ``"pixels"``, or ``"alone"``: one component against the same one among
        others.
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


@dataclass(frozen=True)
class JumpTruth:
    """A compact description of a scene with jumps, whose surface must not be worse than the continuous one.

    Attributes
    ----------
    scene, kind
        Name of the scene, and how its map is perturbed.
    seed, turn
        Of the noise; quarter turns of the scene.
    vertices
        Of both surfaces.
    """

    scene: str
    kind: str
    seed: int
    turn: int
    vertices: int


@dataclass
class Statistics:
    """What was compared, and the largest error of each check as a fraction of its bound.

    Attributes
    ----------
    seen
        Hashes of the cases: Hypothesis tries some of them twice.
    components
        Number of components whose heights were compared.
    skipped
        Number of components that the surface does not cover.
    worst
        Error as a fraction of the bound, error in pixels, and case, for each check.
    """

    seen: set[int] = field(default_factory=set)
    components: int = 0
    skipped: int = 0
    worst: dict[str, tuple[float, float, Truth | JumpTruth]] = field(default_factory=dict)

    def check(self, name: str, error: float, bound: float, case: Truth | JumpTruth) -> None:
        """Raise an error if an error is larger than its bound, and keep the largest one."""
        self.components += 1
        if name not in self.worst or error / bound > self.worst[name][0]:
            self.worst[name] = (error / bound, error, case)
        assert error <= bound, f"{name}: wrong by {error:.4g} px, which must be at most {bound:.4g}"

    def __str__(self) -> str:
        compared = f"{len(self.seen)} different cases, {self.components} components compared, {self.skipped} left out"
        lines = [
            f"  {name}: at most {error:.3g} px, {ratio:.2g} of its bound: {case!r}"
            for name, (ratio, error, case) in sorted(self.worst.items())
        ]
        return "\n".join([compared, *lines])


#: Of all cases of this process.
STATISTICS = Statistics()


def compare_with_truth(given: Truth | JumpTruth) -> str:
    """Reconstruct a surface and compare each of its components with the known heights.

    Return the kind of work, or the beginning of the error.
    """
    if isinstance(given, JumpTruth):
        return compare_with_continuous(given)
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
            results = _results(given.work, truth, options)
        except nm.NormalMeshError as error:
            if not any(words in str(error) for words in REFUSED):
                raise
            return f"refused: {str(error)[:44]}"
    STATISTICS.seen.add(hash(repr(given)))
    if given.work == "alone":
        difference = _difference(*results)
        if difference is None:
            STATISTICS.skipped += 1
        else:
            STATISTICS.check(f"alone, {options['way']}", difference, ALONE, given)
        return given.work
    told = " ".join(str(each.message) for each in caught)
    for result in results:
        found = list(_comparisons(result, truth, fixed))
        covered = sum(each.covered for each in found) / truth.normal_map.foreground
        assert UNCOVERED in told or covered >= COVERED, f"only {covered:.1%} of the mask is covered"
        for comparison in found:
            _judge(comparison, given, told)
    return given.work


def compare_with_continuous(given: JumpTruth) -> str:
    """Reconstruct a scene with jumps as it is by default, and as a continuous surface."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nm.NormalMeshWarning)
        truth, normal_map = perturbed_scene(given.scene, given.kind, given.seed, given.turn)
        found, continuous = (
            depth_rms(nm.reconstruct(normal_map, vertices=given.vertices, **options), truth)
            for options in ({}, {"discontinuities": False})
        )
    STATISTICS.seen.add(hash(repr(given)))
    STATISTICS.check("jumps", found, RATIO * continuous + SMALL, given)
    return "jumps"


def _results(work: str, truth: TrueMap, options: dict[str, Any]) -> list[Any]:
    """Return a list of surfaces or depth maps."""
    if work == "alone":
        return _alone_and_among_others(truth, **options)
    if work == "pixels":
        return [nm.integrate_pixels(truth.normal_map, **options)]
    if work == "levels":
        return nm.reconstruct_levels(truth.normal_map, **options)
    if work == "within":
        return [nm.reconstruct_within(truth.normal_map, **options)]
    return [nm.reconstruct(truth.normal_map, **options)]


def _alone_and_among_others(truth: TrueMap, way: str, which: int, **options: Any) -> list[Float]:
    """Return the heights (H, W) in pixels of one component alone, and of all components, both NaN elsewhere."""
    together = truth.normal_map
    here = truth.components == which % len(truth.surfaces)
    alone = nm.NormalMap(together.normals, here, together.camera)
    if way == "pixels":
        depths = [nm.integrate_pixels(each, **options) for each in (alone, together)]
    elif way == "threshold":
        # A narrow gap to another component keeps its outline, so that the mesh is another one.
        around = ndimage.binary_dilation(here, iterations=4)
        if not np.array_equal(*(thin_pixels(each.mask)[around] for each in (alone, together))):
            return [np.full(here.shape, np.nan)] * 2
        depths = [nm.reconstruct(each, **options).depth_map() for each in (alone, together)]
    else:
        mesh = nm.decimate(together, compression=0.8)
        part = _part_on(mesh, here)
        if part is None:
            return [np.full(here.shape, np.nan)] * 2
        depths = [
            nm.integrate(each, normals, **options).depth_map() for each, normals in ((part, alone), (mesh, together))
        ]
    return [np.where(here, _heights(depth, together.camera), np.nan) for depth in depths]


def _part_on(mesh: nm.ScreenMesh, here: NDArray[np.bool_]) -> nm.ScreenMesh | None:
    """Return the component of a mesh that owns most pixels of a mask; None if no face owns one."""
    owner = pixel_faces(mesh, here.shape)[here]
    of_face = mesh.components[mesh.faces[:, 0]]
    votes = np.bincount(of_face[owner[owner >= 0]])
    if len(votes) == 0:
        return None
    chosen, faces = np.unique(mesh.faces[of_face == votes.argmax()], return_inverse=True)
    return nm.ScreenMesh(mesh.vertices[chosen], faces.reshape(-1, 3).astype(np.int32))


def _difference(one: Float, other: Float) -> float | None:
    """Return the largest difference of heights (H, W) where both are known; None if that is nowhere."""
    known = np.isfinite(one) & np.isfinite(other)
    return float(np.abs(one - other)[known].max()) if known.any() else None


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
    """One component of a result against the truth.

    Attributes
    ----------
    kind
        Name of the surface.
    pixels, covered
        Number of its pixels, and of those that it covers itself.
    error
        Largest difference of heights, in pixels.
    curvature, departure, steepness
        Of the truth: largest second derivative (1/px), distance from a plane (px), and slope.
    edge
        Longest edge of the faces, in pixels.
    fixed
        Whether a prior fixes the height.
    """

    kind: str
    pixels: int
    covered: int
    error: float
    curvature: float
    departure: float
    steepness: float
    edge: float
    fixed: bool


def _comparisons(result: Any, truth: TrueMap, fixed: NDArray[np.bool_]) -> Iterator[Comparison]:
    if isinstance(result, nm.Surface):
        found, owner, edges = _sampled(result, truth)
    else:
        found, owner, edges = _heights(result, truth.normal_map.camera), truth.components, np.ones(len(fixed))
    for number, surface in enumerate(truth.surfaces):
        here = truth.components == number
        rows, columns = np.nonzero(here & (owner == number))
        pixels = int(np.count_nonzero(here))
        if len(rows) == 0:
            yield Comparison(truth.kinds[number], pixels, 0, 0.0, 0.0, 0.0, 0.0, 0.0, False)
            continue
        heights = truth.heights[rows, columns]
        error = found[rows, columns] - heights
        if not fixed[number]:
            error = error - error.mean()
        u, v = columns + 0.5, rows + 0.5
        steepness = np.linalg.norm(truth.scene.slopes[rows, columns], axis=1).max()
        curvature, departure = _curvature(surface, u, v), _departure(heights, u, v)
        if truth.normal_map.camera.is_central:
            # Seen from a point, reciprocals of depths are linear on planes, not the logarithms that heights are of.
            scale = truth.normal_map.camera.pixel_length
            curvature += scale * float(steepness) ** 2
            departure = max(departure, _departure(np.expm1(scale * (heights - heights.mean())) / scale, u, v))
        shape = (curvature, departure, float(steepness), float(edges[number]))
        largest = float(np.abs(error).max())
        yield Comparison(truth.kinds[number], pixels, len(rows), largest, *shape, bool(fixed[number]))


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


def _judge(found: Comparison, given: Truth, told: str) -> None:
    """Raise an error if a component is farther from the truth than a mesh of its edges may be, and no warning said so.

    ``told`` are the warnings.
    """
    options = dict(given.options)
    # The faces of the paper's mesh that are reported to spill over the outline take normals of other components.
    spills = options.get("preset") == "paper" and UNCOVERED in told
    if found.covered < COVERED * found.pixels or spills or (found.fixed and BENT in told):
        STATISTICS.skipped += 1
        return
    facets = options.get("formulation", "facets") == "facets" and options.get("preset") != "paper"
    # The vertices of a plane in space are interpolated by facets; the cotangent system interpolates logarithms.
    exact = found.kind == "plane" and (facets or len(given.camera) == 1)
    name, bound = "planes", EXACT_WITH_PRIOR if found.fixed else EXACT
    if exact and (options.get("noise") or 0.0) > FILTERED:
        name = "filtered planes"
    elif not exact:
        on_a_pixel = found.departure + found.curvature
        name, bound = "curved", CURVED * min(on_a_pixel, found.curvature * found.edge**2) + ALWAYS
    if given.noise:
        name = "noisy"
        bound += ALWAYS + NOISY * np.radians(given.noise) * (1 + found.steepness**2) * np.sqrt(found.pixels)
    if found.fixed and given.prior[1] > HEAVY and name in ("curved", "noisy"):
        name, bound = "heavy prior", STIFF * bound
    elif name != "filtered planes":
        name += ", pixels" if given.work == "pixels" else ", prior" if found.fixed else ", mesh"
    STATISTICS.check(name, found.error, bound, given)


def _sizes() -> st.SearchStrategy[tuple[int, int]]:
    side = st.integers(1, 40) | st.integers(8, 64)
    return st.tuples(side, side)


def _priors() -> st.SearchStrategy[tuple[int, float, int, float]]:
    count = st.sampled_from((0, 0, 0, 0, 0, 0, 1, 1, 5, 20, 200, -1))
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
    jumps = st.sampled_from(({}, {"discontinuities": "auto"}, {"discontinuities": True}))
    works = {
        "mesh": mesh,
        "paper": _stops().map(lambda stop: {**stop, "preset": "paper"}),
        "levels": st.fixed_dictionaries({"vertices": levels}),
        "within": st.sampled_from(({"max_angle": 5.0}, {"max_error": 0.5}, {"max_angle": 20.0})),
        "pixels": jumps,
        "alone": _alone(),
    }
    names = ("mesh",) * 6 + ("paper", "levels", "within") + (() if prior else ("pixels", "pixels", "alone", "alone"))
    return st.sampled_from(names).flatmap(
        lambda name: works[name].map(lambda options: ("mesh" if name == "paper" else name, options))
    )


def _alone() -> st.SearchStrategy[dict[str, Any]]:
    which = st.integers(0, 100)
    discontinuities, refine = st.sampled_from(("auto", True, False)), st.integers(0, 4)
    ways = {
        "pixels": {"discontinuities": discontinuities},
        "mesh": {"discontinuities": discontinuities, "refine": refine},
        "threshold": {"threshold": st.sampled_from((0.1, 1.0, 10.0, 64.0)), "refine": refine},
    }
    return st.sampled_from(sorted(ways)).flatmap(
        lambda way: st.fixed_dictionaries({"way": st.just(way), "which": which, **ways[way]})
    )


def _jump_truths() -> st.SearchStrategy[JumpTruth]:
    names, kinds = st.sampled_from(AGREEING), st.sampled_from(KINDS)
    return st.builds(JumpTruth, names, kinds, st.integers(0, 2**16), st.integers(0, 3), st.integers(800, 4000))


@cache
def truths() -> st.SearchStrategy[Truth | JumpTruth]:
    seed = st.integers(0, 2**16)
    mask = st.tuples(st.sampled_from(sorted(MASKS)), _sizes(), seed).map(lambda drawn: (drawn[0], *drawn[1], drawn[2]))
    surface = st.tuples(st.sampled_from(("mixed", "plane", *sorted(SURFACES))), seed)
    camera = st.tuples(st.sampled_from(PIXEL_SIZES)) | st.tuples(st.sampled_from(FOCAL_LENGTHS), st.just(0.0))
    noise = st.sampled_from((0.0, 0.0, 0.0, 0.0, 2.0))

    def truth(mask: Any, surface: Any, camera: Any, noise: float, prior: Any) -> st.SearchStrategy[Truth]:
        return _work(prior[0] != 0).map(
            lambda work: Truth(mask, surface, camera, noise, work[0], tuple(work[1].items()), prior)
        )

    components = st.tuples(mask, surface, camera, noise, _priors()).flatmap(lambda drawn: truth(*drawn))
    # Scenes with jumps take much longer than the others.
    return st.integers(0, JUMPS_EVERY - 1).flatmap(lambda drawn: components if drawn else _jump_truths())
