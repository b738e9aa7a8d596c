"""Measure the effect of control points on the bending of measured normals: RMSE with 0 to 20 points."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from benchmarks.cases import Case, case_names, load
from normalmesh import Surface, evaluate, reconstruct


def main() -> None:
    if not case_names():
        print("the shared cases are not on this machine")
        return
    print("RMSE in the unit of the depth; in brackets without alignment, because the surface is metric")
    for name in ("diligent_ball_ps", "diligent_bear", "diligent_reading"):
        case = load(name)
        vertices = int(case.reference["c4"]["vertices"])
        for robust in (True, False):
            row = []
            for count in (0, 1, 5, 20):
                prior = control_points(case, count) if count else None
                surface = reconstruct(case.normal_map, vertices=vertices, prior=prior, discontinuities=robust)
                aligned, metric = errors(surface, case)
                row.append(f"{count} points {aligned:.4f}" + (f" ({metric:.4f})" if count else ""))
            print(f"{name:18} {'robust' if robust else 'plain':6} " + "   ".join(row), flush=True)


def control_points(case: Case, count: int) -> np.ndarray:
    """Return points (count, 3) as u, v, depth from the ground truth, evenly distributed over the foreground."""
    assert case.depth is not None
    # Avoid the rim, where half a pixel is a large difference in depth.
    inner = ndimage.binary_erosion(case.normal_map.mask & np.isfinite(case.depth), iterations=10)
    rows, columns = np.nonzero(inner)
    # Farthest point sampling, starting in the middle.
    places = np.stack([columns, rows], axis=1).astype(np.float64)
    chosen = [int(np.argmin(np.square(places - places.mean(axis=0)).sum(axis=1)))]
    distance = np.full(len(places), np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, np.square(places - places[chosen[-1]]).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return np.stack([columns[chosen] + 0.5, rows[chosen] + 0.5, case.depth[rows[chosen], columns[chosen]]], axis=1)


def errors(surface: Surface, case: Case) -> tuple[float, float]:
    """Return the RMSE with and without alignment."""
    unaligned = surface.depth_map() - case.depth
    return evaluate(surface, case, each_component=False).rmse, float(np.sqrt(np.nanmean(unaligned**2)))


if __name__ == "__main__":
    main()
