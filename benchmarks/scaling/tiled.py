"""``tiled``: maps reconstructed in tiles against the same in memory: vertices, errors, and errors near seams."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scaling.errors import Errors, errors_of
from benchmarks.scaling.table import Table, Verdict
from benchmarks.scaling.terrain import KINDS, Terrain, TerrainFiles, map_folder
from benchmarks.ways import in_own_process
from normalmesh import NormalMap, Surface, read_normal_map, reconstruct, reconstruct_tiled
from normalmesh.runtime.threads import MAX_THREADS

#: Largest error in tiles ÷ in memory, largest such ratio of (near seams ÷ elsewhere), and of the numbers of vertices.
ERROR, SEAMS, VERTICES = 1.01, 1.02, 0.01
TABLE = Table(
    {
        "terrain": 11,
        "way": 6,
        "wall s": 7,
        "CPU s": 7,
        "vertices": 9,
        "MAE °": 8,
        "RMSE px": 8,
        "away from jumps": 15,
        "MAE, seams ÷ else": 17,
        "RMSE, seams ÷ else": 18,
        "uncovered": 9,
        "cuts px": 7,
    }
)


@dataclass(frozen=True)
class Measured:
    """Wall seconds, processor seconds of all processes, errors, and the length (px) of the cuts at jumps."""

    seconds: float
    cpu_seconds: float
    errors: Errors
    cuts: float


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megapixels", type=float, default=64.0)
    parser.add_argument("--tile", type=int, default=2048, help="side in pixels, a multiple of 128")
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / pixels")
    parser.add_argument("--workers", type=int, help="processes; default: as many as cores; 0: only one")
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help="of: %(choices)s"
    )
    for kind in KINDS[1:]:
        parser.add_argument(f"--{kind}", dest="kinds", action="store_const", const=[kind], help="only this terrain")
    parser.add_argument("--folder", type=Path, help="where maps are written, and kept; default: a temporary one")


def run(options: argparse.Namespace) -> Iterator[Verdict]:
    """Print two lines for each kind of terrain, and yield the verdicts."""
    print(TABLE.head(), flush=True)
    with map_folder(options.folder) as folder:
        for kind in options.kinds:
            terrain = Terrain.of(options.megapixels, kind)
            files = in_own_process(terrain.write, folder)
            found = {}
            for way in WAYS:
                found[way] = in_own_process(measure, way, terrain, files, options, threads=MAX_THREADS)
                print(_row(kind, way, found[way]), flush=True)
            yield from _verdicts(kind, found["memory"], found["tiled"])
            if options.folder is None:
                files.remove()


def _row(kind: str, way: str, found: Measured) -> str:
    each = found.errors
    errors = (
        each.vertices,
        each.mae,
        each.rmse,
        f"{each.clear_mae:.3g}, {each.clear_rmse:.3g}",
        f"{each.seam_mae:.3f}",
        f"{each.seam_rmse:.3f}",
    )
    return TABLE.row(kind, way, found.seconds, found.cpu_seconds, *errors, f"{each.uncovered:.2e}", f"{found.cuts:.0f}")


def _verdicts(kind: str, memory: Measured, tiled: Measured) -> Iterator[Verdict]:
    """Compare tiles with memory. The ground at the seams may be rougher than elsewhere: memory has that error, too."""
    one, other = tiled.errors, memory.errors
    name = f"{kind}, tiled ÷ memory: "
    yield Verdict(name + "MAE", one.mae / other.mae, ERROR)
    yield Verdict(name + "RMSE", one.rmse / other.rmse, ERROR)
    if memory.cuts > 0:
        yield Verdict(name + "MAE away from jumps", one.clear_mae / other.clear_mae, ERROR)
        yield Verdict(name + "RMSE away from jumps", one.clear_rmse / other.clear_rmse, ERROR)
    yield Verdict(name + "MAE near seams ÷ elsewhere", one.seam_mae / other.seam_mae, SEAMS)
    yield Verdict(name + "RMSE near seams ÷ elsewhere", one.seam_rmse / other.seam_rmse, SEAMS)
    yield Verdict(name + "difference of vertices", abs(one.vertices / other.vertices - 1), VERTICES)


def measure(way: str, terrain: Terrain, files: TerrainFiles, options: argparse.Namespace) -> Measured:
    """Run one of :data:`WAYS` in this process and those that it starts; reading the map counts."""
    start, cpu = time.perf_counter(), _cpu_seconds()
    surface = WAYS[way](files, options)
    seconds, cpu_seconds = time.perf_counter() - start, _cpu_seconds() - cpu
    found = surface.discontinuities
    return Measured(
        seconds, cpu_seconds, errors_of(surface, terrain, options.tile), 0.0 if found is None else found.length
    )


def _cpu_seconds() -> float:
    """Return the processor seconds of this process, and of those that it started and that have ended."""
    both = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


def _in_memory(files: TerrainFiles, options: argparse.Namespace) -> Surface:
    normal_map = read_normal_map(files.map, files.mask, files.camera)
    return reconstruct(normal_map, compression=options.compression)


def _in_tiles(files: TerrainFiles, options: argparse.Namespace) -> Surface:
    opened = NormalMap.open(files.map, files.mask, files.camera)
    return reconstruct_tiled(opened, compression=options.compression, tiles=options.tile, workers=options.workers)


WAYS = {"memory": _in_memory, "tiled": _in_tiles}
