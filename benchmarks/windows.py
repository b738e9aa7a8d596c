"""Measure opening a tiled TIFF and reading a window of it; baseline: decoding all of it."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray

import normalmesh as nm
from normalmesh.maps.stored_normals import read_array

TILE = 512
MASKS = ("no mask", "mask with holes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=8192, help=f"rows and columns of the map, a multiple of {TILE}")
    size = parser.parse_args().size
    print(f"{size}² pixels       decode       open  (÷ decode)      MB    window of 2048²")
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), size)
        # Each row has its own process, because the peak memory of a process never decreases.
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            for line in pool.starmap(measure, [(name, Path(folder)) for name in MASKS], chunksize=1):
                print(line)


def measure(name: str, folder: Path) -> str:
    """Return one line of the table; seconds are those of the processor."""
    nm.NormalMap(np.broadcast_to(np.float32([0, 0, 1]), (4, 4, 3)))  # compiles kernels
    array, start = read_array(folder / "map.tif", in_memory=False), time.process_time()
    for window in array.passes():
        array.read(*window)
    decoded, before = time.process_time(), peak_memory()
    opened = nm.NormalMap.open(folder / "map.tif", mask=None if name == "no mask" else folder / "mask.tif")
    made, used = time.process_time(), peak_memory() - before
    opened.window(slice(1000, 3048), slice(1000, 3048))
    read = time.process_time()
    return (
        f"{name:18} {decoded - start:8.2f} s {made - decoded:8.2f} s {(made - decoded) / (decoded - start):9.1f} "
        f"{used / 1e6:10.0f} {read - made:12.2f} s"
    )


def write_files(folder: Path, size: int) -> None:
    """Write a map of waves, 16 bit, and a mask with holes of 8² pixels, both in compressed tiles."""
    options = {"tile": (TILE, TILE), "compression": "zlib", "bigtiff": True}
    shape = (size, size)
    tifffile.imwrite(
        folder / "map.tif", normal_tiles(size), shape=(*shape, 3), dtype=np.uint16, photometric="rgb", **options
    )
    tifffile.imwrite(folder / "mask.tif", mask_tiles(size), shape=shape, dtype=np.uint8, **options)


def normal_tiles(size: int) -> Iterator[NDArray[np.uint16]]:
    """Yield the tiles of the map, row by row."""
    for top in range(0, size, TILE):
        for left in range(0, size, TILE):
            v, u = np.mgrid[top : top + TILE, left : left + TILE].astype(np.float32)
            slope_u = 0.5 * np.cos(u / 17 + v / 40) + 0.2 * np.cos(u / 90)
            slope_v = 0.5 * np.cos(u / 17 + v / 40) * 17 / 40
            normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
            normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
            yield np.rint((normals + 1) / 2 * 65535).astype(np.uint16)


def mask_tiles(size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the tiles of the mask, row by row."""
    rng = np.random.default_rng(0)
    for _ in range((size // TILE) ** 2):
        yield np.kron(255 * (rng.random((TILE // 8, TILE // 8)) > 0.1), np.ones((8, 8))).astype(np.uint8)


def peak_memory() -> int:
    """Return the peak resident bytes of this process."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
