"""The shared cases: normal maps with ground truth, what the authors' program reaches on them, and the measures."""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import imagecodecs
import numpy as np

from normalmesh import NormalMeshWarning, Orthographic, Surface, pixel_faces
from normalmesh.evaluation import cases as evaluation_cases
from normalmesh.evaluation.datasets import find_dataset

CASES = Path(__file__).parents[2] / "shared" / "cases"

#: Depth and normals agree everywhere: no occlusion.
OCCLUSION_FREE = ("sphere", "ridges", "relief", "terrain")


@dataclass(frozen=True, eq=False)
class Case(evaluation_cases.Case):
    """One case, and what the authors' program reaches on it.

    Attributes
    ----------
    reference : dict
        Tag → figures of the authors' program.
    """

    reference: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def occlusion_free(self) -> bool:
        return self.name.startswith(OCCLUSION_FREE)


@dataclass(frozen=True)
class Measures:
    """MAE in degrees, RMSE (px or the unit of the depth), MADE, and the share of pixels lost or spilled."""

    mae: float
    rmse: float
    made: float
    lost: float


def case_names(folder: Path = CASES) -> list[str]:
    """Names of all cases with figures of the authors' program; empty where the folder is missing."""
    results = folder / "reference_results.json"
    return sorted(json.loads(results.read_text())) if results.is_file() else []


def load(name: str, folder: Path = CASES) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        case = find_dataset("folders").load(folder, name)
    return Case(**vars(case), reference=json.loads((folder / "reference_results.json").read_text())[name])


def cases_from_command_line(description: str | None) -> list[Case]:
    """All cases, or with ``--quick`` those below a megapixel; says so where there are none."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="leave out the maps of a megapixel")
    quick = parser.parse_args().quick
    cases = [load(name) for name in case_names() if not (quick and "1024" in name)]
    if not cases:
        print("the shared cases are not on this machine")
    return cases


def measure(surface: Surface, case: Case, tag: str = "", folder: Path = CASES) -> Measures:
    """Errors over the pixels that the surface and, where known, the authors' mesh cover (DESIGN §5)."""
    mask = case.normal_map.mask
    owner = pixel_faces(surface.mesh, mask.shape)
    lost = float(np.count_nonzero((owner >= 0) != mask) / case.normal_map.foreground)
    counted = (owner >= 0) & mask
    covered = folder / case.name / f"covered_{tag}.png"
    if covered.exists():
        counted &= imagecodecs.imread(covered) > 127
    cosines = (surface.face_normals[owner[counted]] * case.normal_map.normals[counted]).sum(axis=1)
    mae = float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean())
    if case.depth is None:
        return Measures(mae, np.nan, np.nan, lost)
    counted &= np.isfinite(case.depth)
    found, truth = surface.depth_map()[counted], case.depth[counted]
    if isinstance(case.normal_map.camera, Orthographic):
        error = found - truth
        return Measures(mae, float(error.std()), float(np.abs(error - np.median(error)).mean()), lost)
    scale = float((found * truth).sum() / (found * found).sum())
    ratio = float(np.median(truth / found))
    rmse = float(np.sqrt(np.square(scale * found - truth).mean()))
    return Measures(mae, rmse, float(np.abs(ratio * found - truth).mean()), lost)


def geometric_mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))
