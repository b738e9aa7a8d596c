"""Ablation: only collapses, with vertex alignment, with edge alignment, and with both, as in the paper's figure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from normalmesh.decimation.rounds import decimate
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.metrics import evaluate
from normalmesh.integration.mesh_integration import integrate
from normalmesh.mesh.surface import Surface
from normalmesh.paper.benchmark import Benchmark, case_tasks
from normalmesh.paper.methods import PAPER_DECIMATION, PAPER_INTEGRATION, default, timed_row, vertex_count
from normalmesh.paper.plot_style import legend_below, new_figure, picture, save
from normalmesh.paper.sources import Source, own_sources
from normalmesh.paper.tables import Line, Row, Table, figure, geometric_mean, mean_of, names_of, rows_with
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.panels import shaded, wireframe

#: Vertices as a fraction of the foreground pixels.
SHARE = 0.01
PARTS: dict[str, dict[str, Any]] = {
    "collapses": {"flips": False, "moves": False},
    "+ vertex alignment": {"flips": False},
    "+ edge alignment": {"moves": False},
    "full": {},
}
#: The rounds of the paper, each with alignment.
SCHEDULE: dict[str, Any] = {**PAPER_DECIMATION, "passes": 3}
#: Passes of alignment per round: the best number, and that of the paper.
PASSES = (3, 10)
#: Name → options of decimate(): only collapses, then each part with each number of passes.
VARIANTS: dict[str, dict[str, Any]] = {
    "collapses": {"passes": 0},
    **{f"{part}, {passes} passes": {"passes": passes, **PARTS[part]} for passes in PASSES for part in list(PARTS)[1:]},
}
#: Full decimation with our integration and refinement.
OURS = "ours"


def _variant(variant: str, source: Source) -> list[Row]:
    case = source.load()
    ours = partial(default, case, vertex_count(case, SHARE))
    return [timed_row(variant, case, ours if variant == OURS else partial(_surface, case, VARIANTS[variant]))]


def _surface(case: Case, options: dict[str, Any]) -> Surface:
    """Reconstruct with the integration of the paper, so that only the mesh differs."""
    mesh = decimate(case.normal_map, vertices=vertex_count(case, SHARE), **{**SCHEDULE, **options})
    return integrate(mesh, case.normal_map, **PAPER_INTEGRATION)


def _gallery(source: Source, path: Path) -> None:
    """Draw wireframe and surface of each variant, with the errors below."""
    case = source.load()
    window = Frame.around(case.normal_map.mask).window
    shown, axes = new_figure(2, len(PARTS), 5.6)
    for column, (part, options) in enumerate(PARTS.items()):
        surface = _surface(case, options)
        found = evaluate(surface, case)
        picture(axes[0, column], wireframe(surface)[window], part)
        picture(
            axes[1, column],
            shaded(surface.normal_map())[window],
            "",
            f"RMSE {figure(found.rmse)} {found.units}, MAE {found.mae:.2f}°",
        )
    shown.suptitle(f"{case.name}, {len(surface.vertices)} vertices")
    save(shown, path)


def _tables(rows: list[Row]) -> list[Table]:
    tables = []
    for camera in names_of(rows, "camera"):
        seen = rows_with(rows, camera=camera)
        groups = names_of(seen, "group")
        for column, title in (("mae", "MAE in degrees"), ("rmse", "RMSE")):
            lines: list[Line] = []
            for variant in (*VARIANTS, OURS):
                figures = [mean_of(seen, column, method=variant, group=group) for group in groups]
                bare = [mean_of(seen, column, method="collapses", group=group) for group in groups]
                ratios = [value / base for value, base in zip(figures, bare, strict=True)]
                lines.append([variant, *figures, geometric_mean(ratios)])
            head = [title, *groups, "ratio to collapses"]
            tables.append(Table(f"{title.split()[0]} at {100 * SHARE:g} % vertices, {camera}", head, lines))
    return tables


def _draw(rows: list[Row], folder: Path) -> None:
    """Draw the geometric means over the groups of the ratios to collapses alone, for both measures."""
    tables = _tables(rows)
    names = [*VARIANTS, OURS]
    shown, axes = new_figure(1, 2, 3.6, sharey=True)
    for place, measure in zip(axes.flat, ("MAE", "RMSE"), strict=True):
        chosen = [table for table in tables if table.title.startswith(measure)]
        for offset, table in enumerate(chosen):
            heights = [len(names) - k + 0.35 * offset for k in range(len(names))]
            place.barh(heights, [line[-1] for line in table.lines], 0.33, label=table.title.rpartition(", ")[2])
        place.set_yticks([len(names) - k + 0.17 for k in range(len(names))], names)
        place.set(xlabel=f"{measure}, ratio to collapses alone", xlim=(0, None))
        place.axvline(1, color="black", linewidth=0.8)
    legend_below(shown, axes.flat[0])
    save(shown, folder / "ablation.png")


BENCHMARK = Benchmark(
    "ablation",
    "the effect of each part of the decimation",
    320,
    ("camera", "group", "name", "variant"),
    own_sources,
    case_tasks({variant: partial(_variant, variant) for variant in (*VARIANTS, OURS)}, _gallery),
    _tables,
    _draw,
)
