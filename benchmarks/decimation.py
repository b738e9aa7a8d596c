"""Measure decimation on the shared cases: the ablation of the paper, and the number of vertices at its thresholds.

Errors are those of the surface without refinement, with the integration of the paper, so that they depend on the mesh.
"""

from __future__ import annotations

from benchmarks.cases import Case, cases_from_command_line, measure
from normalmesh import decimate, integrate
from normalmesh.paper.tables import geometric_mean
from normalmesh.reconstruction.presets import PRESETS

#: The rounds of the paper with three passes each.
SCHEDULE = {**vars(PRESETS["paper"].decimation), "passes": 3}
ABLATION = {
    "collapse": {**SCHEDULE, "flips": False, "moves": False},
    "+ flips": {**SCHEDULE, "moves": False},
    "+ moves": {**SCHEDULE, "flips": False},
    "full": SCHEDULE,
    "full, ten passes (paper)": vars(PRESETS["paper"].decimation),
    "default": {},
}


def main() -> None:
    cases = cases_from_command_line(__doc__)
    if not cases:
        return
    thresholds(cases)
    ablation([case for case in cases if case.name.startswith(("relief", "terrain"))])


def thresholds(cases: list[Case]) -> None:
    """Print the vertices at T = 2, 64, 2048 as ratios to the authors' program."""
    found: dict[str, list[float]] = {}
    for case in cases:
        for tag, reference in case.reference.items():
            if tag.startswith("e"):
                mesh = decimate(case.normal_map, threshold=float(tag[1:]))
                found.setdefault(tag, []).append(len(mesh.vertices) / reference["vertices"])
                print(
                    f"{case.name:30} T = {tag[1:]:5} {found[tag][-1]:6.3f} of {reference['vertices']} vertices",
                    flush=True,
                )
    for tag, ratios in found.items():
        print(f"T = {tag[1:]:5} geometric mean over {len(ratios)} cases {geometric_mean(ratios):.3f}")


def ablation(cases: list[Case]) -> None:
    """Print MAE and RMSE of the variants of the algorithm, as geometric means of ratios to the authors' program."""
    paper = vars(PRESETS["paper"].integration)
    for name, options in ABLATION.items():
        angles, errors = [], []
        for case in cases:
            for tag in ("c0.25", "c1", "c4"):
                reference = case.reference[tag]
                mesh = decimate(case.normal_map, vertices=int(reference["vertices"]), **options)
                found = measure(integrate(mesh, case.normal_map, **paper), case, tag)
                angles.append(found.mae / reference["mae_deg"])
                errors.append(found.rmse / reference["rmse"])
        print(f"{name:26} MAE {geometric_mean(angles):.4f}  RMSE {geometric_mean(errors):.4f}", flush=True)


if __name__ == "__main__":
    main()
