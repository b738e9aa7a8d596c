"""Scenes of layers that occlude each other, with exact depths, normals and silhouettes, for both cameras.

A layer is a height s(u, v) in pixels towards the viewer with a domain; the nearest layer is visible at each pixel. All
jumps are determined by the normals: they fade out somewhere, so that both sides are connected around them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from normalmesh import Camera, NormalMap, Surface
from normalmesh.mesh.cut_mesh import slits
from surfaces import centres

Float = NDArray[np.float64]
Height = Callable[[Float, Float], Float]
Where = Callable[[Float, Float], NDArray[np.bool_]]

#: Step of the central differences for slopes, in pixels.
STEP = 1e-5
#: Smallest height difference of neighbouring pixels at a silhouette, and at one that must be found, in pixels.
JUMP, CLEAR_JUMP = 1.0, 2.0
#: Largest distance between a silhouette and a matching cut, in pixels.
NEAR = 2.0


@dataclass(frozen=True)
class Layer:
    height: Height
    where: Where


@dataclass(frozen=True, eq=False)
class Scene:
    """The visible surface of a scene.

    Attributes
    ----------
    heights : (H, W)
        In pixels, towards the viewer.
    slopes : (H, W, 2)
        Of the heights by u and v.
    layer : (H, W) int
        The nearest layer.
    """

    heights: Float
    slopes: Float
    layer: NDArray[np.intp]

    @classmethod
    def of(cls, layers: list[Layer], shape: tuple[int, int]) -> Scene:
        u, v = centres(shape)
        heights = np.stack([np.where(each.where(u, v), each.height(u, v), -np.inf) for each in layers])
        nearest = heights.argmax(axis=0)
        slopes = np.empty((*shape, 2))
        for number, each in enumerate(layers):
            here = nearest == number
            for axis, (right, down) in enumerate(((STEP, 0.0), (0.0, STEP))):
                ahead = each.height(u[here] + right, v[here] + down)
                behind = each.height(u[here] - right, v[here] - down)
                slopes[here, axis] = (ahead - behind) / (2 * STEP)
        return cls(heights.max(axis=0), slopes, nearest)

    def unknown(self, camera: Camera) -> Float:
        """Return the height, or the logarithm of the depth, (H, W)."""
        return camera.towards_viewer * camera.pixel_length * self.heights

    def depth(self, camera: Camera) -> Float:
        """Return depths (H, W) as ``Surface.depth_map``; a perspective camera is at the distance 1 from height 0."""
        u, v = centres(self.heights.shape)
        return camera.depth(camera.points(np.stack([u, v], axis=-1), self.unknown(camera)))

    def normal_map(self, camera: Camera, mask: NDArray[np.bool_] | None = None) -> NormalMap:
        """Return exact normals: perpendicular to ``τ_u + ∂_u z r`` and ``τ_v + ∂_v z r``, towards the viewer."""
        rays = camera.rays(*centres(self.heights.shape))
        slopes = camera.towards_viewer * camera.pixel_length * self.slopes
        along_u, along_v = (tau + slopes[..., i, None] * rays for i, tau in enumerate(camera.tangents))
        normals = np.cross(along_u, along_v)
        normals *= np.sign(camera.towards_viewer * (normals * rays).sum(axis=-1, keepdims=True))
        return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), mask, camera)

    def silhouette(self) -> tuple[Float, Float]:
        """Return the midpoints (K, 2) of the pixel sides across which height jumps, and the jumps (K,) in pixels."""
        middles, jumps = [], []
        for axis in (0, 1):
            step, mean = np.diff(self.heights, axis=1 - axis), self.slopes[..., axis]
            mean = (mean[:, 1:] + mean[:, :-1]) / 2 if axis == 0 else (mean[1:] + mean[:-1]) / 2
            misfit = step - mean
            i, j = np.nonzero(np.abs(misfit) > JUMP)
            middles.append(np.stack([j + (1.0, 0.5)[axis], i + (0.5, 1.0)[axis]], axis=1))
            jumps.append(np.abs(misfit[i, j]))
        return np.concatenate(middles), np.concatenate(jumps)


def bump(t: Float) -> Float:
    """Return a smooth bump: 1 at 0, fading to 0 at ±1."""
    return np.clip(1 - t * t, 0, None) ** 2


def everywhere(u: Float, v: Float) -> NDArray[np.bool_]:
    return np.ones(u.shape, np.bool_)


def swell(u: Float, v: Float, size: float) -> Float:
    """Return a gently curved floor."""
    return 0.02 * size * np.sin(3 * u / size + 0.4) * np.cos(2.5 * v / size)


def rolled(inside: Float, rim: float) -> Float:
    """Return by how much a sheet turns down at a distance (px) inside its silhouette, along a circle of radius ``rim``.

    The quarter circle ends before it is vertical, at a slope of about 2.
    """
    across = 0.92 * np.clip(rim - inside, 0, rim)
    return rim - np.sqrt(rim**2 - across**2)


def steps(size: int, rim: float) -> list[Layer]:
    """Return teeth that rise to the right and drop; their height fades out above and below."""
    width = size / 4.5

    def tooth(u: Float, v: Float, start: float) -> Float:
        rise = 0.55 * (u - start) * bump((v - size / 2) / (0.42 * size))
        return swell(u, v, size) + rise - rolled(start + width - u, rim)

    def between(u: Float, v: Float, start: float) -> NDArray[np.bool_]:
        return (u >= start) & (u < start + width)

    starts = width * (np.arange(3) + 0.75)
    teeth = [Layer(partial(tooth, start=start), partial(between, start=start)) for start in starts]
    return [Layer(partial(swell, size=size), everywhere), *teeth]


def flaps(size: int, rim: float) -> list[Layer]:
    """Return overlapping tongues that rise from the floor and end in round tips."""

    def inside(u: Float, v: Float, middle: float, half: float, tip: float) -> Float:
        return np.where(u > tip - half, half - np.hypot(u - tip + half, v - middle), half - np.abs(v - middle))

    def tongue(u: Float, v: Float, hinge: float, middle: float, half: float, tip: float, slope: float) -> Float:
        rise = slope * (u - hinge) * (1 - ((v - middle) / half) ** 2)
        return swell(u, v, size) + rise - rolled(inside(u, v, middle, half, tip), rim)

    def within(u: Float, v: Float, hinge: float, middle: float, half: float, tip: float) -> NDArray[np.bool_]:
        return (u > hinge) & (inside(u, v, middle, half, tip) > 0)

    layers = [Layer(partial(swell, size=size), everywhere)]
    for hinge, middle, half, tip, slope in (
        (0.08, 0.36, 0.22, 0.55, 0.55),
        (0.30, 0.60, 0.24, 0.72, 0.45),
        (0.50, 0.40, 0.22, 0.92, 0.40),
    ):
        place = {"hinge": hinge * size, "middle": middle * size, "half": half * size, "tip": tip * size}
        layers.append(Layer(partial(tongue, **place, slope=slope), partial(within, **place)))
    return layers


def torus(size: int, rim: float) -> list[Layer]:
    """Return a ring that sinks into the floor on the left and floats above it on the right, with its own rims."""
    ring, tube = 0.3 * size, 0.12 * size

    def off(u: Float, v: Float) -> Float:
        return np.hypot(u - size / 2, v - size / 2) - ring

    def height(u: Float, v: Float) -> Float:
        return 0.3 * (u - 0.45 * size) + np.sqrt(np.clip(tube**2 - off(u, v) ** 2, 1e-9, None))

    return [
        Layer(partial(swell, size=size), everywhere),
        Layer(height, lambda u, v: np.abs(off(u, v)) < 0.9 * tube),
    ]


def cards(size: int, rim: float) -> list[Layer]:
    """Return a fan of cards that is held on the left: the nearest card is the steepest and shortest."""
    turn = np.radians(12)

    def along(u: Float, v: Float) -> tuple[Float, Float]:
        x, y = u - size / 2, v - size / 2
        return np.cos(turn) * x + np.sin(turn) * y + 0.3 * size, np.cos(turn) * y - np.sin(turn) * x

    def height(u: Float, v: Float, tilt: float, low: float) -> Float:
        x, y = along(u, v)
        x = np.clip(x, 0, None)
        return tilt * (x - 0.0008 * x**2) - 0.1 * y - rolled(low - y, rim)

    def within(u: Float, v: Float, low: float) -> NDArray[np.bool_]:
        return along(u, v)[1] < low

    rims = ((-0.22, 0.75), (-0.04, 0.5), (0.14, 0.25), (9.0, 0.0))
    return [Layer(partial(height, tilt=tilt, low=low * size), partial(within, low=low * size)) for low, tilt in rims]


def spiral(size: int, rim: float) -> list[Layer]:
    """Return three spiral arms from a common middle to a common floor; each rises to a rim that occludes the next."""
    pitch, arms = 0.4 * size, 3

    def polar(u: Float, v: Float) -> tuple[Float, Float]:
        x, y = u - size / 2, v - size / 2
        return np.hypot(x, y), np.arctan2(y, x) % (2 * np.pi)

    def across(u: Float, v: Float, number: int) -> Float:
        """Return 0 at the foot of an arm, 1 at its rim."""
        radius, angle = polar(u, v)
        return radius / pitch - arms * angle / (2 * np.pi) - number

    def height(u: Float, v: Float, number: int) -> Float:
        radius, share = polar(u, v)[0], across(u, v, number)
        rise = 0.2 * size * bump((radius - 0.26 * size) / (0.22 * size)) * share
        inside = (1 - share) / np.hypot(1 / pitch, arms / (2 * np.pi * radius))
        return swell(u, v, size) + rise - rolled(inside, rim)

    def within(u: Float, v: Float, number: int) -> NDArray[np.bool_]:
        share = across(u, v, number)
        return (share > -0.5) & (share < 1)

    return [Layer(partial(height, number=k), partial(within, number=k)) for k in range(-arms - 1, 5)]


def hole(size: int, rim: float) -> list[Layer]:
    """Return a domed plate with a hole, and a floor below it that rises to the plate on the left."""
    left = 0.3 * size

    def dome(u: Float, v: Float) -> Float:
        return -0.3 / size * ((u - 0.5 * size) ** 2 + (v - 0.5 * size) ** 2)

    def outside(u: Float, v: Float) -> Float:
        return np.hypot(u - 0.48 * size, v - 0.5 * size) - 0.3 * size

    def plate(u: Float, v: Float) -> Float:
        return dome(u, v) - rolled(outside(u, v), rim)

    def floor(u: Float, v: Float) -> Float:
        beyond = np.clip(u - left, 0, None)
        return dome(u, v) - 0.45 * beyond - 0.002 * beyond**2

    return [Layer(plate, lambda u, v: outside(u, v) > 0), Layer(floor, everywhere)]


def ball(size: int) -> list[Layer]:
    """Return a spherical cap that floats above a sloping floor; only a prior determines its height."""
    radius = 0.3 * size

    def off(u: Float, v: Float) -> Float:
        return np.hypot(u - size / 2, v - size / 2)

    def cap(u: Float, v: Float) -> Float:
        return 0.4 * size + np.sqrt(np.clip(radius**2 - off(u, v) ** 2, 1e-9, None))

    return [
        Layer(lambda u, v: 0.5 * (u - size / 2), everywhere),
        Layer(cap, lambda u, v: off(u, v) < 0.9 * radius),
    ]


def dome(size: int) -> list[Layer]:
    """Return a smooth surface."""
    return [Layer(lambda u, v: -0.4 / size * ((u - 0.5 * size) ** 2 + (v - 0.4 * size) ** 2), everywhere)]


SCENES = {each.__name__: each for each in (steps, flaps, torus, cards, spiral, hole)}


def scene(name: str, size: int = 128, rim: float = 4.0) -> Scene:
    """Return one of :data:`SCENES` with rims that turn down over ``rim`` pixels; 0: sheets of paper."""
    return Scene.of(SCENES[name](size, rim), (size, size))


def heights_of(surface: Surface) -> Float:
    """Return the depth map (H, W) of a surface as heights in pixels."""
    camera, depth = surface.camera, surface.depth_map()
    return camera.towards_viewer * (np.log(depth) if camera.towards_viewer < 0 else depth) / camera.pixel_length


def depth_error(surface: Surface, truth: Scene, mask: NDArray[np.bool_] | None = None) -> float:
    """Return the root mean square error in pixels, after removal of the mean (orthographic) or scale (perspective)."""
    error = heights_of(surface) - truth.heights
    return float((error if mask is None else error[mask]).std())


def cut_points(surface: Surface, spacing: float = 0.25) -> Float:
    """Return evenly spaced points (K, 2) along the cut edges on the screen."""
    found = surface.discontinuities
    points = [np.zeros((0, 2))]
    for start, end in found.screen:
        count = max(int(np.ceil(np.linalg.norm(end - start) / spacing)), 1)
        points.append(start + (np.arange(count)[:, None] + 0.5) / count * (end - start))
    return np.concatenate(points)


def precision_and_recall(surface: Surface, truth: Scene) -> tuple[float, float]:
    """Return the fraction of the length of the cuts near a silhouette, and of the clear silhouettes near a cut."""
    cuts, (sides, jumps) = cut_points(surface), truth.silhouette()
    if len(cuts) == 0:
        return 1.0, 0.0
    precision = cKDTree(sides).query(cuts)[0] <= NEAR
    recall = cKDTree(cuts).query(sides[jumps >= CLEAR_JUMP])[0] <= NEAR
    return float(precision.mean()), float(recall.mean())


def jumps_and_truth(surface: Surface, truth: Scene) -> tuple[Float, Float]:
    """Return measured and true jumps (K,) at the midpoints of the cut edges, in pixels towards the viewer.

    The truth is read 1.5 px to either side of an edge and extrapolated to it along the slopes.
    """
    found, camera = surface.discontinuities, surface.camera
    ends = found.screen
    middle, along = ends.mean(axis=1), ends[:, 1] - ends[:, 0]
    across = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1, keepdims=True)
    one, other = (surface.screen[surface.faces[corners // 3]].mean(axis=1) for corners in slits(surface.mesh))
    across *= np.sign(((other - one) * across).sum(axis=1, keepdims=True))
    rows, columns = truth.heights.shape
    levels = []
    for side in (-1.5, 1.5):
        j, i = np.clip(np.floor(middle + side * across), 0, [columns - 1, rows - 1]).astype(int).T
        back = middle - np.stack([j + 0.5, i + 0.5], axis=1)
        levels.append(truth.heights[i, j] + (truth.slopes[i, j] * back).sum(axis=1))
    depth = 1.0 if camera.towards_viewer > 0 else np.nanmean(surface.depth_map())
    jumps = camera.towards_viewer * found.jumps / (camera.pixel_length * depth)
    return jumps, levels[1] - levels[0]


def drops_and_truth(surface: Surface, truth: Scene, reach: int = 4) -> tuple[Float, Float]:
    """Return measured and true height differences (K,) between pixels on both sides of each clear silhouette."""
    middles, jumps = truth.silhouette()
    found, (rows, columns) = heights_of(surface), truth.heights.shape
    places = middles[jumps >= CLEAR_JUMP]
    along_u = places[:, :1] == np.floor(places[:, :1])
    step = np.where(along_u, [reach - 0.25, 0], [0, reach - 0.25])
    before, behind = (np.floor(ends).astype(int) for ends in (places - step, places + step))
    on_screen = ((before >= 0) & (behind < [columns, rows])).all(axis=1)
    rises = [
        heights[behind[on_screen, 1], behind[on_screen, 0]] - heights[before[on_screen, 1], before[on_screen, 0]]
        for heights in (found, truth.heights)
    ]
    return rises[0], rises[1]
