"""The shared cases: normal maps with ground truth, and the results of the authors' program on them."""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from normalmesh import Evaluation, NormalMeshWarning, Surface, evaluate
from normalmesh.evaluation import cases as evaluation_cases
from normalmesh.evaluation.datasets import find_dataset

CASES = Path(__file__).parents[2] / "shared" / "cases"

#: Prefixes of the cases without occlusions, whose depth and normals agree everywhere.
OCCLUSION_FREE = ("sphere", "ridges", "relief", "terrain")


@dataclass(frozen=True, eq=False)
class Case(evaluation_cases.Case):
    """A case with the results of the authors' program.

    Attributes
    ----------
    reference : dict
        Figures of the authors' program by tag.
    """

    reference: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def occlusion_free(self) -> bool:
        return self.name.startswith(OCCLUSION_FREE)


def case_names(folder: Path = CASES) -> list[str]:
    """Return the names of all cases with results of the authors' program; empty if the folder is missing."""
    results = folder / "reference_results.json"
    return sorted(json.loads(results.read_text())) if results.is_file() else []


def map_names(folder: Path = CASES) -> list[str]:
    """Return the names of all cases, also of those without ground truth; empty if the folder is missing."""
    return sorted(path.parent.name for path in folder.glob("*/normals.png"))


def load(name: str, folder: Path = CASES) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        case = find_dataset("folders").load(folder, name)
    return Case(**vars(case), reference=json.loads((folder / "reference_results.json").read_text()).get(name, {}))


def cases_from_command_line(description: str | None) -> list[Case]:
    """Return all cases, or with ``--quick`` those below a megapixel; print a message if there are none."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="omit the maps of a megapixel")
    quick = parser.parse_args().quick
    cases = [load(name) for name in case_names() if not (quick and "1024" in name)]
    if not cases:
        print("the shared cases are not on this machine")
    return cases


def measure(result: Surface | NDArray[np.float64], case: Case, tag: str = "", folder: Path = CASES) -> Evaluation:
    """Evaluate a result over the pixels that it and, if known, the authors' mesh cover, as for their figures."""
    covered = folder / case.name / f"covered_{tag}.png"
    counted = imagecodecs.imread(covered) > 127 if covered.exists() else None
    return evaluate(result, case, counted=counted, each_component=False)
