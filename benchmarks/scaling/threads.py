"""``threads``: reconstruction in memory on more and more threads, beside integrate_pixels without jumps."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.mesh_hashes import hash_of
from benchmarks.scaling.table import Table, Verdict
from benchmarks.scaling.terrain import Terrain
from benchmarks.solve import forget_peak, status_megabytes
from benchmarks.ways import in_own_process
from normalmesh import NormalMap, Surface, integrate_pixels, reconstruct

#: Side in pixels of the map on which kernels are compiled or loaded first.
WARMING = 512
#: Least speed-up by 16 threads at 16 MP, and largest time of the mesh ÷ that of pixels.
SPEED_UP, AGAINST_PIXELS = (16.0, 16, 8.0), 1.0
TABLE = Table(
    {
        "MP": 5,
        "threads": 7,
        "mesh s": 8,
        "CPU s": 8,
        "speed-up": 8,
        "MB": 7,
        "pixels s": 8,
        "px CPU s": 8,
        "px speed-up": 11,
        "px MB": 7,
        "mesh ÷ pixels": 13,
        "mesh": 8,
    }
)


@dataclass(frozen=True)
class Measured:
    """Wall and processor seconds, the peak memory in MB in addition to the map, and a hash of the mesh."""

    seconds: float
    cpu_seconds: float
    megabytes: float
    mesh: str


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", "--megapixels", type=float, nargs="+", default=[16.0], help="in megapixels")
    cores = os.cpu_count() or 1
    counts = [count for count in (1, 2, 4, 8, 16) if count <= cores]
    parser.add_argument("--threads", type=int, nargs="+", default=counts, help="default: 1, 2, … up to the cores")
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / pixels")
    parser.add_argument("--repeats", type=int, default=1, help="the fastest of so many runs counts")


def run(options: argparse.Namespace) -> Iterator[Verdict]:
    """Print a line for each size and number of threads, and yield the verdicts."""
    for way in WAYS:
        in_own_process(warm_up, way, threads=2)
    print(TABLE.head(), flush=True)
    for megapixels in options.sizes:
        first: dict[str, Measured] = {}
        for threads in options.threads:
            found = {way: _fastest(way, megapixels, threads, options) for way in WAYS}
            first = first or found
            print(_row(megapixels, threads, found, first), flush=True)
            yield from _verdicts(megapixels, threads, found, first)


def _fastest(way: str, megapixels: float, threads: int, options: argparse.Namespace) -> Measured:
    terrain = Terrain.of(megapixels)
    runs = [in_own_process(measure, way, terrain, options.compression, threads=threads) for _ in range(options.repeats)]
    return min(runs, key=lambda each: each.seconds)


def _row(megapixels: float, threads: int, found: dict[str, Measured], first: dict[str, Measured]) -> str:
    cells: list[object] = [f"{megapixels:g}", threads]
    for way, each in found.items():
        cells += [each.seconds, each.cpu_seconds, first[way].seconds / each.seconds, f"{each.megabytes:.0f}"]
    return TABLE.row(*cells, found["mesh"].seconds / found["pixels"].seconds, found["mesh"].mesh[:8])


def _verdicts(
    megapixels: float, threads: int, found: dict[str, Measured], first: dict[str, Measured]
) -> Iterator[Verdict]:
    name = f"{megapixels:g} MP, {threads} threads: "
    yield Verdict(name + "mesh ÷ pixels, wall", found["mesh"].seconds / found["pixels"].seconds, AGAINST_PIXELS)
    if (megapixels, threads) == SPEED_UP[:2]:
        yield Verdict(name + "speed-up", first["mesh"].seconds / found["mesh"].seconds, least=SPEED_UP[2])
    if found["mesh"] is not first["mesh"]:
        yield Verdict(name + "meshes that differ", float(found["mesh"].mesh != first["mesh"].mesh), 0)


def warm_up(way: str) -> None:
    """Compile or load the kernels."""
    WAYS[way](Terrain(WARMING).normal_map(), 0.99)


def measure(way: str, terrain: Terrain, compression: float) -> Measured:
    """Run one of :data:`WAYS` in this process, without compilation."""
    warm_up(way)
    normal_map = terrain.normal_map()
    before, start, cpu = forget_peak(), time.perf_counter(), time.process_time()
    result = WAYS[way](normal_map, compression)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    mesh = hash_of(result.vertices, result.faces) if isinstance(result, Surface) else ""
    return Measured(seconds, cpu_seconds, status_megabytes("VmHWM") - before, mesh)


def _mesh(normal_map: NormalMap, compression: float) -> Surface:
    return reconstruct(normal_map, compression=compression)


def _pixels(normal_map: NormalMap, compression: float) -> object:
    return integrate_pixels(normal_map)


WAYS = {"mesh": _mesh, "pixels": _pixels}
