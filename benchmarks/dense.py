"""Integration on the pixel grid beside the mesh with a tenth of the unknowns: RMSE and seconds."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.cases import case_names, load, measure
from normalmesh import Orthographic, integrate_pixels, reconstruct


def main() -> None:
    names = [name for name in case_names() if "1024" not in name]
    if not names:
        print("the shared cases are not on this machine")
        return
    print(f"{'case':30} {'pixels':>9} {'seconds':>8} {'mesh, 10 %':>11} {'seconds':>8} {'mesh/pixels':>12}")
    for name in names:
        case = load(name)
        if case.depth is None:
            continue
        start = time.perf_counter()
        dense = integrate_pixels(case.normal_map)
        middle = time.perf_counter()
        surface = reconstruct(case.normal_map, compression=0.9)
        end = time.perf_counter()
        both = np.isfinite(dense) & np.isfinite(case.depth)
        found, truth = dense[both], case.depth[both]
        if not isinstance(case.normal_map.camera, Orthographic):
            found = found * (found * truth).sum() / (found * found).sum()
            error = np.sqrt(np.square(found - truth).mean())
        else:
            error = (found - truth).std()
        mesh = measure(surface, case).rmse
        print(
            f"{name:30} {error:9.4f} {middle - start:8.2f} {mesh:11.4f} {end - middle:8.2f} {mesh / error:12.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
