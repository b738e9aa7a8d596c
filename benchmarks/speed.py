"""Seconds, memory and errors of a reconstruction for growing maps, beside other ways to integrate the same map.

The medallion; a process of its own for each line. Cells read wall / processor seconds. ``mesh`` is our reconstruction
to a vertex target, or to a threshold; ``pixels, classical`` is integrate_pixels, then fast-simplification to the same
number of vertices. The cosine transform solves the whole rectangle, with normals that face the viewer outside the mask.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.ways import STAGES, WAYS, Job, Measured, in_own_process, measure, store_map, warm_up
from normalmesh.paper.tables import figure

COLUMNS = (*STAGES, "total")
HEAD = ("MP", "threads", "way", "vertices", *COLUMNS, "bytes/px", "MAE °", "RMSE px")
WIDTHS = (6, 7, 17, 9, *(15 for _ in COLUMNS), 8, 6, 8)

#: Side in pixels of a map that is large enough for every kernel to be used, and compiled.
COMPILING = 512
#: Megapixels up to which a way is run: Jacobi-CG takes minutes beyond, fast-simplification 700 bytes a pixel.
LARGEST = {"Jacobi-CG": 1.0, "pixels, classical": 20.0}
#: Ways that a second thread does not help.
ONE_THREAD = ("Jacobi-CG",)
#: Bytes per foreground pixel that a reconstruction may take above its input.
BYTES = 120


def main() -> None:
    options = _options()
    sizes = [*options.sizes, *([64.0] if options.large else [])]
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"two threads that share nothing: {two_threads():.2f} times as fast as one")
    print(f"vertex target {100 * (1 - options.compression):g} %, threshold {options.threshold:g} px⁴\n")
    print(_line(HEAD), _line(["-" * width for width in WIDTHS]), sep="\n", flush=True)
    rows: list[Row] = []
    for way in options.ways:
        job = Job(way, Path(), 1, options.compression, options.threshold)
        in_own_process(warm_up, job, COMPILING)
    with tempfile.TemporaryDirectory() as folder:
        for megapixels in sizes:
            place = Path(folder) / f"{megapixels:g}"
            in_own_process(store_map, side_of(megapixels), place)
            rows += _rows_of(megapixels, place, options)
            for file in place.iterdir():
                file.unlink()
    print(f"\ntwo threads that share nothing: {two_threads():.2f} times as fast as one")
    print("\n" + "\n".join(bars(rows)))


def side_of(megapixels: float) -> int:
    """Side in pixels of a medallion with so many megapixels of foreground, a disc of 0.48 times the side."""
    return round(np.sqrt(megapixels * 1e6 / np.pi) / 0.48)


def two_threads() -> float:
    """What a second thread brings on this machine, now: 2 on two free cores, about 1.2 on two halves of one."""
    angles = np.linspace(0, 1, 10_000)

    def work(_: int) -> None:
        for _ in range(10_000):
            np.sin(angles)

    start = perf_counter()
    work(0)
    alone = perf_counter() - start
    with ThreadPoolExecutor(2) as pool:
        start = perf_counter()
        list(pool.map(work, range(2)))
        return 2 * alone / (perf_counter() - start)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="*", default=[1, 4, 16], help="megapixels of foreground")
    parser.add_argument("--large", action="store_true", help="64 megapixels as well")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--compression", type=float, default=0.99, help="share of vertices to save")
    parser.add_argument("--threshold", type=float, default=64.0, help="px⁴, as the paper counts it")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS), metavar="WAY", help="of: %(choices)s")
    options = parser.parse_args()
    if "pixels, classical" in options.ways and find_spec("fast_simplification") is None:
        parser.error("the way 'pixels, classical' needs the package fast-simplification; pip install '.[dev]'")
    return options


@dataclass(frozen=True)
class Row:
    """A line of the table: a measurement, and the size that was asked for."""

    megapixels: float
    found: Measured

    def __str__(self) -> str:
        job, found = self.found.job, self.found
        times = [
            f"{found.seconds[name]:.2f} / {found.cpu_seconds[name]:.2f}" if found.seconds[name] else "–"
            for name in COLUMNS
        ]
        errors = [figure(found.mae), figure(found.rmse)]
        counts = [f"{found.bytes_per_pixel:.0f}", *errors]
        return _line([f"{self.megapixels:g}", str(job.threads), job.way, str(found.vertices), *times, *counts])


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)) + " |"


def _rows_of(megapixels: float, folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    """The lines of one map, printed as they come."""
    for threads in options.threads:
        for way in options.ways:
            if megapixels > LARGEST.get(way, np.inf) or (way in ONE_THREAD and threads > 1):
                continue
            job = Job(way, folder, threads, options.compression, options.threshold)
            try:
                row = Row(megapixels, in_own_process(measure, job, threads=threads))
            except BrokenProcessPool:
                print(f"{way} at {megapixels:g} MP was killed: out of memory?", file=sys.stderr)
                continue
            print(row, flush=True)
            yield row


@dataclass(frozen=True)
class Bar:
    """What was asked for: a figure, and the most or the least that it may be."""

    name: str
    value: float
    most: float = np.inf
    least: float = -np.inf

    def __str__(self) -> str:
        asked = f"≤ {self.most:g}" if np.isfinite(self.most) else f"≥ {self.least:g}"
        verdict = "ok" if self.least <= self.value <= self.most else "missed"
        return f"| {self.name:70} | {figure(self.value):>8} | {asked:>7} | {verdict:6} |"


def bars(rows: list[Row]) -> list[str]:
    """What the issue asks for, as a table; only what these rows tell."""
    lines = [f"| {'bar':70} | measured |   asked |        |", f"|{'-' * 72}|{'-' * 10}|{'-' * 9}|{'-' * 8}|"]
    known = {(row.megapixels, row.found.job.threads, row.found.job.way): row.found for row in rows}
    for (size, threads, way), found in known.items():
        if way == "mesh":
            lines += map(str, _bars_of_mesh(known, size, threads, found))
    return lines


def _bars_of_mesh(
    known: dict[tuple[float, int, str], Measured], size: float, threads: int, found: Measured
) -> Iterator[Bar]:
    name = f"{size:g} MP, threads {threads}: "
    cpu = found.cpu_seconds["total"]
    quarter, single = known.get((size / 4, threads, "mesh")), known.get((size, 1, "mesh"))
    classical = known.get((size, threads, "pixels, classical"))
    if most := {4.0: 12.0, 16.0: 50.0}.get(size):
        yield Bar(name + "processor seconds", cpu, most)
        yield Bar(name + "processor seconds, the goal", cpu, most / 2)
    yield Bar(name + "bytes per pixel", found.bytes_per_pixel, BYTES)
    if quarter is not None:
        yield Bar(name + f"total ÷ total at {size / 4:g} MP, wall", _ratio(found, quarter), 4.4)
        yield Bar(name + f"total ÷ total at {size / 4:g} MP, processor", cpu / quarter.cpu_seconds["total"], 4.4)
    if single is not None and threads == 2:
        yield Bar(name + "times as fast as one thread", _ratio(single, found), least=1.7)
    if classical is not None:
        yield Bar(name + "÷ pixels and classical decimation: wall", _ratio(found, classical), 1)
        yield Bar(name + "÷ pixels and classical decimation: MAE", found.mae / classical.mae, 1)
        yield Bar(name + "÷ pixels and classical decimation: RMSE", found.rmse / classical.rmse, 1)


def _ratio(one: Measured, other: Measured) -> float:
    return one.seconds["total"] / other.seconds["total"]


if __name__ == "__main__":
    main()
