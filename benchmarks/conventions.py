"""Measure how often diagnose() finds the convention: every case in all sixteen conventions, unchanged and degraded.

Run as ``python -m benchmarks.conventions [--cases DIR]``. Prints a Markdown table. Each cell counts the sixteen
conventions: right / undetermined / wrong, then the mean number of remaining candidates. The last line counts false
alarms: ``strongly_excludes`` for the right convention.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import CANDIDATES, Diagnosis, diagnose
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective

Float32 = NDArray[np.float32]
Mask = NDArray[np.bool_] | None

#: A function from normals (H, W, 3) and mask to the input of diagnose(), before the convention is applied.
Variant = Callable[[Float32, NDArray[np.bool_]], tuple[Float32, Mask]]


def read_case(folder: Path) -> tuple[Float32, NDArray[np.bool_], Camera]:
    """Read normals (H, W, 3) in the frame of the project, mask and camera of a case."""
    normals = imagecodecs.imread(str(folder / "normals.png")).astype(np.float32) * np.float32(2 / 65535) - 1
    mask = imagecodecs.imread(str(folder / "mask.png")) > 0
    matrix = folder / "K.txt"
    return normals, mask, Perspective.from_matrix(np.loadtxt(matrix)) if matrix.exists() else Orthographic()


def as_it_is(normals: Float32, mask: NDArray[np.bool_]) -> tuple[Float32, Mask]:
    return normals, mask


def quantised(normals: Float32, mask: NDArray[np.bool_]) -> tuple[Float32, Mask]:
    return np.rint((normals + 1) * np.float32(127.5)) / np.float32(127.5) - 1, mask


def noisy(normals: Float32, mask: NDArray[np.bool_]) -> tuple[Float32, Mask]:
    """Add Gaussian noise of 5° to each component, and normalise."""
    noise = np.random.default_rng(0).normal(0, np.deg2rad(5), normals.shape).astype(np.float32)
    disturbed = normals + noise
    return disturbed / np.linalg.norm(disturbed, axis=-1, keepdims=True), mask


def without_mask(normals: Float32, mask: NDArray[np.bool_]) -> tuple[Float32, Mask]:
    """Replace the mask by a background of zero length."""
    return np.where(mask[..., None], normals, 0), None


def without_outline(normals: Float32, mask: NDArray[np.bool_]) -> tuple[Float32, Mask]:
    """Replace the mask by a flat background, as in textures, so that there is no outline."""
    return np.where(mask[..., None], normals, np.float32([0, 0, 1])), None


def central_crop(normals: Float32, mask: NDArray[np.bool_]) -> tuple[Float32, Mask]:
    """Crop the mask to half the height and width of the object, so that its outline is not a silhouette."""
    inside = np.zeros_like(mask)
    spans = [np.flatnonzero(mask.any(axis=axis))[[0, -1]] for axis in (1, 0)]
    top, bottom, left, right = (int(a + part * (b - a)) for a, b in spans for part in (0.25, 0.75))
    inside[top:bottom, left:right] = True
    return normals, mask & inside


VARIANTS: dict[str, Variant] = {
    "16 bit": as_it_is,
    "8 bit": quantised,
    "5° noise": noisy,
    "zero background, no mask": without_mask,
    "flat background, no mask": without_outline,
    "central crop": central_crop,
}


def judge(diagnosis: Diagnosis, right: str) -> str:
    """Return ``right``, ``open`` (undetermined, with the right one among the candidates) or ``wrong``."""
    if diagnosis.axes == right:
        return "right"
    return "open" if diagnosis.axes is None and right in diagnosis.candidates else "wrong"


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=root.parent / "shared" / "cases", help="folder of cases")
    cases = parser.parse_args().cases
    if not cases.is_dir():
        print(f"no cases at {cases}: nothing to do (give --cases DIR)")
        return
    print("| case | " + " | ".join(VARIANTS) + " |\n|---" + "|---" * len(VARIANTS) + "|")
    totals = dict.fromkeys(VARIANTS, np.zeros(3, int))
    alarms, seconds = 0, []
    for folder in sorted(path for path in cases.iterdir() if (path / "normals.png").exists()):
        normals, mask, camera = read_case(folder)
        cells = []
        for name, variant in VARIANTS.items():
            given, given_mask = variant(normals, mask)
            start = time.perf_counter()
            found = [diagnose(Convention(axes).from_project(given), given_mask, camera) for axes in CANDIDATES]
            seconds.append((time.perf_counter() - start) / len(CANDIDATES))
            verdicts = [judge(diagnosis, axes) for diagnosis, axes in zip(found, CANDIDATES, strict=True)]
            counts = np.array([verdicts.count(verdict) for verdict in ("right", "open", "wrong")])
            left = np.mean([len(diagnosis.candidates) for diagnosis in found])
            cells.append("/".join(map(str, counts)) + f" ({left:.2g})")
            totals[name] = totals[name] + counts
            alarms += sum(axes in diagnosis.excluded for diagnosis, axes in zip(found, CANDIDATES, strict=True))
        print(f"| {folder.name} | " + " | ".join(cells) + " |", flush=True)
    print("| **sum** | " + " | ".join("/".join(map(str, counts)) for counts in totals.values()) + " |")
    runs = len(seconds) * len(CANDIDATES)
    print(f"\nFalse alarms: {alarms} of {runs}. Median time per map: {np.median(seconds):.2f} s.")


if __name__ == "__main__":
    main()
