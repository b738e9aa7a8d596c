"""Accuracy at equal vertex counts: table 1 of the paper and the first table of its supplement."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.decimation.rounds import decimate
from normalmesh.evaluation.metrics import evaluate
from normalmesh.integration.mesh_integration import integrate
from normalmesh.paper.benchmark import Benchmark, case_tasks
from normalmesh.paper.methods import (
    OLDER_INTEGRATION,
    PAPER_DECIMATION,
    PAPER_INTEGRATION,
    default,
    isotropic,
    pixels_rows,
    row_of,
    vertex_count,
)
from normalmesh.paper.plot_style import STYLES, legend_below, new_figure, plain_ticks, save
from normalmesh.paper.sources import Source, own_sources
from normalmesh.paper.tables import Row, Table, compared, lines_by, mean_of, names_of, rows_with

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COMPARED = ("isotropic", "older integrator", "paper", "ours")
#: Level → vertices as a fraction of the foreground pixels.
LEVELS = {"low": 0.005, "mid": 0.02, "high": 0.08}


def _methods(share: float, source: Source) -> list[Row]:
    """Return the rows of all methods at the number of vertices that isotropic remeshing reaches."""
    case = source.load()
    remeshed = isotropic(case, vertex_count(case, share))
    count = len(remeshed.vertices)
    mesh = decimate(case.normal_map, vertices=count, **PAPER_DECIMATION)
    surfaces = {
        "isotropic": remeshed,
        "older integrator": integrate(mesh, case.normal_map, **OLDER_INTEGRATION),
        "paper": integrate(mesh, case.normal_map, **PAPER_INTEGRATION),
        "ours": default(case, count),
    }
    return [row_of(name, evaluate(surface, case)) for name, surface in surfaces.items()]


def _tables(rows: list[Row]) -> list[Table]:
    return [
        _table(rows, camera, measure, title)
        for camera in names_of(rows, "camera")
        for measure, title in (("rmse", "RMSE"), ("mae", "MAE in degrees"))
        if any(np.isfinite(float(row[measure])) for row in rows if row["camera"] == camera)
    ]


def _table(rows: list[Row], camera: str, measure: str, title: str) -> Table:
    seen = rows_with(rows, camera=camera)
    columns = [("pixels", "all"), *product(COMPARED, LEVELS)]
    head = ["", "unit" if measure == "rmse" else "", "pixels", *(f"{method} {level}" for method, level in columns[1:])]
    lines = lines_by("group", seen, measure, [{"method": method, "level": level} for method, level in columns])
    pairs = (("ours", "isotropic"), ("paper", "isotropic"), ("paper", "older integrator"), ("ours", "paper"))
    remarks = [compared(seen, measure, method, other, by=("name", "level")) for method, other in pairs]
    remarks += [_falling(seen, measure, method) for method in ("paper", "ours")]
    return Table(f"{title}, {camera}", head, lines, remarks)


def _falling(rows: list[Row], measure: str, method: str) -> str:
    """Return a sentence: in how many cases the error decreases from low to mid to high."""
    names = names_of(rows, "name")
    falls = 0
    for name in names:
        figures = [mean_of(rows, measure, method=method, level=level, name=name) for level in LEVELS]
        falls += all(more > less for more, less in pairwise(figures))
    return f"{method}: the error decreases with each step of the vertex count in {falls} of {len(names)} cases"


def _draw(rows: list[Row], folder: Path) -> None:
    """Draw errors against vertices, one plot per group."""
    for camera, measure in product(names_of(rows, "camera"), ("rmse", "mae")):
        seen = rows_with(rows, camera=camera)
        groups = names_of(seen, "group")
        columns = min(len(groups), 4)
        lines = -(-len(groups) // columns)
        figure, axes = new_figure(lines, columns, 2.6 * lines, sharex=True)
        for place, group in zip(axes.flat, groups, strict=False):
            _curves(place, rows_with(seen, group=group), measure)
            units = next(row["units"] for row in seen if row["group"] == group)
            place.set(title=group, ylabel=f"RMSE in {units}" if measure == "rmse" else "MAE in °")
            shares = [100 * share for share in LEVELS.values()]
            place.set_xticks(shares, [f"{share:g}" for share in shares])
            place.set_xticks([], minor=True)
            plain_ticks(place, "y")
        for place in axes[-1]:
            place.set_xlabel("vertices, % of the pixels")
        for place in axes.flat[len(groups) :]:
            place.set_visible(False)
        legend_below(figure, axes.flat[0])
        save(figure, folder / f"accuracy_{measure}_{camera}.png")


def _curves(axes: Axes, rows: list[Row], measure: str) -> None:
    for method in COMPARED:
        points = [
            (
                100 * (1 - mean_of(rows, "compression", method=method, level=level)),
                mean_of(rows, measure, method=method, level=level),
            )
            for level in LEVELS
        ]
        colour, marker = STYLES[method]
        axes.loglog(*zip(*points, strict=True), color=colour, marker=marker, markersize=4, label=method)
    axes.axhline(mean_of(rows, measure, method="pixels"), color=STYLES["pixels"][0], linestyle="--", label="pixels")


BENCHMARK = Benchmark(
    "accuracy",
    "errors at equal vertex counts: pixels, isotropic remeshing, the paper's decimation with the older integrator, "
    "the paper's method, ours",
    320,
    ("camera", "group", "name", "level"),
    own_sources,
    case_tasks({"all": pixels_rows, **{level: partial(_methods, share) for level, share in LEVELS.items()}}),
    _tables,
    _draw,
)
