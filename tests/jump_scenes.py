"""Scenes whose depth jumps along lines that fade out, to compare surfaces with the truth and with known lines.

All are connected to their ground somewhere, so that normals determine them, and are 160 px wide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from normalmesh import NormalMap, Orthographic, Surface
from scenes import Float, Layer, Scene, bump, everywhere
from surfaces import noisy

SIZE = 160

#: Perturbations of a map: noise in degrees, rounding, compression.
KINDS = ("clean", "0.003°", "0.1°", "1°", "3°", "8 bit", "JPEG 90")


def ground(u: Float, v: Float) -> Float:
    return 2.0 * np.sin(u / 25) * np.cos(v / 30)


def waves(u: Float, v: Float) -> Float:
    return 4.0 * np.sin(u / 14 + 0.3) * np.cos(v / 17)


def flat(u: Float, v: Float) -> Float:
    return np.zeros_like(u)


def round_edge(inside: Float, rim: float = 6.0) -> Float:
    """Return by how much a sheet turns down at a distance inside its outline."""
    t = np.clip(1 - inside / rim, 0, 0.95)
    return rim * (np.sqrt(1 - t * t) - 1)


def smooth_step(t: Float) -> Float:
    t = np.clip(t, 0, 1)
    return t * t * (3 - 2 * t)


def box(u: Float, v: Float, left: float, right: float, top: float, bottom: float) -> NDArray[np.bool_]:
    return (u > left) & (u < right) & (v > top) & (v < bottom)


def strip() -> list[Layer]:
    """Return a strip that rises from the ground on the left and ends above it on the right."""
    return [Layer(ground, everywhere), *tongue(30, 60, 130, 60, 100, 12)]


def tongue(left: float, risen: float, right: float, top: float, bottom: float, high: float) -> list[Layer]:
    """Return a sheet with round edges that leaves the ground at ``left`` and is ``high`` above it from ``risen`` on."""

    def height(u: Float, v: Float) -> Float:
        share = smooth_step((u - left) / risen)
        inside = np.minimum(np.minimum(v - top, bottom - v), right - u)
        return ground(u, v) + high * share + round_edge(inside) * np.clip((u - left) / risen, 0, 1)

    return [Layer(height, partial(box, left=left, right=right, top=top, bottom=bottom))]


def fingers() -> list[Layer]:
    """Return three strips beside each other, which rise to different heights."""
    rows = ((26, 58, 20), (61, 97, 32), (100, 134, 14))
    return [
        Layer(ground, everywhere),
        *(each for top, bottom, high in rows for each in tongue(20, 70, 120 + high, top, bottom, high)),
    ]


def ramp() -> list[Layer]:
    """Return a ramp that is cut on three sides."""
    return panel(ground, lambda u: 0.2 * u, 40, 120, 50, 110)


def panel(
    under: Callable[[Float, Float], Float],
    rise: Callable[[Float], Float],
    left: float,
    right: float,
    top: float,
    bottom: float,
) -> list[Layer]:
    """Return a sheet with sharp edges that rises from its hinge on the left."""
    where = partial(box, left=left, right=right, top=top, bottom=bottom)
    return [Layer(under, everywhere), Layer(lambda u, v: under(u, v) + rise(u - left), where)]


def door() -> list[Layer]:
    """Return a door in a flat wall, hinged on the left."""
    return panel(flat, lambda u: 0.6 * u, 45, 120, 40, 120)


def curled_door() -> list[Layer]:
    """Return a door that leaves the wall smoothly."""
    return panel(flat, lambda u: 0.006 * np.maximum(u, 0) ** 2, 45, 120, 40, 120)


def door_on_waves() -> list[Layer]:
    """Return a flat door in a wavy wall, in which its hinge is straight."""
    where = partial(box, left=45, right=120, top=40, bottom=120)

    def wall(u: Float, v: Float) -> Float:
        return waves(u, v) * smooth_step(np.abs(u - 45) / 12)

    return [Layer(wall, everywhere), Layer(lambda u, v: 8.0 * smooth_step((u - 45) / 40) + 0.4 * (u - 45), where)]


def arch() -> list[Layer]:
    """Return a bridge that stands on the ground at both ends."""
    where = partial(box, left=20, right=140, top=60, bottom=100)
    return [Layer(ground, everywhere), Layer(lambda u, v: ground(u, v) + 24 * bump((u - 80) / 60), where)]


def leaf() -> list[Layer]:
    """Return a leaf that leaves the ground at its stem, folded along its middle and curled upwards."""

    def width(u: Float) -> Float:
        return 34 * np.sin(np.pi * np.clip((u - 24) / 116, 0, 1)) ** 0.8

    def height(u: Float, v: Float) -> Float:
        along = np.maximum(u - 24, 0)
        return ground(u, v) + 0.28 * along - 0.0006 * along**2 + 0.004 * (v - 80) ** 2 * smooth_step(along / 40)

    return [Layer(ground, everywhere), Layer(height, lambda u, v: np.abs(v - 80) < width(u))]


def spheres() -> list[Layer]:
    """Return two overlapping spheres on a ground that they touch all around."""
    layers = [Layer(ground, everywhere)]
    for u0, v0, radius, level in ((62.0, 80.0, 34.0, 0.0), (98.0, 80.0, 34.0, 16.0)):
        squared = partial(cap, u0=u0, v0=v0, radius=radius)
        height = lambda u, v, f=squared, z=level: 0.6 * np.sqrt(np.maximum(f(u, v), 0)) + z  # noqa: E731
        layers.append(Layer(height, lambda u, v, f=squared: f(u, v) > 1))
    return layers


def cap(u: Float, v: Float, u0: float, v0: float, radius: float) -> Float:
    return radius**2 - (u - u0) ** 2 - (v - v0) ** 2


def step() -> list[Layer]:
    """Return a step of a relief, which fades out in the ground."""

    def high(u: Float, v: Float) -> Float:
        return ground(u, v) + 10 * bump((v - 80) / 60) * np.clip(u / 80, 0, 1) ** 2

    return [Layer(ground, everywhere), Layer(high, lambda u, v: u < 80)]


SCENES = {
    each.__name__: each for each in (strip, door, curled_door, door_on_waves, fingers, arch, leaf, ramp, spheres, step)
}
#: Scenes in which normals decide where lines are and which side is in front.
DECIDED = ("strip", "fingers", "spheres", "step")
#: Scenes whose surfaces are not worse than continuous ones; those of them that are as good as with true lines.
AGREEING = ("strip", "curled_door", "fingers", "ramp", "spheres", "step")
COMPLETE = ("fingers", "spheres")
#: Ratio of errors, and error in px, up to which surfaces are equally good.
RATIO, SMALL = 1.1, 0.05


def jump_scene(name: str, turn: int = 0) -> Scene:
    """Return one of :data:`SCENES`, after so many quarter turns."""
    layers = SCENES[name]()
    for _ in range(turn):
        layers = [Layer(turned(each.height), turned(each.where)) for each in layers]
    return Scene.of(layers, (SIZE, SIZE))


def turned(function: Callable[[Float, Float], Any]) -> Callable[[Float, Float], Any]:
    return lambda u, v: function(v, SIZE - u)


def perturbed(normal_map: NormalMap, kind: str, seed: int = 0) -> NormalMap:
    """Return a map as one of :data:`KINDS`, or as JPEG of another quality."""
    if kind == "clean":
        return normal_map
    if kind.endswith("°"):
        return noisy(normal_map, float(kind[:-1]), seed)
    image = np.rint((normal_map.normals + 1) * 127.5).astype(np.uint8)
    if kind.startswith("JPEG"):
        image = imagecodecs.jpeg_decode(imagecodecs.jpeg_encode(image, level=int(kind[4:]), subsampling="420"))
    normals = image / 127.5 - 1
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, normal_map.mask, normal_map.camera)


def perturbed_scene(name: str, kind: str, seed: int = 0, turn: int = 0) -> tuple[Scene, NormalMap]:
    """Return a scene and its normal map as one of :data:`KINDS`."""
    truth = jump_scene(name, turn)
    return truth, perturbed(truth.normal_map(Orthographic()), kind, seed)


def depth_rms(surface: Surface, truth: Scene) -> float:
    """Return the root mean square error of the depths in px, after removal of the mean."""
    difference = surface.depth_map() - truth.depth(surface.camera)
    difference -= np.nanmean(difference)
    return float(np.sqrt(np.nanmean(difference**2)))


def true_lines(truth: Scene) -> NDArray[np.bool_]:
    """Return the pixels (H, W) beside true jumps, as an edge image."""
    image = np.zeros(truth.heights.shape, np.bool_)
    u, v = truth.silhouette()[0].T
    for shift in (-0.25, 0.25):
        image[np.floor(v + shift).astype(int), np.floor(u + shift).astype(int)] = True
    return image
