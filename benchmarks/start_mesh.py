"""Seconds and bytes per pixel of the start mesh and of pixel ownership, beside a copy of the result's arrays."""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from normalmesh import ScreenMesh, pixel_faces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the mask")
    size = parser.parse_args().size
    masks = {
        "full": np.ones((size, size), bool),
        "10 % random holes": np.random.default_rng(0).random((size, size)) > 0.1,
    }
    small = ScreenMesh.from_mask(np.eye(8))
    small.check()
    pixel_faces(small, (8, 8))
    print(f"{size}² pixels      start mesh  (÷ copy)  bytes/px   owners    checks")
    for name, mask in masks.items():
        before = _peak()
        seconds, mesh = _timed(lambda mask=mask: ScreenMesh.from_mask(mask))
        used = (_peak() - before) / mask.sum()
        copying, _ = _timed(lambda mesh=mesh: (mesh.vertices.copy(), mesh.faces.copy()))
        owners, _ = _timed(lambda mesh=mesh: pixel_faces(mesh, mask.shape))
        checks, check = _timed(mesh.check)
        print(
            f"{name:18} {seconds:7.2f} s {seconds / copying:8.1f} {used:9.0f} {owners:8.2f} s {checks:7.2f} s   {check}"
        )


def _timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def _peak() -> int:
    """Peak resident bytes of this process so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
