"""Measure seconds and peak memory of reading a large 16-bit PNG and TIFF, compared with decoding to integers only.

Run as ``python -m benchmarks.read [--megapixels N]``. Prints a Markdown table. Files are written to a temporary folder.
Memory is what NumPy allocates, in bytes per pixel; memory-mapped files are not counted. 24 = two float32 copies.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from math import isqrt
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray

from normalmesh import read_normal_map


def wavy_normals(side: int) -> NDArray[np.uint16]:
    """Return a map (side, side, 3) of waves of several lengths, encoded in 16 bits."""
    values = np.empty((side, side, 3), np.uint16)
    u = np.arange(side) + 0.5
    for row in range(side):
        x = 0.4 * np.sin(u / 37 + row / 900) + 0.1 * np.sin(u / 7)
        y = 0.4 * np.cos(row / 41 - u / 1100) + 0.1 * np.sin(row / 9)
        normal = np.stack([x, y, np.sqrt(1 - x * x - y * y)], axis=-1)
        values[row] = np.rint((normal + 1) / 2 * 65535)
    return values


def write_png(path: Path, values: NDArray[np.uint16]) -> None:
    path.write_bytes(imagecodecs.png_encode(values, level=1))


def decode_png(path: Path) -> object:
    return imagecodecs.png_decode(path.read_bytes())


def write_tiff(path: Path, values: NDArray[np.uint16]) -> None:
    tifffile.imwrite(path, values, photometric="rgb", compression="zlib", predictor=True, tile=(512, 512))


def decode_tiff(path: Path) -> object:
    return tifffile.imread(path)


def seconds(function: Callable[[Path], object], path: Path) -> float:
    start = time.perf_counter()
    function(path)
    return time.perf_counter() - start


def peak_bytes(function: Callable[[Path], object], path: Path) -> int:
    """Return the peak memory that NumPy allocates while the function runs."""
    tracemalloc.start()
    try:
        function(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", type=float, default=16)
    side = isqrt(int(parser.parse_args().megapixels * 1e6))
    print(f"{side}×{side} pixels\n")
    print("| file | MB | write s | decode s | read s | read/decode | peak B/px |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, write, decode in (("png", write_png, decode_png), ("tif", write_tiff, decode_tiff)):
            path = Path(folder) / f"normals.{name}"
            write(path, wavy_normals(64))
            read_normal_map(path)  # compiles the kernels
            writing = time.perf_counter()
            write(path, wavy_normals(side))
            writing = time.perf_counter() - writing
            decoding, reading = seconds(decode, path), seconds(read_normal_map, path)
            peak = peak_bytes(read_normal_map, path) / side**2
            size = path.stat().st_size / 1e6
            print(
                f"| {name} | {size:.0f} | {writing:.1f} | {decoding:.1f} | {reading:.1f} | {reading / decoding:.2f} "
                f"| {peak:.1f} |",
                flush=True,
            )
            path.unlink()


if __name__ == "__main__":
    main()
