"""Compare our results with those of the authors' program on the shared cases, per case and in the geometric mean."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.cases import Case, case_names, load, measure
from normalmesh import reconstruct
from normalmesh.paper.tables import geometric_mean
from normalmesh.reconstruction.presets import PRESETS

TAGS = ("c0.25", "c1", "c4")

SETTINGS = {
    "default": {},
    "unrefined": {"refine": 0},
    "mesh": vars(PRESETS["paper"].integration),  # our mesh with the integration of the paper
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
    print("ours / authors = ratio; RMSE in px, or mm for DiLiGenT")
    print(f"{'case':30} {'tag':6} {'vertices':>8}   {'MAE °':^22}   {'RMSE':^26}   lost   {'valid':5} {'s':>6}")
    for name in names:
        case = load(name)
        for tag in options.tags:
            if tag not in case.reference:
                continue
            rows.append(compare(case, tag, settings))
            print(rows[-1], flush=True)
    summary(rows)


def compare(case: Case, tag: str, settings: dict[str, Any]) -> Compared:
    """Reconstruct with the number of vertices of the authors' program at the tag, and compare."""
    reference = case.reference[tag]
    start = time.perf_counter()
    surface = reconstruct(case.normal_map, vertices=reference["vertices"], **settings)
    seconds = time.perf_counter() - start
    found = measure(surface, case, tag)
    lost = 1 - found.covered + found.spilled
    return Compared(case, tag, found.mae, found.rmse, lost, reference, surface.mesh.check().ok, seconds)


@dataclass(frozen=True)
class Compared:
    """Our figures and the authors' for one case and number of vertices."""

    case: Case
    tag: str
    mae: float
    rmse: float
    lost: float
    reference: dict[str, float]
    valid: bool
    seconds: float

    @property
    def ratios(self) -> tuple[float, float, float]:
        """Ratios of MAE, RMSE and lost pixels; below 1, ours is better."""
        lost = max(self.reference["lost"], 1e-9)
        return self.mae / self.reference["mae_deg"], self.rmse / self.reference["rmse"], self.lost / lost

    def __str__(self) -> str:
        mae, rmse, lost = self.ratios
        return (
            f"{self.case.name:30} {self.tag:6} {self.reference['vertices']:8}"
            f"   {self.mae:6.3f} / {self.reference['mae_deg']:6.3f} = {mae:.3f}"
            f"   {self.rmse:8.4f} / {self.reference['rmse']:8.4f} = {rmse:.3f}   {lost:5.2f}  "
            f" {self.valid!s:5} {self.seconds:6.1f}"
        )


def summary(rows: list[Compared]) -> None:
    """Print the geometric means of the ratios, and the worst cases."""
    angles = [row.ratios[0] for row in rows]
    print(f"MAE   geometric mean {geometric_mean(angles):.4f}, worst {max(angles):.3f}")
    print(f"RMSE  geometric mean {geometric_mean([row.ratios[1] for row in rows]):.4f}")
    free = [row.ratios[1] for row in rows if row.case.occlusion_free]
    if free:
        print(f"RMSE  without occlusion {geometric_mean(free):.4f}")
    for tag in dict.fromkeys(row.tag for row in rows):
        of_tag = [row.ratios for row in rows if row.tag == tag]
        mae, rmse = (geometric_mean([ratios[k] for ratios in of_tag]) for k in (0, 1))
        print(f"{tag:5} MAE {mae:.4f}, RMSE {rmse:.4f}, lost pixels at most {max(ratios[2] for ratios in of_tag):.2f}")


if __name__ == "__main__":
    main()
