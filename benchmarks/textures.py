"""Measure reliefs with steps against their true heights: six textures made here, and the shared ones of games.

For each texture: correlation of heights after the plane is taken off, and of heights without what is larger than an
eighth of the side, for the default, for the continuous surface and with the true lines given; length of lines; walls;
px of cuts that stay open although the surface is shown with its walls; and seconds. ``!`` marks a default that
correlates less than the continuous surface, or gaps.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.cases import CASES
from benchmarks.looks import number
from normalmesh import NormalMap, NormalMeshWarning, Surface, find_jumps, read_normal_map, reconstruct
from normalmesh.mesh.walls import with_walls

Float = NDArray[np.float64]
Height = Callable[[Float, Float], Float]

#: Side of the textures, in pixels; they repeat.
SIZE = 384
#: Samples of a baked pixel along each side, and step (px) of the differences for slopes.
SAMPLES, STEP = 4, 1e-3
#: Largest change of height, in pixels, between neighbouring pixels that is no step.
LARGEST = 2.5
#: Larger differences of correlations mean something.
SAME = 0.005
#: Share of the side that high-passed heights leave out.
COARSE = 1 / 8
#: Distance (px) from the border of the image of edges that are no cuts.
OUTLINE = 1.0
#: Vertices for each pixel.
VERTICES = 0.03


def periodic_noise(u: Float, v: Float, waves: int, seed: int) -> Float:
    """Return smooth noise between about −1 and 1 that repeats."""
    total, rng = np.zeros_like(u), np.random.default_rng(seed)
    for _ in range(12):
        along, down = rng.integers(-waves, waves + 1, 2)
        total += np.sin(2 * np.pi * (along * u + down * v) / SIZE + rng.uniform(0, 6))
    return total / 4


def side(inside: Float, height: float, width: float) -> Float:
    """Return a side that rises within ``width`` px from an outline, steepest there, for distances inside of it."""
    t = np.clip(inside / width, 0, 1)
    return height * np.sqrt(t * (2 - t))


def bricks(u: Float, v: Float) -> Float:
    """Return rows of bricks of different heights, with worn edges, above mortar."""
    row = np.floor(v / 48)
    across = u + 48 * (row % 2)
    column = np.floor(across % SIZE / 96)
    x, y = across % 96, v % 48
    inside = np.minimum(np.minimum(x - 3, 93 - x), np.minimum(y - 3, 45 - y))
    top = 7 + 2 * np.sin(7 * row + 5 * column)
    rough = 0.6 * periodic_noise(u, v, 14, 1) * np.clip(inside / 8, 0, 1)
    return np.where(inside > 0, side(inside, 1, 4) * top + rough, periodic_noise(u, v, 20, 2) * 0.4)


def tiles(u: Float, v: Float) -> Float:
    """Return rows of round tiles, each of which lies on those above it."""
    best = np.full(u.shape, -np.inf)
    for k in range(-2, 9):
        x = (u + 24 * (k % 2)) % 48 - 24
        down = v - 48 * k
        end = 72 - 24 + np.sqrt(np.maximum(24.0**2 - x**2, 0))
        height = 0.3 * down - 0.006 * x**2 * (down / 72) + side(end - down, 3, 4)
        best = np.maximum(best, np.where((down > 0) & (down < end), height, -np.inf))
    return best


def planks(u: Float, v: Float) -> Float:
    """Return upright planks with gaps between them, and grain."""
    x, board = u % 64, np.floor(u / 64)
    grain = 0.5 * np.sin(2 * np.pi * (3 * x / 64 + np.sin(2 * np.pi * v / SIZE + board)))
    bent = 0.0015 * (x - 32) ** 2 * np.where(board % 2, 1, -1)
    inside = np.minimum(x - 2, 62 - x)
    return np.where(inside > 0, side(inside, 8 + 2 * np.sin(3 * board), 3) + grain + bent, 0)


def cobbles(u: Float, v: Float) -> Float:
    """Return round stones with steep sides in sand."""
    rng = np.random.default_rng(5)
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), axis=-1).reshape(-1, 2)
    centres = (grid + 0.5 + rng.uniform(-0.16, 0.16, grid.shape)) * SIZE / 6
    result = 1.2 * periodic_noise(u, v, 24, 3)
    for (u0, v0), radius in zip(centres, rng.uniform(25, 31, len(centres)), strict=True):
        x, y = ((each + SIZE / 2) % SIZE - SIZE / 2 for each in (u - u0, v - v0))
        squared = (x**2 + y**2) / radius**2
        result = np.where(squared < 1, np.maximum(result, 14 * np.maximum(1 - squared, 0) ** 0.4), result)
    return result


def basket(u: Float, v: Float) -> Float:
    """Return strands that pass over and under each other above a floor."""

    def strands(along: Float, across: Float, phase: int) -> Float:
        row, x = np.floor(across / 48), across % 48 - 24
        rise = 5 * np.cos(np.pi * (along / 48 - 0.5 + row + phase))
        return np.where(np.abs(x) < 18, 10 + rise + np.sqrt(np.maximum(20.0**2 - x**2, 0)) / 2, -np.inf)

    return np.maximum(np.maximum(strands(u, v, 0), strands(v, u, 1)), 0)


def louvres(u: Float, v: Float) -> Float:
    """Return slats with round noses that are tilted one way in a frame."""
    inside = (u > 40) & (u < SIZE - 40) & (v > 30) & (v < SIZE - 30)
    y = (v - 30) % 54
    return np.where(inside, 0.6 * y - 6 + side(54 - y, 6, 8), 20 + 0.5 * periodic_noise(u, v, 3, 4))


#: Height in pixels, whether normals are means over the pixels, so that they hold a part of the sides, and the quality
#: of JPEG, or 0 for PNG.
TEXTURES: dict[str, tuple[Height, bool, int]] = {
    "bricks": (bricks, True, 0),
    "tiles": (tiles, False, 0),
    "planks": (planks, True, 90),
    "cobbles": (cobbles, True, 0),
    "basket": (basket, False, 90),
    "louvres": (louvres, False, 0),
}


def normals_of(height: Height, baked: bool) -> Float:
    """Return the normals (SIZE, SIZE, 3) of heights at the centres of pixels, or their means over the pixels."""
    count = SAMPLES if baked else 1
    step = 0.5 / SAMPLES if baked else STEP
    v, u = (np.indices((SIZE * count, SIZE * count)) + 0.5) / count
    right = (height(u + step, v) - height(u - step, v)) / (2 * step)
    down = (height(u, v + step) - height(u, v - step)) / (2 * step)
    normals = np.stack([-right, down, np.ones_like(u)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals = normals.reshape(SIZE, count, SIZE, count, 3).mean(axis=(1, 3))
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Texture:
    """A normal map as it is read, true heights (H, W), and pixels (H, W) beside true steps, if known."""

    name: str
    normal_map: NormalMap
    heights: Float
    steps: NDArray[np.bool_] | None = None


def made_texture(name: str) -> Texture:
    """Return one of :data:`TEXTURES`."""
    height, baked, quality = TEXTURES[name]
    image = np.rint((normals_of(height, baked) + 1) * 127.5).astype(np.uint8)
    if quality:
        image = imagecodecs.jpeg_decode(imagecodecs.jpeg_encode(image, level=quality, subsampling="420"))
    v, u = np.indices((SIZE, SIZE)) + 0.5
    heights = height(u, v)
    steps = np.zeros(heights.shape, np.bool_)
    for turned, at in ((heights, steps), (heights.T, steps.T)):
        # More than the slopes of the sides that normals hold.
        changes = np.abs(np.diff(turned, axis=1))
        at[:, 1:] |= changes > LARGEST
        at[:, :-1] |= changes > LARGEST
    return Texture(name, read_normal_map(image), heights, steps)


def shared_texture(name: str) -> Texture:
    """Return a shared texture of a game."""
    folder = CASES / name
    meta = json.loads((folder / "meta.json").read_text())
    normal_map = read_normal_map(next(folder.glob("normal_map.*")), convention=meta["convention"])
    grey = imagecodecs.imread(next(folder.glob("displacement.*"))).astype(np.float64)
    grey = grey if grey.ndim == 2 else grey[..., 0]
    return Texture(name, normal_map, -grey if meta["displacement"].startswith("depth") else grey)


def names() -> list[str]:
    """Return the names of all textures that are here."""
    return [*TEXTURES, *sorted(path.parent.name for path in CASES.glob("texture_*/meta.json"))]


def without_plane(heights: Float) -> Float:
    """Return heights (H, W) without the plane that fits them best."""
    v, u = np.indices(heights.shape)
    columns = np.stack([u.ravel(), v.ravel(), np.ones(heights.size)], axis=1)
    return heights - (columns @ np.linalg.lstsq(columns, heights.ravel())[0]).reshape(heights.shape)


def correlations(heights: Float, truth: Float) -> tuple[float, float]:
    """Return the correlation without planes, and without what is larger than a share of the side."""
    known = np.isfinite(heights)
    filled = np.where(known, heights, np.nanmean(heights))
    pairs = [[without_plane(each) for each in (filled, truth)]]
    width = COARSE * max(truth.shape)
    pairs.append([each - ndimage.gaussian_filter(each, width, mode="nearest") for each in pairs[0]])
    plain, fine = (float(np.corrcoef(one[known], other[known])[0, 1]) for one, other in pairs)
    return plain, fine


def open_length(surface: Surface) -> float:
    """Return the length in px of edges inside of the image that only one face has, walls included."""
    shown = with_walls(surface)
    scale = np.abs(shown.vertices).max()
    _, welded = np.unique(np.rint(shown.vertices / scale * 1e9), axis=0, return_inverse=True)
    ends = shown.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    _, first, count = np.unique(
        np.sort(welded.reshape(-1)[ends], axis=1), axis=0, return_index=True, return_counts=True
    )
    screen = shown.screen[ends[first[count == 1]]]
    sides = np.array(surface.shape[::-1])
    at_border = (np.abs(screen) < OUTLINE).all(axis=1) | (np.abs(screen - sides) < OUTLINE).all(axis=1)
    return float(np.linalg.norm(screen[:, 1] - screen[:, 0], axis=1)[~at_border.any(axis=1)].sum())


def rows(texture: Texture) -> str:
    """Return the row of a texture."""
    normal_map, start = texture.normal_map, time.process_time()
    vertices = round(VERTICES * normal_map.foreground)
    surface = reconstruct(normal_map, vertices=vertices)
    seconds = time.process_time() - start
    continuous = reconstruct(normal_map, vertices=vertices, discontinuities=False)
    found = correlations(surface.depth_map(), texture.heights)
    smooth = correlations(continuous.depth_map(), texture.heights)
    known = texture.steps is not None and texture.steps.any()
    true = reconstruct(normal_map, vertices=vertices, jumps=texture.steps) if known else surface
    given = correlations(true.depth_map(), texture.heights)
    gap = open_length(surface)
    fails = found[1] < smooth[1] - SAME or gap > 0
    return (
        f"{texture.name:24} {found[0]:7.3f} {smooth[0]:7.3f} {number(given[0] if known else None, '7.3f')} "
        f"{found[1]:7.3f} {smooth[1]:7.3f} {number(given[1] if known else None, '7.3f')} "
        f"{find_jumps(normal_map).length:7} {len(surface.walls):7} {gap:7.1f} {seconds:6.1f}{' !' if fails else ''}"
    )


def table(chosen: list[str]) -> Iterator[str]:
    """Yield the lines of the table."""
    heads = ("all", "cont.", "true", "fine", "cont.", "true", "lines", "walls", "open")
    yield f"{'texture':24} {' '.join(f'{head:>7}' for head in heads)} {'s':>6}"
    for name in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NormalMeshWarning)
            yield rows(made_texture(name) if name in TEXTURES else shared_texture(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--textures", nargs="*", default=names(), choices=names())
    for line in table(parser.parse_args().textures):
        print(line, flush=True)


if __name__ == "__main__":
    main()
