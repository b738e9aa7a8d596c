"""Measure the lines of jumps against the truth: how complete and right they are, whether surfaces agree with them.

For each case: MAE (°) and RMSE (px; behind a perspective camera the error MADE) of the default and of the continuous
surface; length of lines; recall, the share of true steps above 8 px with a line within 3 px; precision, the share of
lines with a true step above 2 px within 3 px; ghosts, the length of edges (px) that the placement strains by more than
1 px farther than 4 px from any line; flicker, the share of lines that are found again after one 8-bit unit of noise.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.cases import Case, case_names, map_names, measure
from benchmarks.looks import case_of, number
from benchmarks.made import MODELS, made_case
from normalmesh import Jumps, NormalMap, find_jumps, reconstruct
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.mesh.jumps import JumpLine
from normalmesh.normals.gradients import slopes_of
from normalmesh.normals.noise import noise_of, without_noise
from normalmesh.paper.tables import geometric_mean

#: True steps (px) that should be found, and those that make a line right.
STEP, SMALL_STEP = 8.0, 2.0
#: Distance (px) within which a line and a step, or two lines, are the same.
SAME = 3.0
#: Strain (px), and distance (px) from lines, from which on a place is a ghost.
STRAIN, AWAY = 1.0, 4.0
#: Recall and precision that lines should have.
RECALL, PRECISION = 0.80, 0.95
#: Draws of noise for the flicker.
DRAWS = 3

HEAD = (
    f"{'case':30} {'MAE °':>7} {'cont.':>7} {'error':>9} {'cont.':>9} {'lines':>6} {'recall':>6} {'prec.':>6} "
    f"{'ghosts':>6} {'again':>5}"
)

Bool = NDArray[np.bool_]
Float = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """The figures of a case; unknown ones are None."""

    case: str
    mae: float
    mae_continuous: float | None
    error: float | None
    error_continuous: float | None
    length: int
    recall: float | None
    precision: float | None
    ghosts: float
    again: float | None

    def __str__(self) -> str:
        return (
            f"{self.case:30} {self.mae:7.3f} {number(self.mae_continuous, '7.3f')} {number(self.error, '9.4f')} "
            f"{number(self.error_continuous, '9.4f')} {self.length:6} {number(self.recall, '6.3f')} "
            f"{number(self.precision, '6.3f')} {self.ghosts:6.0f} {number(self.again, '5.2f')}"
        )


def true_steps(case: Case, least: float) -> Bool | None:
    """Return the pixel corners (H + 1, W + 1) at sides across which the true depth steps by more than ``least`` px.

    Steps are what is left without the slope of either side.
    """
    if case.depth is None:
        return None
    normal_map, camera = case.normal_map, case.normal_map.camera
    mask = normal_map.mask & np.isfinite(case.depth)
    unknown = camera.unknown_of_depth(np.where(mask, case.depth, 1.0)) / camera.pixel_length
    slopes = slopes_of(normal_map.normals, camera) / camera.pixel_length
    corners = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), np.bool_)
    for axis, (first, second) in enumerate(((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:]))):
        step = unknown[second] - unknown[first]
        left = np.minimum(*(np.abs(step - slopes[side][..., 1 - axis]) for side in (first, second)))
        row, column = np.nonzero(mask[first] & mask[second] & (left > least))
        for end in (0, 1):
            corners[(row + 1, column + end) if axis == 0 else (row + end, column + 1)] = True
    return corners


def corners_of(lines: tuple[JumpLine, ...], shape: tuple[int, int]) -> Bool:
    """Return the pixel corners (H + 1, W + 1) on lines."""
    corners = np.zeros((shape[0] + 1, shape[1] + 1), np.bool_)
    for line in lines:
        corners[line.path[:, 1], line.path[:, 0]] = True
    return corners


def share_near(first: Bool, second: Bool, least: int = 1) -> float | None:
    """Return the share of corners of the first kind with one of the second within :data:`SAME` px."""
    if np.count_nonzero(first) < least:
        return None
    if not second.any():
        return 0.0
    return float((ndimage.distance_transform_edt(~second)[first] <= SAME).mean())


def ghosts(jumps: Jumps, normal_map: NormalMap) -> float:
    """Return the length in px of edges that the placement strains although no line is near."""
    if jumps.placement is None:
        return 0.0
    smooth = without_noise(normal_map, noise_of(normal_map, None))
    system = FacetSystem.of(FaceMeans.of(jumps.placement.mesh, smooth, 2))
    strain = RobustWeights(system).strain(jumps.placement.offsets)
    middle = np.rint(system.means.mesh.vertices[system.ends].mean(axis=1)).astype(np.int64)
    distance = ndimage.distance_transform_edt(~corners_of(jumps.lines, normal_map.shape))
    away = distance[middle[:, 1], middle[:, 0]] > AWAY
    return float(system.lengths[(strain > STRAIN) & away].sum())


def redrawn(normal_map: NormalMap, seed: int) -> NormalMap:
    """Return a map in 8 bit whose components are changed at random, by at most one unit."""
    change = np.random.default_rng(seed).integers(-1, 2, normal_map.normals.shape)
    units = np.rint((normal_map.normals + 1) * 127.5) + change
    normals = np.clip(units, 0, 255) / 127.5 - 1
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-9)
    return NormalMap(np.where(normal_map.mask[..., None], normals, 0), normal_map.mask, normal_map.camera)


def found_again(normal_map: NormalMap) -> float | None:
    """Return the least share of lines, over some draws, that two maps have in common; None without lines."""
    first = corners_of(find_jumps(redrawn(normal_map, 0)).lines, normal_map.shape)
    shares = []
    for seed in range(1, DRAWS):
        other = corners_of(find_jumps(redrawn(normal_map, seed)).lines, normal_map.shape)
        shares += [share_near(first, other), share_near(other, first)]
    known = [share for share in shares if share is not None]
    return min(known) if known else None


def names_with_truth() -> list[str]:
    """Return the names of the shared cases that are measured, and of the models that are rendered here."""
    return list(dict.fromkeys([*case_names(), *(name for name in map_names() if name.startswith("bini")), *MODELS]))


def case_named(name: str) -> Case:
    """Load a shared case, or render one of our own."""
    return made_case(name) if name in MODELS else case_of(name)


def mean_row(rows: list[Row]) -> str:
    """Return the means of the cases with true steps, beside the numbers that are asked for."""
    means = []
    for name in ("recall", "precision", "again"):
        known = [value for row in rows if (value := getattr(row, name)) is not None]
        means.append(f"{name} {np.mean(known):.3f} of {len(known)}" if known else f"{name} –")
    return f"mean: {', '.join(means)}; asked: recall {RECALL:.2f} at precision {PRECISION:.2f}"


def recall_and_precision(case: Case, jumps: Jumps) -> tuple[float | None, float | None]:
    """Return the share of large true steps with a line, and of lines with a true step; None where there are none."""
    lines = corners_of(jumps.lines, case.normal_map.shape)
    large, small = (true_steps(case, least) for least in (STEP, SMALL_STEP))
    recall = None if large is None else share_near(large, lines, 20)
    return recall, None if small is None else share_near(lines, small)


def row_of(case: Case, compression: float, continuous: bool, flicker: bool) -> Row:
    """Return the figures of a case."""
    normal_map = case.normal_map
    vertices = round((1 - compression) * normal_map.foreground)
    jumps = find_jumps(normal_map)
    is_central = normal_map.camera.is_central
    figures: list[tuple[float | None, float | None]] = []
    for on in (True, False) if continuous else (True,):
        found = measure(reconstruct(normal_map, vertices=vertices, discontinuities="auto" if on else False), case)
        figures.append((found.mae, found.made if is_central else found.rmse))
    (mae, error), (mae_continuous, error_continuous) = (*figures, (None, None))[:2]
    assert mae is not None
    return Row(
        case.name,
        mae,
        mae_continuous,
        error,
        error_continuous,
        jumps.length,
        *recall_and_precision(case, jumps),
        ghosts(jumps, normal_map),
        found_again(normal_map) if flicker else None,
    )


def compared(rows: list[Row], earlier: dict[str, dict[str, float | None]]) -> str:
    """Return ratios to earlier figures, by case, and their geometric means."""
    lines, maes, errors = [], [], []
    for row in rows:
        old = earlier.get(row.case)
        if old is None:
            continue
        maes.append(row.mae / (old["mae"] or 1.0))
        text = f"{row.case:30} MAE × {maes[-1]:.3f}"
        if row.error is not None and old["error"]:
            # Below a thousandth of a px, all is exact.
            errors.append(max(row.error, 1e-3) / max(old["error"], 1e-3))
            text += f", error × {errors[-1]:.3f}"
        for name in ("length", "recall", "precision", "ghosts", "again"):
            if old[name] is not None and getattr(row, name) is not None:
                text += f", {name} {old[name]:.3g} → {getattr(row, name):.3g}"
        lines.append(text)
    if maes:
        lines.append(f"mean MAE × {geometric_mean(maes):.3f}, error × {geometric_mean(errors or [1.0]):.3f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", help="names; default: all that have truth, and made here")
    parser.add_argument("--compression", type=float, default=0.96)
    parser.add_argument("--continuous", action="store_true", help="measure the continuous surface, too")
    parser.add_argument("--flicker", action="store_true", help="look for lines again after one 8-bit unit of noise")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    parser.add_argument("--compare", type=Path, help="compare with figures of --save")
    options = parser.parse_args()
    names = options.cases or names_with_truth()
    print(HEAD)
    rows = []
    for name in names:
        rows.append(row_of(case_named(name), options.compression, options.continuous, options.flicker))
        print(rows[-1], flush=True)
        if options.save:
            options.save.write_text(json.dumps({row.case: asdict(row) for row in rows}, indent=1))
    print(mean_row(rows))
    if options.compare:
        print(compared(rows, json.loads(options.compare.read_text())))


if __name__ == "__main__":
    main()
