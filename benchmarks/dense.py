"""Compare integration on the pixel grid, continuous and discontinuous, with a mesh of a tenth of the unknowns."""

from __future__ import annotations

import time

from benchmarks.cases import case_names, load, measure
from normalmesh import integrate_pixels, reconstruct


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
            found = measure(dense, case)
            row += f" | {found.rmse:9.4f} {found.made:9.4f} {seconds:6.2f}"
        start = time.perf_counter()
        surface = reconstruct(case.normal_map, compression=0.9)
        seconds = time.perf_counter() - start
        mesh = measure(surface, case)
        print(f"{row} | {mesh.rmse:9.4f} {mesh.made:9.4f} {seconds:6.2f}", flush=True)


if __name__ == "__main__":
    main()
