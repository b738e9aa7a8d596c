"""Measure seconds, memory and errors of reconstructions of the medallion by size, compared with other methods.

Each line has its own process. Cells are wall / processor seconds. ``mesh`` is our reconstruction with a vertex target
or a threshold; ``pixels, classical`` is integrate_pixels, then fast-simplification to the same number of vertices. The
cosine transform solves the whole rectangle, with normals that face the viewer outside the mask.
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

#: Side in pixels of a map that is large enough for all kernels to be used, and compiled.
COMPILING = 512
#: Largest megapixels of a method: beyond, Jacobi-CG takes minutes, and fast-simplification 700 bytes per pixel.
MAX_MEGAPIXELS = {"Jacobi-CG": 1.0, "pixels, classical": 20.0}
#: Methods that use only one thread.
ONE_THREAD = ("Jacobi-CG",)
#: Limit of the memory of a reconstruction in addition to its input, in bytes per foreground pixel.
BYTES = 120


def main() -> None:
    options = _options()
    sizes = [*options.sizes, *([64.0] if options.large else [])]
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"two independent threads: {two_threads():.2f} times as fast as one")
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
    print(f"\ntwo independent threads: {two_threads():.2f} times as fast as one")
    print("\n" + "\n".join(limits(rows)))


def side_of(megapixels: float) -> int:
    """Return the side in pixels of a medallion with the given foreground, a disc of radius 0.48 times the side."""
    return round(np.sqrt(megapixels * 1e6 / np.pi) / 0.48)


def two_threads() -> float:
    """Measure the speed-up by a second thread now: 2 on two free cores, about 1.2 on two hyperthreads of one."""
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
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / foreground pixels")
    parser.add_argument("--threshold", type=float, default=64.0, help="in px⁴, as in the paper")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS), metavar="WAY", help="of: %(choices)s")
    options = parser.parse_args()
    if "pixels, classical" in options.ways and find_spec("fast_simplification") is None:
        parser.error("the way 'pixels, classical' needs the package fast-simplification; pip install '.[dev]'")
    return options


@dataclass(frozen=True)
class Row:
    """A line of the table: a measurement, and the requested size."""

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
    """Measure the lines of one map, and print each when it is done."""
    for threads in options.threads:
        for way in options.ways:
            if megapixels > MAX_MEGAPIXELS.get(way, np.inf) or (way in ONE_THREAD and threads > 1):
                continue
            job = Job(way, folder, threads, options.compression, options.threshold)
            try:
                row = Row(megapixels, in_own_process(measure, job, threads=threads))
            except BrokenProcessPool:
                print(f"{way} at {megapixels:g} MP was killed, probably because memory ran out", file=sys.stderr)
                continue
            print(row, flush=True)
            yield row


@dataclass(frozen=True)
class Limit:
    """A figure, and its upper or lower limit."""

    name: str
    value: float
    maximum: float = np.inf
    minimum: float = -np.inf

    def __str__(self) -> str:
        limit = f"≤ {self.maximum:g}" if np.isfinite(self.maximum) else f"≥ {self.minimum:g}"
        verdict = "ok" if self.minimum <= self.value <= self.maximum else "missed"
        return f"| {self.name:70} | {figure(self.value):>8} | {limit:>7} | {verdict:6} |"


def limits(rows: list[Row]) -> list[str]:
    """Return a table that compares the figures of these rows with their limits."""
    lines = [f"| {'figure':70} | measured |   limit |        |", f"|{'-' * 72}|{'-' * 10}|{'-' * 9}|{'-' * 8}|"]
    known = {(row.megapixels, row.found.job.threads, row.found.job.way): row.found for row in rows}
    for (size, threads, way), found in known.items():
        if way == "mesh":
            lines += map(str, _limits_of_mesh(known, size, threads, found))
    return lines


def _limits_of_mesh(
    known: dict[tuple[float, int, str], Measured], size: float, threads: int, found: Measured
) -> Iterator[Limit]:
    name = f"{size:g} MP, threads {threads}: "
    cpu = found.cpu_seconds["total"]
    quarter, single = known.get((size / 4, threads, "mesh")), known.get((size, 1, "mesh"))
    classical = known.get((size, threads, "pixels, classical"))
    if most := {4.0: 12.0, 16.0: 50.0}.get(size):
        yield Limit(name + "processor seconds", cpu, most)
        yield Limit(name + "processor seconds, the goal", cpu, most / 2)
    yield Limit(name + "bytes per pixel", found.bytes_per_pixel, BYTES)
    if quarter is not None:
        yield Limit(name + f"total ÷ total at {size / 4:g} MP, wall", _ratio(found, quarter), 4.4)
        yield Limit(name + f"total ÷ total at {size / 4:g} MP, processor", cpu / quarter.cpu_seconds["total"], 4.4)
    if single is not None and threads == 2:
        yield Limit(name + "times as fast as one thread", _ratio(single, found), minimum=1.7)
    if classical is not None:
        yield Limit(name + "÷ pixels and classical decimation: wall", _ratio(found, classical), 1)
        yield Limit(name + "÷ pixels and classical decimation: MAE", found.mae / classical.mae, 1)
        yield Limit(name + "÷ pixels and classical decimation: RMSE", found.rmse / classical.rmse, 1)


def _ratio(one: Measured, other: Measured) -> float:
    return one.seconds["total"] / other.seconds["total"]


if __name__ == "__main__":
    main()
