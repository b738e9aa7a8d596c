"""Measure the peak memory of reconstructions in addition to the normal map, by size, vertices and background.

The constants of ``normalmesh.reconstruction.estimates`` are derived from it: an estimate should be slightly above the
measurement.
"""

from __future__ import annotations

import argparse
import multiprocessing
from dataclasses import dataclass

import numpy as np

from benchmarks.solve import forget_peak, status_megabytes
from normalmesh import NormalMap, estimate_memory, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion

#: Vertices as fractions of the foreground, and factor by which the image is larger in the last line of a size.
SHARES = (0.003, 0.01, 0.05, 0.2)
PADDING = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[512, 1024, 2048], help="sides in pixels")
    tasks = [(size, share, 1) for size in parser.parse_args().sizes for share in SHARES]
    tasks += [(size, SHARES[0], PADDING) for size in parser.parse_args().sizes]
    print(
        f"{'image':>9} {'foreground':>10} {'vertices':>9} {'measured':>9} {'estimate':>9} {'ratio':>6} {'bytes/px':>9}"
    )
    # Each line has its own process, because the peak memory of a process never decreases.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for peak in pool.imap(measure, tasks):
            print(peak, flush=True)


@dataclass(frozen=True)
class Peak:
    """Peak memory of a reconstruction in addition to its normal map, with the pixels of image and foreground."""

    pixels: int
    foreground: int
    vertices: int
    megabytes: float

    def __str__(self) -> str:
        estimate = estimate_memory(self.pixels, self.foreground, self.vertices) / 2**20
        return (
            f"{self.pixels:9} {self.foreground:10} {self.vertices:9} {self.megabytes:6.0f} MB {estimate:6.0f} MB "
            f"{estimate / self.megabytes:6.2f} {self.megabytes * 2**20 / self.foreground:9.0f}"
        )


def measure(task: tuple[int, float, int]) -> Peak:
    """Reconstruct the medallion of the given size with the given fraction of vertices and padding."""
    size, share, padding = task
    for size_before, compression in ((64, 0.9), (320, 0.98)):
        reconstruct(Medallion(size_before).normal_map, compression=compression)
    normal_map = padded(Medallion(size).normal_map, padding)
    vertices = round(share * normal_map.foreground)
    before = forget_peak()
    reconstruct(normal_map, vertices=vertices)
    measured = status_megabytes("VmHWM") - before
    return Peak(normal_map.mask.size, normal_map.foreground, vertices, measured)


def padded(normal_map: NormalMap, times: int) -> NormalMap:
    """Return the map with background above it, such that the image has ``times`` as many rows."""
    above = ((normal_map.shape[0] * (times - 1), 0), (0, 0))
    return NormalMap(np.pad(normal_map.normals, (*above, (0, 0))), np.pad(normal_map.mask, above), normal_map.camera)


if __name__ == "__main__":
    main()
