"""Random masks with difficult components, and an analytic surface of its own for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normalmesh import Camera, NormalMap
from scenes import Float, Height, Scene
from surfaces import centres, noisy

Bool = NDArray[np.bool_]
Shape = tuple[int, int]
Random = np.random.Generator

#: Steepest slope of a plane: 78°. Of other surfaces: 56°.
STEEPEST, STEEP = 4.5, 1.5
#: Step (px) of the differences for slopes and curvatures.
STEP = 1e-4


def _full(shape: Shape, rng: Random) -> Bool:
    return np.ones(shape, np.bool_)


def _distance(shape: Shape, rng: Random) -> Float:
    """Return the distance from a point near the middle, as a multiple of half the shorter side."""
    u, v = centres(shape)
    middle = np.array(shape) * rng.uniform(0.4, 0.6, 2)
    return 2 * np.hypot(u - middle[1], v - middle[0]) / min(shape)


def _disc(shape: Shape, rng: Random) -> Bool:
    return _distance(shape, rng) < 0.95


def _rings(shape: Shape, rng: Random) -> Bool:
    """Return rings inside each other: nested components."""
    width = rng.integers(2, 7)
    return (_distance(shape, rng) * min(shape) / 2).astype(int) % width < rng.integers(1, width)


def _frame(shape: Shape, rng: Random) -> Bool:
    """Return a frame of one or two pixels, and what it encloses beyond a gap."""
    u, v = centres(shape)
    inside = np.minimum(np.minimum(u, shape[1] - u), np.minimum(v, shape[0] - v))
    width = rng.integers(1, 3)
    return (inside < width) | (inside > width + rng.integers(1, 4))


def _comb(shape: Shape, rng: Random) -> Bool:
    """Return teeth of one or more pixels on a bar."""
    pitch = rng.integers(2, 7)
    comb = np.zeros(shape, np.bool_)
    for tooth in range(rng.integers(1, pitch)):
        comb[:, tooth::pitch] = True
    comb[: rng.integers(1, 4)] = True
    return comb if rng.random() < 0.5 else comb.T[: shape[0], : shape[1]] if shape[0] == shape[1] else comb[::-1]


def _spiral(shape: Shape, rng: Random) -> Bool:
    u, v = centres(shape)
    u, v = u - shape[1] / 2, v - shape[0] / 2
    pitch = rng.uniform(3, 10)
    turn = np.hypot(u, v) / pitch - np.arctan2(v, u) / (2 * np.pi) + rng.random()
    return turn % 1 < rng.uniform(1.2 / pitch, 0.75)


def _smooth_noise(shape: Shape, rng: Random, blur: float) -> Float:
    noise = ndimage.gaussian_filter(rng.normal(size=shape), blur, mode="wrap")
    return noise / max(noise.std(), 1e-12)


def _porous(shape: Shape, rng: Random) -> Bool:
    return rng.random(shape) < rng.uniform(0.6, 0.97)


def _dust(shape: Shape, rng: Random) -> Bool:
    return rng.random(shape) < rng.uniform(0.05, 0.5)


def _blobs(shape: Shape, rng: Random) -> Bool:
    return _smooth_noise(shape, rng, rng.uniform(1, 4)) > rng.uniform(-0.7, 0.8)


def _filigree(shape: Shape, rng: Random) -> Bool:
    """Return threads of about one pixel along contour lines."""
    noise = _smooth_noise(shape, rng, rng.uniform(1.5, 5))
    rise = np.hypot(*np.gradient(noise)) if min(shape) > 1 else np.ones(shape)
    return np.abs(noise) < rng.uniform(0.5, 1.2) * rise


def _tree(shape: Shape, rng: Random) -> Bool:
    """Return random walks of one pixel width, which branch."""
    tree = np.zeros(shape, np.bool_)
    places = [rng.integers(0, shape)]
    for _ in range(rng.integers(2, 9)):
        place = places[rng.integers(len(places))].copy()
        for _ in range(rng.integers(2, 6)):
            axis, way = rng.integers(2), rng.choice([-1, 1])
            for _ in range(rng.integers(2, 12)):
                tree[tuple(place)] = True
                places.append(place.copy())
                place[axis] = np.clip(place[axis] + way, 0, shape[axis] - 1)
    return tree


def _dumbbells(shape: Shape, rng: Random) -> Bool:
    """Return squares that are joined by threads of one pixel, some of which are torn."""
    mask = np.zeros(shape, np.bool_)
    pitch = rng.integers(5, 13)
    side = rng.integers(2, pitch - 1)
    mask[np.ix_(np.arange(shape[0]) % pitch < side, np.arange(shape[1]) % pitch < side)] = True
    mask[side // 2 :: pitch] = True
    torn = rng.random(shape) < 0.03
    return mask & ~torn


def _checkerboard(shape: Shape, rng: Random) -> Bool:
    side = rng.integers(1, 5)
    v, u = np.indices(shape) // side
    return (u + v) % 2 == 0


def _stripes(shape: Shape, rng: Random) -> Bool:
    v, u = np.indices(shape)
    pitch = rng.integers(2, 8)
    along = (u, v, u + v, 2 * u + v)[rng.integers(4)]
    return along % pitch < rng.integers(1, pitch)


MASKS: dict[str, Callable[[Shape, Random], Bool]] = {
    "full": _full,
    "disc": _disc,
    "rings": _rings,
    "frame": _frame,
    "comb": _comb,
    "spiral": _spiral,
    "porous": _porous,
    "dust": _dust,
    "blobs": _blobs,
    "filigree": _filigree,
    "tree": _tree,
    "dumbbells": _dumbbells,
    "checkerboard": _checkerboard,
    "stripes": _stripes,
}


def mask_of(name: str, shape: Shape, seed: int) -> Bool:
    """Return a mask (H, W) with at least one pixel."""
    mask = MASKS[name](shape, np.random.default_rng(seed))
    if not mask.any():
        mask[0, 0] = True
    return mask


@dataclass(frozen=True)
class Region:
    """The bounding box of a component, which scales its surface: centre u, v and half of its longer side, in px."""

    u: float
    v: float
    reach: float


def _direction(rng: Random) -> tuple[float, float]:
    angle = rng.uniform(0, 2 * np.pi)
    return np.cos(angle), np.sin(angle)


def _plane(region: Region, rng: Random, camera: Camera) -> Height:
    right, down = _direction(rng)
    slope = STEEPEST * rng.random() ** 2
    if camera.is_central:
        # The plane must not come near the camera, or run along the rays.
        slope = min(slope, 0.6 / (camera.pixel_length * region.reach * np.sqrt(2)))

    def height(u: Float, v: Float) -> Float:
        rise = slope * (right * (u - region.u) + down * (v - region.v))
        return np.log1p(camera.pixel_length * rise) / camera.pixel_length if camera.is_central else rise

    return height


def _polynomial(powers: tuple[tuple[int, int], ...]) -> Callable[[Region, Random, Camera], Height]:
    """Return a surface of random coefficients of some powers of u and v, besides a tilt."""

    def surface(region: Region, rng: Random, camera: Camera) -> Height:
        terms = ((1, 0), (0, 1), *powers)
        factors = rng.uniform(-1, 1, len(terms))
        steepness = sum(abs(factor) * sum(power) for factor, power in zip(factors, terms, strict=True))
        factors *= STEEP * rng.random() * region.reach / max(steepness, 1e-9)

        def height(u: Float, v: Float) -> Float:
            x, y = (u - region.u) / region.reach, (v - region.v) / region.reach
            return sum(f * x**i * y**j for f, (i, j) in zip(factors, terms, strict=True))

        return height

    return surface


def _waves(region: Region, rng: Random, camera: Camera) -> Height:
    right, down = _direction(rng)
    # At least ten pixels in a wave: shorter ones are detail that a coarse mesh cannot have.
    frequency = min(rng.uniform(0.5, 4) * np.pi / region.reach, 2 * np.pi / 10)
    phase, slope = rng.uniform(0, 6), STEEP * rng.random()
    return lambda u, v: slope / frequency * np.sin(frequency * (right * u + down * v) + phase)


def _cap(region: Region, rng: Random, camera: Camera) -> Height:
    """Return a part of a sphere, or of a hollow one."""
    radius = region.reach * rng.uniform(1.8, 6)
    side = rng.choice([-1, 1])
    return lambda u, v: side * np.sqrt(radius**2 - (u - region.u) ** 2 - (v - region.v) ** 2)


def _cone(region: Region, rng: Random, camera: Camera) -> Height:
    slope = rng.uniform(-STEEP, STEEP)
    u0, v0 = region.u + rng.uniform(-1, 1) * region.reach, region.v + rng.uniform(-1, 1) * region.reach
    return lambda u, v: slope * np.hypot(u - u0, v - v0)


def _roof(region: Region, rng: Random, camera: Camera) -> Height:
    right, down = _direction(rng)
    slopes = rng.uniform(-STEEP, STEEP, 2) / np.sqrt(2)
    return lambda u, v: np.maximum(
        slopes[0] * (right * (u - region.u) + down * (v - region.v)),
        slopes[1] * (right * (u - region.u) + down * (v - region.v)),
    )


#: Surfaces by name; the height in pixels is towards the viewer, for perspective cameras in the logarithm of the depth.
SURFACES: dict[str, Callable[[Region, Random, Camera], Height]] = {
    "plane": _plane,
    "quadric": _polynomial(((2, 0), (1, 1), (0, 2))),
    "cubic": _polynomial(((2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))),
    "waves": _waves,
    "cap": _cap,
    "cone": _cone,
    "roof": _roof,
}


@dataclass(frozen=True, eq=False)
class TrueMap:
    """A normal map whose heights are known.

    Attributes
    ----------
    components : (H, W) int
        The 4-connected component of each foreground pixel; −1 in the background.
    surfaces
        The height in pixels of each component as a function of u and v.
    kinds
        The name of each surface.
    """

    normal_map: NormalMap
    scene: Scene
    components: NDArray[np.intp]
    surfaces: tuple[Height, ...]
    kinds: tuple[str, ...]

    @property
    def heights(self) -> Float:
        """(H, W): the heights in pixels towards the viewer, in logarithms of depth for a perspective camera."""
        return self.scene.heights


def true_map(mask: Bool, kind: str, seed: int, camera: Camera, base: float = 0.0, noise: float = 0.0) -> TrueMap:
    """Return a normal map with a surface for each component of the mask.

    Parameters
    ----------
    mask
        (H, W).
    kind
        A name of :data:`SURFACES`, or ``"mixed"``.
    seed
        Of the coefficients.
    camera
    base
        Mean of the heights (px) of all components.
    noise
        Standard deviation of white noise on the normals, in degrees.
    """
    components = ndimage.label(mask)[0] - 1
    u, v = centres(mask.shape)
    heights, slopes = np.zeros(mask.shape), np.zeros((*mask.shape, 2))
    surfaces, kinds = [], []
    for number, box in enumerate(ndimage.find_objects(components + 1)):
        rng = np.random.default_rng([seed, number])
        name = sorted(SURFACES)[rng.integers(len(SURFACES))] if kind == "mixed" else kind
        rows, columns = box
        reach = max(rows.stop - rows.start, columns.stop - columns.start, 4) / 2
        region = Region((columns.start + columns.stop) / 2, (rows.start + rows.stop) / 2, reach)
        surface = SURFACES[name](region, rng, camera)
        here = components == number
        at_u, at_v = u[here], v[here]
        slopes[here, 0] = (surface(at_u + STEP, at_v) - surface(at_u - STEP, at_v)) / (2 * STEP)
        slopes[here, 1] = (surface(at_u, at_v + STEP) - surface(at_u, at_v - STEP)) / (2 * STEP)
        surfaces.append(_raised(surface, base + rng.uniform(-1, 1) * max(mask.shape) / 4))
        heights[here] = surfaces[-1](at_u, at_v)
        kinds.append(name)
    scene = Scene(heights, slopes, components)
    normal_map = scene.normal_map(camera, mask)
    if noise:
        normal_map = noisy(normal_map, noise, seed)
    return TrueMap(normal_map, scene, components, tuple(surfaces), tuple(kinds))


def _raised(surface: Height, base: float) -> Height:
    return lambda u, v: base + surface(u, v)
