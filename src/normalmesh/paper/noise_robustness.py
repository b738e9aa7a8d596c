"""Robustness to Gaussian noise on the normals, as in the paper's figure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.perturbation import add_noise
from normalmesh.paper.benchmark import Benchmark, case_tasks
from normalmesh.paper.methods import METHODS, maker, timed_row, vertex_count
from normalmesh.paper.plot_style import STYLES, legend_below, new_figure, picture, plain_ticks, save
from normalmesh.paper.sources import Source, own_sources
from normalmesh.paper.tables import Line, Row, Table, geometric_mean, mean_of, names_of, rows_with
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.panels import normal_colours, shaded, wireframe

#: Vertices as a fraction of the foreground pixels.
SHARE = 0.01
#: Standard deviations of the noise in degrees: measured, and shown in pictures.
LEVELS = (0.0, 1.0, 3.0, 5.0, 10.0, 20.0)
SHOWN = (0.0, 5.0, 20.0)
COMPARED = ("pixels", "paper", "ours")


def noisy(case: Case, degrees: float) -> Case:
    """Return the case with noise on its input; the truth is unchanged."""
    return replace(case, normal_map=add_noise(case.normal_map, degrees))


def _at_level(level: float, source: Source) -> list[Row]:
    case = noisy(source.load(), level)
    return [timed_row(name, case, maker(name, case, SHARE)) for name in COMPARED]


def _gallery(source: Source, path: Path) -> None:
    """Draw input, mesh and surface at increasing noise."""
    figure, axes = new_figure(3, len(SHOWN), 9.4)
    for column, level in enumerate(SHOWN):
        case = noisy(source.load(), level)
        window = Frame.around(case.normal_map.mask).window
        surface = METHODS["ours"](case, vertex_count(case, SHARE))
        picture(axes[0, column], normal_colours(case.normal_map.normals)[window], f"noise of {level:g}°", "normals")
        picture(axes[1, column], wireframe(surface)[window], "", f"{len(surface.vertices)} vertices")
        picture(axes[2, column], shaded(surface.normal_map())[window], "", "surface")
    figure.suptitle(source.name)
    save(figure, path)


def _tables(rows: list[Row]) -> list[Table]:
    tables = []
    for camera in names_of(rows, "camera"):
        seen = rows_with(rows, camera=camera)
        for column, title in (("rmse", "RMSE"), ("mae", "MAE to the clean normals in °")):
            lines: list[Line] = []
            for group in names_of(seen, "group"):
                of_group = rows_with(seen, group=group)
                lines += [
                    [group, method, *(mean_of(of_group, column, method=method, level=f"{level:g}") for level in LEVELS)]
                    for method in COMPARED
                ]
            lines += [
                ["geometric mean", method, *(_mean(lines, method, k + 2) for k in range(len(LEVELS)))]
                for method in COMPARED
            ]
            head = ["", "", *(f"{level:g}°" for level in LEVELS)]
            tables.append(Table(f"{title}, {100 * SHARE:g} % vertices, {camera}", head, lines))
    return tables


def _mean(lines: list[list[str | float]], method: str, column: int) -> float:
    return geometric_mean([float(line[column]) for line in lines if line[1] == method])


def _draw(rows: list[Row], folder: Path) -> None:
    tables = _tables(rows)
    figure, axes = new_figure(1, len(tables), 3.4)
    for place, table in zip(axes.flat, tables, strict=True):
        for line in table.lines:
            colour, marker = STYLES[str(line[1])]
            if line[0] == "geometric mean":
                place.plot(LEVELS, line[2:], color=colour, marker=marker, label=line[1])
        measure, _, setting = table.title.partition(", ")
        if measure == "RMSE":
            measure += f" in {' or '.join(names_of(rows, 'units'))}"
        place.set(xlabel="noise in °", ylabel=measure, title=f"{setting}, geometric mean", yscale="log")
        plain_ticks(place, "y")
    legend_below(figure, axes.flat[0])
    save(figure, folder / "noise.png")


BENCHMARK = Benchmark(
    "noise",
    "errors with Gaussian noise on the normals",
    320,
    ("camera", "group", "name", "level"),
    partial(own_sources, cameras=("orthographic",)),
    case_tasks({f"{level:g}": partial(_at_level, level) for level in LEVELS}, _gallery),
    _tables,
    _draw,
)
