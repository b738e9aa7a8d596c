"""Accuracy on the shared cases, as ratios to the authors' program at equal vertex counts."""

from __future__ import annotations

import argparse
import time

from benchmarks.cases import case_names, geometric_mean, load, measure
from normalmesh import reconstruct
from normalmesh.reconstruction import PRESETS

TAGS = ("c0.25", "c1", "c4")

SETTINGS = {
    "default": {},
    "unrefined": {"refine": 0},
    "mesh": PRESETS["paper"][1],  # our mesh, integrated as the paper does it
    "paper": {"preset": "paper"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="default", choices=SETTINGS)
    parser.add_argument("--cases", nargs="*", help="names; default: all")
    parser.add_argument("--tags", nargs="*", default=TAGS, help="vertex targets in percent of the foreground")
    options = parser.parse_args()
    names = options.cases or case_names()
    if not names:
        print("the shared cases are not on this machine")
        return
    settings = SETTINGS[options.preset]
    rows = []
    print(f"{'case':30} {'target':6} {'vertices':>8} {'MAE':>6} {'RMSE':>6} {'lost':>6} {'sound':>6} {'seconds':>7}")
    for name in names:
        case = load(name)
        for tag in options.tags:
            reference = case.reference.get(tag)
            if reference is None:
                continue
            start = time.perf_counter()
            surface = reconstruct(case.normal_map, vertices=reference["vertices"], **settings)
            seconds = time.perf_counter() - start
            found = measure(surface, case, tag)
            row = (
                found.mae / reference["mae_deg"],
                found.rmse / reference["rmse"],
                found.lost / max(reference["lost"], 1e-9),
            )
            rows.append((case, tag, *row))
            sound = surface.mesh.check().ok
            ratios = f"{row[0]:6.3f} {row[1]:6.3f} {row[2]:6.2f}"
            print(f"{name:30} {tag:6} {len(surface.vertices):8} {ratios} {sound!s:>6} {seconds:7.1f}", flush=True)
    summary(rows)


def summary(rows: list) -> None:
    """Geometric means and the worst cases."""
    print(
        f"MAE   geometric mean {geometric_mean([row[2] for row in rows]):.4f}, worst {max(row[2] for row in rows):.3f}"
    )
    print(f"RMSE  geometric mean {geometric_mean([row[3] for row in rows]):.4f}")
    free = [row[3] for row in rows if row[0].occlusion_free]
    if free:
        print(f"RMSE  without occlusion {geometric_mean(free):.4f}")
    at_one = [row[4] for row in rows if row[1] == "c1"]
    if at_one:
        print(f"lost  at 1 % vertices, worst {max(at_one):.2f}")


if __name__ == "__main__":
    main()
