"""Run time against resolution, as in the paper's figure: pixels, isotropic remeshing, the paper's method, ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from normalmesh.evaluation.synthetic.analytic import medallion
from normalmesh.paper.benchmark import Benchmark, Task
from normalmesh.paper.methods import maker, timed_row
from normalmesh.paper.plot_style import STYLES, new_figure, save
from normalmesh.paper.sources import Source
from normalmesh.paper.tables import Line, Row, Table, mean_of, names_of, rows_with
from normalmesh.runtime.memory import available_memory

#: Vertices as a fraction of the foreground pixels.
SHARE = 0.01
#: Memory per pixel of the most demanding method, with a margin, in bytes.
BYTES_PER_PIXEL = 300
#: Side of the smallest image, in pixels.
MIN_SIDE = 512
COMPARED = ("isotropic", "paper", "ours")


def _own(size: int) -> list[Source]:
    """Return the medallion at 512², 1024², … up to the given side, as far as memory allows."""
    most = math.sqrt((available_memory() or 2**33) / BYTES_PER_PIXEL)
    sides = [side for side in (MIN_SIDE << k for k in range(size.bit_length())) if side <= min(size, most)]
    return [Source(f"medallion {side}", "medallion", "orthographic", partial(medallion, side)) for side in sides]


def _tasks(sources: Sequence[Source], folder: Path) -> Iterator[Task]:
    for source in sources:
        for method in ("pixels", *COMPARED):
            yield Task((source.camera, source.name, method), partial(_run, source, method))


def _run(source: Source, method: str) -> list[Row]:
    maker(method, medallion(48), SHARE)()  # compile the kernels before measuring
    case = source.load()
    row = timed_row(method, case, maker(method, case, SHARE))
    return [{**row, "megapixels": case.normal_map.foreground / 1e6}]


def _tables(rows: list[Row]) -> list[Table]:
    head = [
        "",
        "megapixels",
        *(f"{method}, s" for method in ("pixels", *COMPARED)),
        *(f"{method}, MAE °" for method in COMPARED),
    ]
    lines: list[Line] = []
    for name in names_of(rows, "name"):
        seen = rows_with(rows, name=name)
        seconds = [mean_of(seen, "seconds", method=method) for method in ("pixels", *COMPARED)]
        angles = [mean_of(seen, "mae", method=method) for method in COMPARED]
        lines.append([name, mean_of(seen, "megapixels"), *seconds, *angles])
    remarks = [
        "isotropic remeshing runs several times to reach the number of vertices; its seconds include all runs",
        f"the sizes end where {BYTES_PER_PIXEL} bytes per pixel exceed the memory",
    ]
    return [Table(f"Seconds at {100 * SHARE:g} % vertices", head, lines, remarks)]


def _draw(rows: list[Row], folder: Path) -> None:
    figure, axes = new_figure(1, 1, 5.0)
    place = axes[0, 0]
    for method in ("pixels", *COMPARED):
        points = sorted((float(row["megapixels"]), float(row["seconds"])) for row in rows if row["method"] == method)
        if points:
            colour, marker = STYLES[method]
            place.loglog(*zip(*points, strict=True), color=colour, marker=marker or ".", label=method)
    place.set(xlabel="foreground in megapixels", ylabel="seconds", title=f"Run time at {100 * SHARE:g} % vertices")
    place.legend()
    save(figure, folder / "runtime.png")


BENCHMARK = Benchmark(
    "runtime", "seconds against resolution", 2048, ("camera", "name", "method"), _own, _tasks, _tables, _draw
)
