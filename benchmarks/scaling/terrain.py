"""A terrain of any size with known heights, made window by window, and written as a tiled TIFF."""

from __future__ import annotations

import math
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from benchmarks.scaling import _terrain
from normalmesh import NormalMap
from normalmesh.evaluation.synthetic.relief_case import chosen_camera
from normalmesh.normals.camera import Camera

Float = NDArray[np.float64]

#: Kinds of terrain: seen from above; with a mask full of holes; by a perspective camera; with teeth whose rims occlude.
KINDS = ("plain", "holes", "perspective", "jumps")
#: Longest and shortest wavelength (px) and number of the waves, and the usual slope of one.
LONGEST, SHORTEST, WAVES, SLOPE = 8000.0, 40.0, 20, 0.1
#: Width (px) to which a ridge is rounded, and the largest softness.
RIDGE, SOFTEST = 4.0, 0.5
#: How much lower the ground between teeth is.
CALM = 0.3
#: Smallest and largest side (px) of the cell of a tooth, and how many there are along an image between them.
TOOTH, TEETH = (300.0, 1400.0), 6
#: Side (px) of the tiles of a file, and how many are made ahead by each thread.
TILE, AHEAD = 512, 4


@dataclass(frozen=True, eq=False)
class Ground:
    """The truth in a window.

    Attributes
    ----------
    heights : (H, W)
        Towards the viewer, in pixels.
    slopes : (2, H, W)
        Of the heights by u and v.
    mask : (H, W) bool
        The foreground.
    clear : (H, W) bool
        Pixels away from jumps.
    """

    heights: Float
    slopes: Float
    mask: NDArray[np.bool_]
    clear: NDArray[np.bool_]


@dataclass(frozen=True)
class Terrain:
    """Hills, ridges and waves of side × side pixels. All sizes are the same ground, except for the size of teeth.

    A perspective camera sees it such that heights are −f times the logarithm of the depth.
    """

    side: int
    kind: str = "plain"

    @classmethod
    def of(cls, megapixels: float, kind: str = "plain") -> Terrain:
        return cls(max(round(math.sqrt(1e6 * megapixels)), TILE // 4), kind)

    @property
    def shape(self) -> tuple[int, int]:
        return self.side, self.side

    @property
    def camera(self) -> Camera:
        return chosen_camera("perspective" if self.kind == "perspective" else "orthographic", self.shape)

    @cached_property
    def _waves(self) -> Float:
        """Waves (K, 5), see `_terrain.add_waves`: every second one is a ridge, but not the shortest one."""
        random = np.random.default_rng(0)
        lengths = np.geomspace(LONGEST, SHORTEST, WAVES)
        frequency, turn = 2 * np.pi / lengths, random.uniform(0, np.pi, WAVES)
        softness = np.clip(frequency * RIDGE, 0.1, SOFTEST) * (np.arange(WAVES) % 2 == 0)
        amplitude = SLOPE / frequency * random.uniform(0.5, 1.2, WAVES) * (CALM if self.kind == "jumps" else 1.0)
        phase = random.uniform(0, 2 * np.pi, WAVES)
        return np.stack([frequency * np.cos(turn), frequency * np.sin(turn), phase, amplitude, softness], axis=1)

    @cached_property
    def _holes(self) -> Float:
        """Holes (P, Q, 3), see `_terrain.cut_holes`: most are small; together an eighth of the area."""
        random, half = np.random.default_rng(1), _terrain.HOLE_CELL / 2
        radius = 2 + (half - 8) * random.random((61, 67, 1)) ** 2
        centre = half + (half - 2 - radius) * random.uniform(-1, 1, (61, 67, 2))
        return np.concatenate([centre, radius], axis=2)

    def ground(self, rows: slice, columns: slice) -> Ground:
        """Return the truth in a window."""
        top, left = rows.start, columns.start
        shape = rows.stop - top, columns.stop - left
        heights, slopes = np.zeros(shape), np.zeros((2, *shape))
        mask, clear = np.ones(shape, np.bool_), np.ones(shape, np.bool_)
        _terrain.add_waves(top, left, self._waves, np.empty((2, shape[1])), heights, slopes)
        if self.kind == "jumps":
            cell = float(np.clip(self.side / TEETH, *TOOTH))
            _terrain.add_teeth(top, left, cell, heights, slopes, clear)
        if self.kind == "holes":
            _terrain.cut_holes(top, left, self._holes, mask)
        return Ground(heights, slopes, mask, clear)

    def normals(self, ground: Ground, rows: slice, columns: slice) -> NDArray[np.float32]:
        """Return the normals (H, W, 3) of the truth in a window."""
        camera = self.camera
        normals = np.empty((*ground.heights.shape, 3), np.float32)
        slopes = camera.towards_viewer * camera.pixel_length * ground.slopes
        _terrain.write_normals(rows.start, columns.start, slopes, camera.frame, camera.towards_viewer, normals)
        return normals

    def depth_to_heights(self, depth: Float) -> Float:
        """Return heights in pixels from depths as `Surface.depth_map` gives them."""
        camera = self.camera
        return camera.unknown_of_depth(depth) / (camera.towards_viewer * camera.pixel_length)

    def normal_map(self) -> NormalMap:
        """Return the map in memory."""
        normals, mask = np.empty((*self.shape, 3), np.float32), np.empty(self.shape, np.bool_)

        def fill(window: tuple[slice, slice]) -> None:
            ground = self.ground(*window)
            normals[window], mask[window] = self.normals(ground, *window), ground.mask

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, self._windows()))
        return NormalMap(normals, mask, self.camera)

    def _windows(self) -> Iterator[tuple[slice, slice]]:
        for top in range(0, self.side, TILE):
            for left in range(0, self.side, TILE):
                yield slice(top, min(top + TILE, self.side)), slice(left, min(left + TILE, self.side))

    def write(self, folder: Path) -> TerrainFiles:
        """Write the map, and mask and camera if it has one, unless they are there; memory is bounded."""
        folder.mkdir(parents=True, exist_ok=True)
        files = TerrainFiles.of(self, folder)
        if files.mask is not None and not files.mask.exists():
            self._write(files.mask, self._mask_tile, (), np.uint8)
        if files.camera is not None:
            np.savetxt(files.camera, self.camera.matrix())
        if not files.map.exists():
            self._write(files.map, self._encoded_tile, (3,), np.uint16)
        return files

    def _encoded_tile(self, window: tuple[slice, slice]) -> NDArray[np.uint16]:
        encoded = np.rint((self.normals(self.ground(*window), *window) + 1.0) * 32767.5).astype(np.uint16)
        return _padded(encoded)

    def _mask_tile(self, window: tuple[slice, slice]) -> NDArray[np.uint8]:
        return _padded(self.ground(*window).mask.astype(np.uint8) * 255)

    def _write(self, path: Path, make: Callable[..., Any], channels: tuple[int, ...], dtype: type) -> None:
        """Write a TIFF of tiles that ``make`` returns, aside first: a file that is there is whole."""
        aside, shape = path.with_suffix(".part"), (*self.shape, *channels)
        tifffile.imwrite(
            aside,
            _ahead(make, self._windows()),
            shape=shape,
            dtype=dtype,
            tile=(TILE, TILE),
            photometric="rgb" if channels else "minisblack",
            bigtiff=math.prod(shape) * np.dtype(dtype).itemsize > 2e9,
            compression="deflate",
            compressionargs={"level": 1},
            predictor=bool(channels),
            maxworkers=os.cpu_count(),
        )
        aside.replace(path)


@dataclass(frozen=True)
class TerrainFiles:
    """The files of a terrain; no mask or camera if there is none to give."""

    map: Path
    mask: Path | None
    camera: Path | None

    @classmethod
    def of(cls, terrain: Terrain, folder: Path) -> TerrainFiles:
        name = f"{terrain.kind}-{terrain.side}"
        mask = folder / f"{name}-mask.tif" if terrain.kind == "holes" else None
        camera = folder / f"{name}-camera.txt" if terrain.kind == "perspective" else None
        return cls(folder / f"{name}.tif", mask, camera)

    @property
    def options(self) -> list[str]:
        """Options of the command line."""
        given = {"--mask": self.mask, "--camera": self.camera}
        return [word for name, path in given.items() if path is not None for word in (name, str(path))]

    def remove(self) -> None:
        for path in (self.map, self.mask, self.camera):
            if path is not None:
                path.unlink(missing_ok=True)


@contextmanager
def map_folder(given: Path | None) -> Iterator[Path]:
    """Yield the folder for maps: the given one, or one that is removed at the end."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _ahead(make: Callable[..., Any], windows: Iterator[tuple[slice, slice]]) -> Iterator[Any]:
    """Yield what ``make`` returns for each window, in their order, while threads make the next ones."""
    threads = os.cpu_count() or 1
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for window in windows:
            waiting.append(pool.submit(make, window))
            if len(waiting) > AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _padded(tile: NDArray[Any]) -> NDArray[Any]:
    """Return a tile of full size: zeros beyond the image."""
    missing = [(0, TILE - length) for length in tile.shape[:2]] + [(0, 0)] * (tile.ndim - 2)
    return np.pad(tile, missing)
