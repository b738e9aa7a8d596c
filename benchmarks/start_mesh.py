"""Measure seconds and bytes per pixel of the start mesh, its checks and pixel_faces; baseline: copying the mesh."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time

import numpy as np

from normalmesh import ScreenMesh, pixel_faces

MASKS = ("full", "10 % random holes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the mask")
    size = parser.parse_args().size
    print(f"{size}² pixels       start mesh  (÷ copy)  bytes/px    owners    checks")
    # Each mask has its own process, because the peak memory of a process never decreases.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for line in pool.starmap(measure, [(name, size) for name in MASKS], chunksize=1):
            print(line)


def measure(name: str, size: int) -> str:
    """Return one line of the table."""
    compiled = ScreenMesh.from_mask(np.eye(8))
    compiled.check()
    pixel_faces(compiled, (8, 8))
    mask = np.ones((size, size), bool) if name == "full" else np.random.default_rng(0).random((size, size)) > 0.1
    before = peak_memory()
    start = time.perf_counter()
    mesh = ScreenMesh.from_mask(mask)
    made = time.perf_counter()
    used = (peak_memory() - before) / mask.sum()
    _ = mesh.vertices.copy(), mesh.faces.copy()
    copied = time.perf_counter()
    pixel_faces(mesh, mask.shape)
    owned = time.perf_counter()
    check = mesh.check()
    checked = time.perf_counter()
    return (
        f"{name:18} {made - start:8.2f} s {(made - start) / (copied - made):8.1f} {used:9.0f} {owned - copied:8.2f} s "
        f"{checked - owned:7.2f} s   {check}"
    )


def peak_memory() -> int:
    """Return the peak resident bytes of this process."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
