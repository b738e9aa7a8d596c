"""Control by the threshold: table 2 of the paper, and compression and errors as in its supplement."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

from normalmesh.mesh.surface import Surface
from normalmesh.paper.benchmark import Benchmark, case_tasks
from normalmesh.paper.methods import pixels_rows, timed_row
from normalmesh.paper.plot_style import legend_below, new_figure, picture, save
from normalmesh.paper.sources import Source, own_sources
from normalmesh.paper.tables import Row, Table, lines_by, mean_of, names_of, rows_with
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.panels import shaded
from normalmesh.reconstruction.pipeline import reconstruct

#: Thresholds in px⁴: those of table 2, and others in between.
THRESHOLDS = (0.25, 2.0, 8.0, 64.0, 512.0, 2048.0)
TABLE_2 = (2.0, 64.0, 2048.0)
#: Name in tables → preset of reconstruct().
PRESETS = {"paper": "paper", "ours": "default"}


def _at_threshold(threshold: float, source: Source) -> list[Row]:
    case = source.load()
    return [
        timed_row(name, case, partial(reconstruct, case.normal_map, threshold=threshold, preset=preset))
        for name, preset in PRESETS.items()
    ]


def _gallery(source: Source, path: Path) -> None:
    """Draw the surfaces at the thresholds of table 2 side by side, as in the supplement."""
    case = source.load()
    surfaces: list[Surface] = [reconstruct(case.normal_map, threshold=threshold) for threshold in TABLE_2]
    window = Frame.around(case.normal_map.mask).window
    figure, axes = new_figure(1, len(TABLE_2), 3.9)
    for place, threshold, surface in zip(axes.flat, TABLE_2, surfaces, strict=True):
        compression = 100 * (1 - len(surface.vertices) / case.normal_map.foreground)
        picture(
            place,
            shaded(surface.normal_map())[window],
            f"{case.name}, T = {threshold:g}",
            f"{len(surface.vertices)} vertices ({compression:.1f} %)",
        )
    save(figure, path)


def _tables(rows: list[Row]) -> list[Table]:
    return [_table(rows, camera) for camera in names_of(rows, "camera")]


def _table(rows: list[Row], camera: str) -> Table:
    seen = rows_with(rows, camera=camera)
    head = ["RMSE", "unit", "pixels", *(f"{method} T = {threshold:g}" for method in PRESETS for threshold in TABLE_2)]
    columns = [{"method": method, "threshold": f"{threshold:g}"} for method in PRESETS for threshold in TABLE_2]
    lines = lines_by("group", seen, "rmse", [{"method": "pixels"}, *columns])
    remarks = [
        _growing(seen, method, column) for method in PRESETS for column in ("compression", "rmse", "made", "mae")
    ]
    return Table(f"Table 2, {camera}", head, lines, remarks)


def _growing(rows: list[Row], method: str, column: str) -> str:
    """Return a sentence: in how many steps of the threshold a figure increases."""
    grows = total = 0
    for name in names_of(rows, "name"):
        figures = [
            mean_of(rows, column, method=method, threshold=f"{threshold:g}", name=name) for threshold in THRESHOLDS
        ]
        steps = [later > earlier for earlier, later in itertools.pairwise(figures)]
        grows, total = grows + sum(steps), total + len(steps)
    return f"{method}: {column} increases in {grows} of {total} steps of the threshold"


def _draw(rows: list[Row], folder: Path) -> None:
    """Draw compression, RMSE, MADE and MAE against the threshold: solid lines orthographic, dashed perspective."""
    labels = {"compression": "compression in %", "rmse": "RMSE", "made": "MADE", "mae": "MAE in °"}
    for method in PRESETS:
        figure, axes = new_figure(1, len(labels), 3.4)
        for place, (column, label) in zip(axes.flat, labels.items(), strict=True):
            for number, group in enumerate(names_of(rows, "group")):
                for camera, line in (("orthographic", "-"), ("perspective", "--")):
                    chosen = rows_with(rows, group=group, camera=camera)
                    figures = [mean_of(chosen, column, method=method, threshold=f"{value:g}") for value in THRESHOLDS]
                    if column == "compression":
                        figures = [100 * value for value in figures]
                    label_once = group if camera == names_of(rows, "camera")[0] else None
                    place.plot(THRESHOLDS, figures, line, color=f"C{number}", marker=".", label=label_once)
            place.set_xscale("log")
            if column in ("rmse", "made"):
                place.set_yscale("log")
                label += f" in {' or '.join(names_of(rows, 'units'))}"
            place.set(xlabel="threshold T in px⁴", ylabel=label, title=label.split(" in ")[0])
        legend_below(figure, axes.flat[0])
        figure.suptitle(f"{method}: solid lines orthographic, dashed lines perspective")
        save(figure, folder / f"thresholds_{method}.png")


BENCHMARK = Benchmark(
    "thresholds",
    "compression and errors against the decimation threshold",
    320,
    ("camera", "group", "name", "threshold"),
    own_sources,
    case_tasks({"all": pixels_rows, **{f"{each:g}": partial(_at_threshold, each) for each in THRESHOLDS}}, _gallery),
    _tables,
    _draw,
)
