"""The photometric stereo data set of Harvard: seven objects with estimated normals, without ground truth."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float32
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import repair_warnings_ignored
from normalmesh.files.arrays import read_normals
from normalmesh.files.formats import file_format, unusable
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import diagnose
from normalmesh.normals.normal_map import NormalMap


def find(root: Path) -> dict[str, Path]:
    """Return the files of the objects by name."""
    return {path.parent.name: path for path in sorted(root.glob("*/result.mat"))}


def read(name: str, place: Path, camera: str) -> Case:
    """Read an object. Normals are floats: x right, y up, z towards the viewer, the *bottom* row first, NaN outside.

    The camera is assumed to be orthographic. The normals are measured, and also serve as ground truth.
    """
    if (kind := file_format(place)) != "MAT":
        raise unusable(place, f"expected a MAT file of version 5 to 7, not {kind}; in Matlab, save(..., '-v7')")
    stored, _ = read_normals(place, "MAT", None)
    if stored.dtype.kind != "f":
        raise unusable(place, f"normals must be floats, not {stored.dtype}")
    normals = np.asarray(stored[::-1], np.float32)
    try:
        return Case(name, _normal_map(place, normals))
    except NormalMeshError as error:
        raise unusable(place, str(error)) from error


def _normal_map(path: Path, normals: Float32) -> NormalMap:
    """Return the normal map of normals (H, W, 3), NaN or zero outside; warn if the data contradict the axes."""
    mask = np.asarray(np.isfinite(normals).all(axis=2) & normals.any(axis=2))
    if diagnose(normals, mask).strongly_excludes(Convention.parse("opengl")):
        warnings.warn(
            f"{path_text(path)}: the data contradict x right, y up, z towards the viewer, bottom row first",
            NormalMeshWarning,
            stacklevel=4,
        )
    with repair_warnings_ignored():
        return NormalMap(normals, mask)
