"""Integration on the pixel grid, continuous and with discontinuities, beside the mesh with a tenth of the unknowns."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case, case_names, load, measure
from normalmesh import Orthographic, integrate_pixels, reconstruct


def errors(case: Case, dense: NDArray[np.float64]) -> tuple[float, float]:
    """RMSE and MADE of a depth map, in the unit of the depth."""
    assert case.depth is not None
    both = np.isfinite(dense) & np.isfinite(case.depth)
    found, truth = dense[both], case.depth[both]
    if isinstance(case.normal_map.camera, Orthographic):
        error = found - truth
        return float(error.std()), float(np.abs(error - np.median(error)).mean())
    scale = (found * truth).sum() / (found * found).sum()
    ratio = np.median(truth / found)
    return float(np.sqrt(np.square(scale * found - truth).mean())), float(np.abs(ratio * found - truth).mean())


def main() -> None:
    names = [name for name in case_names() if "1024" not in name]
    if not names:
        print("the shared cases are not on this machine")
        return
    kinds = ("pixels", "with jumps", "mesh, 10 %")
    print(f"{'':30}" + "".join(f" | {kind:^26}" for kind in kinds))
    print(f"{'case':30}" + f" | {'RMSE':>9} {'MADE':>9} {'s':>6}" * len(kinds))
    for name in names:
        case = load(name)
        if case.depth is None:
            continue
        row = f"{name:30}"
        for discontinuities in (False, True):
            start = time.perf_counter()
            dense = integrate_pixels(case.normal_map, discontinuities=discontinuities)
            seconds = time.perf_counter() - start
            row += " | {:9.4f} {:9.4f} {:6.2f}".format(*errors(case, dense), seconds)
        start = time.perf_counter()
        surface = reconstruct(case.normal_map, compression=0.9)
        seconds = time.perf_counter() - start
        mesh = measure(surface, case)
        print(f"{row} | {mesh.rmse:9.4f} {mesh.made:9.4f} {seconds:6.2f}", flush=True)


if __name__ == "__main__":
    main()
