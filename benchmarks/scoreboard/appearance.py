"""Figures of looks on the shared cases, with and without ground truth."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from benchmarks.cases import map_names
from benchmarks.jumps import case_named, names_with_truth, recall_and_precision
from benchmarks.looks import LONG_CUTS, case_of, cracks, flicker, looked
from benchmarks.made import MODELS
from benchmarks.scoreboard.figures import Better, Figure, Skipped
from normalmesh import find_jumps

#: Three percent of the vertices.
COMPRESSION = 0.97


def lines() -> Iterator[Figure | Skipped]:
    """Measure how complete and right lines of jumps are, on shared cases and on models that are rendered."""
    names = names_with_truth()
    if len(names) == len(MODELS):
        yield Skipped("the shared cases are not on this machine")
    cases = map(case_named, names)
    found = [recall_and_precision(case, find_jumps(case.normal_map)) for case in cases]
    for name, values in zip(("recall", "precision"), zip(*found, strict=True), strict=True):
        known = [value for value in values if value is not None]
        yield Figure(f"{name} of lines", fmean(known), "", Better.HIGHER, 0.02, f"{len(known)} cases")


def looks() -> Iterator[Figure | Skipped]:
    """Measure faces off their pixels, ghosts, gaps, lost lines, teeth, and cracks on maps without jumps."""
    rows = [looked(case_of(name), COMPRESSION) for name in map_names()]
    if not rows:
        yield Skipped("the shared cases are not on this machine")
        return
    bad, worst = fmean(row.looks.bad_area for row in rows), max(rows, key=lambda row: row.looks.bad_area)
    yield Figure("bad area mean", bad, "%", noise=0.05, note=f"{len(rows)} cases, 3 % vertices")
    yield Figure("bad area worst", worst.looks.bad_area, "%", noise=0.1, note=worst.case.name)
    for name, degrees in (("off_30", 30), ("off_60", 60)):
        yield Figure(f"area off by {degrees}° mean", fmean(getattr(row.looks, name) for row in rows), "%", noise=0.05)
    ghosts, ghostly = fmean(row.looks.ghosts for row in rows), max(rows, key=lambda row: row.looks.ghosts)
    yield Figure("ghosts mean", ghosts, "%", noise=0.1)
    yield Figure("ghosts worst", ghostly.looks.ghosts, "%", noise=0.2, note=ghostly.case.name)
    yield Figure("gaps mean", fmean(row.looks.gaps for row in rows), "%", noise=0.05)
    for kind, change in (("u1", "after one 8-bit unit"), ("j90", "as JPEG 90")):
        found = [flicker(row.case.normal_map, kind) for row in rows]
        lengths = sum(length for length, _ in found)
        if lengths:
            again = sum(length * share for length, share in found) / lengths
            yield Figure(f"lines lost {change}", 100 * (1 - again), "%", noise=0.1)
    cut = [row.looks for row in rows if row.looks.cut_length > LONG_CUTS]
    if cut:
        note = f"{len(cut)} cases with cuts longer than {LONG_CUTS:.0f} px"
        yield Figure("teeth mean", fmean(each.teeth for each in cut), "°", noise=0.03, note=note)
        yield Figure("turning mean", fmean(each.turning for each in cut), "°/px", noise=0.05)
    yield Figure("cracks without occlusions", cracks(rows), "px", noise=0.05)
