"""``workers``: one map on more and more worker processes, and with one killed half way: always the same mesh."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.mesh_hashes import hash_of
from benchmarks.scaling.processes import Kill, Watched, watch
from benchmarks.scaling.table import Table, Verdict
from benchmarks.scaling.terrain import KINDS, Terrain, TerrainFiles, map_folder
from benchmarks.ways import in_own_process
from normalmesh import NormalMap, reconstruct_tiled
from normalmesh.runtime.memory import bytes_text

TABLE = Table({"workers": 18, "wall s": 8, "CPU s": 8, "speed-up": 8, "memory": 9, "processes": 9, "mesh": 12})
#: The stage that takes longest: when half of its tiles are done, a worker is killed.
STAGE = "decimate-begin"
#: What a run prints before the hash of its mesh.
MARK = "mesh "


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megapixels", type=float, default=256.0)
    parser.add_argument("--tile", type=int, default=2048, help="side in pixels, a multiple of 128")
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / pixels")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    parser.add_argument("--folder", type=Path, help="where the map is written, and kept; default: a temporary one")


def run(options: argparse.Namespace) -> Iterator[Verdict]:
    """Print a line for each number of workers, and one with a worker killed; yield the verdicts."""
    with map_folder(options.folder) as folder:
        files = in_own_process(Terrain.of(options.megapixels, options.kind).write, folder)
        print(TABLE.head(), flush=True)
        runs: dict[int, Watched] = {}
        for workers in options.workers:
            runs[workers] = _watched(files, workers, options)
            first = runs[options.workers[0]]
            print(_row(str(workers), runs[workers], first), flush=True)
            yield Verdict(f"{workers} workers: meshes that differ", float(_mesh(runs[workers]) != _mesh(first)), 0)
        most = max(runs)
        side = Terrain.of(options.megapixels).side
        kill = Kill(STAGE, max((-(-side // options.tile)) ** 2 // 2, 1))
        killed = _watched(files, most, options, kill)
        print(_row(f"{most}, one killed", killed, first), flush=True)
        print(f"process {killed.killed} was killed after {killed.killed_after:.1f} s")
        yield Verdict("one worker killed: meshes that differ", float(_mesh(killed) != _mesh(first)), 0)
        yield Verdict("one worker killed: workers started", len(killed.workers), least=most + 1)


def _watched(files: TerrainFiles, workers: int, options: argparse.Namespace, kill: Kill | None = None) -> Watched:
    """Reconstruct a map in a process of its own, and watch it and its workers."""
    work = files.map.with_suffix(".work")
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.scaling.workers", files.map, files.mask or "", files.camera or ""]
    command += [work, options.tile, options.compression, workers]
    found = watch([str(word) for word in command], files.map.with_suffix(".log"), work, kill)
    if found.status != 0:
        sys.exit(f"{workers} workers ended with status {found.status}:\n{found.output}")
    return found


def _mesh(found: Watched) -> str:
    """Return the hash that a run has printed."""
    return next(line.removeprefix(MARK) for line in found.output.splitlines() if line.startswith(MARK))


def _row(name: str, found: Watched, first: Watched) -> str:
    seconds = (found.seconds, found.cpu_seconds, first.seconds / found.seconds)
    return TABLE.row(name, *seconds, bytes_text(found.peak), len(found.workers), _mesh(found)[:12])


def main() -> None:
    """Reconstruct a map in tiles, and print a hash of the mesh."""
    source, mask, camera, work, tile, compression, workers = sys.argv[1:]
    surface = reconstruct_tiled(
        NormalMap.open(source, mask or None, camera or None),
        compression=float(compression),
        tiles=int(tile),
        workers=int(workers),
        work=work,
    )
    print(f"{MARK}{hash_of(surface.vertices, surface.faces)}")


if __name__ == "__main__":
    main()
