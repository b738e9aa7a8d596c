"""Show how reconstructions scale: with threads, in tiles, to a gigapixel, and with worker processes.

The map is a terrain with known heights, made in windows, so that no size is too large: hills, ridges and waves down to
40 px. ``threads`` measures `reconstruct` on 1, 2, 4, … threads beside `integrate_pixels`; ``tiled`` compares
`reconstruct_tiled` with `reconstruct`; ``gigapixel`` runs the command line on one huge TIFF; ``workers`` compares the
meshes of 1, 2 and 4 processes, and after one was killed; ``terrain`` only writes a map. Each line has its own process.
Try them at ``--megapixels 0.5 --tile 256`` first. The exit status is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.scaling import gigapixel, threads, tiled, workers
from benchmarks.scaling.table import Verdict
from benchmarks.scaling.terrain import KINDS, Terrain

COMMANDS = {"threads": threads, "tiled": tiled, "gigapixel": gigapixel, "workers": workers}


def main() -> int:
    options = _options()
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    if options.command == "terrain":
        return _write_terrain(options)
    verdicts: Iterator[Verdict] = COMMANDS[options.command].run(options)
    found = list(verdicts)
    print("", *found, sep="\n")
    return int(not all(verdict.is_met for verdict in found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    for name, module in COMMANDS.items():
        module.add_options(commands.add_parser(name, help=(module.__doc__ or "").split(": ", 1)[1]))
    terrain = commands.add_parser("terrain", help="write a terrain, and print how long it took")
    terrain.add_argument("folder", type=Path)
    terrain.add_argument("--megapixels", type=float, default=16.0)
    terrain.add_argument("--kind", choices=KINDS, default=KINDS[0])
    for kind in KINDS[1:]:
        terrain.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=f"--kind {kind}")
    return parser.parse_args(sys.argv[1:] or ["threads"])


def _write_terrain(options: argparse.Namespace) -> int:
    start, cpu = time.perf_counter(), time.process_time()
    files = Terrain.of(options.megapixels, options.kind).write(options.folder)
    print(f"{time.perf_counter() - start:.1f} s wall, {time.process_time() - cpu:.1f} s CPU")
    print("normalmesh reconstruct", files.map, *files.options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
