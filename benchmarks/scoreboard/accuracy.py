"""Figures of accuracy on the shared cases: against the authors' program, and on DiLiGenT."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, geometric_mean

import imagecodecs
import numpy as np

import normalmesh as nm
from benchmarks.cases import CASES, Case, case_names, load, measure
from benchmarks.compare_reference import TAGS, Compared, compare
from benchmarks.scoreboard.figures import Better, Figure, Skipped

THRESHOLDS = (2, 64, 2048)

OBJECTS = ("bear", "buddha", "cow", "pot2", "reading")
#: Tag of the shared cases for four percent of the foreground.
FOUR_PERCENT = "c4"
DRAWS = 3


def reference() -> Iterator[Figure | Skipped]:
    """Measure errors over those of the authors' program, at as many vertices."""
    rows: list[Compared] = []
    for name in (names := case_names()):
        if not (CASES / name).is_dir():
            yield Skipped(f"{name} is not on this machine")
            continue
        case = load(name)
        rows += [compare(case, tag, {}) for tag in TAGS if tag in case.reference]
    if not rows:
        yield Skipped("the shared cases are not on this machine")
        return
    unit, count = "× authors'", f"{len({row.case.name for row in rows})} of {len(names)} cases"
    for k, (error, noise) in enumerate((("MAE", 0.003), ("RMSE", 0.01))):
        yield Figure(error, geometric_mean(row.ratios[k] for row in rows), unit, noise=noise, note=count)
        for tag in TAGS:
            ratios = [row.ratios[k] for row in rows if row.tag == tag]
            yield Figure(f"{error} {tag}", geometric_mean(ratios), unit, noise=2 * noise)
        worst = max(rows, key=lambda row: row.ratios[k])
        yield Figure(f"{error} worst", worst.ratios[k], unit, noise=7 * noise, note=f"{worst.case.name} {worst.tag}")
    worst = max(rows, key=lambda row: row.ratios[2])
    yield Figure("lost pixels at most", worst.ratios[2], unit, noise=0.05, note=f"{worst.case.name} {worst.tag}")


def thresholds() -> Iterator[Figure | Skipped]:
    """Count vertices of surfaces, cuts included, over those of the authors' program at the same threshold."""
    ratios: dict[int, dict[str, float]] = {threshold: {} for threshold in THRESHOLDS}
    for name in case_names():
        if not (CASES / name).is_dir():
            yield Skipped(f"{name} is not on this machine")
            continue
        case = load(name)
        for threshold in THRESHOLDS:
            if theirs := case.reference.get(f"e{threshold}"):
                surface = nm.reconstruct(case.normal_map, threshold=threshold)
                ratios[threshold][name] = len(surface.vertices) / theirs["vertices"]
    for threshold, of_cases in ratios.items():
        if not of_cases:
            yield Skipped(f"no shared case with a reference at T = {threshold}")
            continue
        least, most = min(of_cases.values()), max(of_cases.values())
        note = f"{least:.2f}–{most:.2f} in {len(of_cases)} cases"
        mean = geometric_mean(of_cases.values())
        yield Figure(f"vertices at T = {threshold}", mean, "× authors'", Better.NEAR_ONE, 0.01, note)


def diligent() -> Iterator[Figure | Skipped]:
    """Measure MADE at four percent: of the maps as they are, and its spread if they change by the rounding of the file.

    A spread far above 1 means that where parts of an object end up is decided by chance.
    """
    nominal: list[float] = []
    draws: list[list[float]] = []
    for thing in OBJECTS:
        if not (CASES / f"diligent_{thing}").is_dir():
            yield Skipped(f"diligent_{thing} is not on this machine")
            continue
        case = load(f"diligent_{thing}")
        nominal.append(_made(case, case.normal_map))
        draws.append([_made(case, draw(case, seed)) for seed in range(DRAWS)])
        yield Figure(f"MADE {thing}", fmean(draws[-1]), "mm", noise=_noise(draws[-1]), note=_range(draws[-1]))
    if nominal:
        means = [fmean(of_draw) for of_draw in zip(*draws, strict=True)]
        yield Figure("MADE mean", fmean(means), "mm", noise=_noise(means), note=_range(means))
        yield Figure("MADE mean, maps as they are", fmean(nominal), "mm", noise=_noise(means))
        spread = max(max(of_object) / min(of_object) for of_object in draws)
        yield Figure("MADE spread at most", spread, "largest ÷ least", noise=0.1, note=f"{DRAWS} draws")


def draw(case: Case, seed: int) -> nm.NormalMap:
    """Change each component of the case's normals by at most one unit of its 16-bit file."""
    image = imagecodecs.imread(CASES / case.name / "normals.png")
    changed = image.astype(np.int64) + np.random.default_rng(seed).integers(-1, 2, image.shape)
    return nm.NormalMap((changed / 65535 * 2 - 1).astype(np.float32), case.normal_map.mask, case.normal_map.camera)


def _made(case: Case, normal_map: nm.NormalMap) -> float:
    surface = nm.reconstruct(normal_map, vertices=int(case.reference[FOUR_PERCENT]["vertices"]))
    return measure(surface, case, FOUR_PERCENT).made


def _noise(values: list[float]) -> float:
    """Return the relative distance of the draws from their mean, at least two percent."""
    return max(0.02, (max(values) - min(values)) / 2 / fmean(values))


def _range(values: list[float]) -> str:
    return f"{min(values):.3f}–{max(values):.3f} in {len(values)} draws"
