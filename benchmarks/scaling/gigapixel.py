"""``gigapixel``: the command line on one huge map: time, memory of all processes, disk, and errors."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.scaling.errors import Errors, errors_of, read_surface
from benchmarks.scaling.processes import Watched, watch
from benchmarks.scaling.table import Verdict
from benchmarks.scaling.terrain import KINDS, Terrain
from benchmarks.ways import in_own_process
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.threads import MAX_THREADS

#: Limits for a gigapixel on two cores: bytes of all processes, and seconds.
BYTES, SECONDS = 8e9, 3600.0
#: Lines of the output that are shown if the command fails.
SHOWN = 30


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megapixels", type=float, default=1000.0)
    parser.add_argument("--tile", type=int, default=4096, help="side in pixels, a multiple of 128")
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / pixels")
    parser.add_argument("--workers", type=int, help="processes; default: as the command chooses")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    for kind in KINDS[1:]:
        parser.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=f"--kind {kind}")
    parser.add_argument("--verbose", action="store_true", help="print the seconds by stage")
    parser.add_argument("--resume", action="store_true", help="go on from the work of a run that was interrupted")
    parser.add_argument("--folder", type=Path, default=Path("results/scale"), help="for map and mesh, which are kept")


def run(options: argparse.Namespace) -> Iterator[Verdict]:
    """Write the map unless it is there, run the command, print its figures, and yield the verdicts."""
    terrain = Terrain.of(options.megapixels, options.kind)
    start = time.perf_counter()
    files = in_own_process(terrain.write, options.folder)
    print(
        f"{files.map}: {terrain.side}² px, {bytes_text(files.map.stat().st_size)}, {time.perf_counter() - start:.0f} s"
    )
    mesh = files.map.with_suffix(".ply")
    work = mesh.with_name(mesh.name + ".work")
    if work.exists() and not options.resume:
        shutil.rmtree(work)
    command = reconstruct_command(files.map, mesh, options.tile, options.compression, options.workers)
    command += [*files.options, *(["--verbose"] if options.verbose else [])]
    print(" ".join(["normalmesh", *command[3:]]), flush=True)
    found = watch(command, mesh.with_suffix(".log"), work)
    print(found.output if found.status == 0 else "\n".join(found.output.splitlines()[-SHOWN:]))
    print(summary(found), flush=True)
    if found.status != 0:
        sys.exit(f"the command ended with status {found.status}")
    errors = in_own_process(file_errors, mesh, terrain, options.tile, threads=MAX_THREADS)
    print(
        f"{errors.vertices} vertices, MAE {errors.mae:.4g}°, RMSE {errors.rmse:.4g} px, near seams ÷ elsewhere "
        f"{errors.seam_mae:.3f} and {errors.seam_rmse:.3f}, {errors.uncovered:.2e} of the foreground not covered"
    )
    yield Verdict("memory of all processes in GB", found.peak / 1e9, BYTES / 1e9)
    yield Verdict("wall seconds", found.seconds, SECONDS)
    yield Verdict("MAE near seams ÷ elsewhere", errors.seam_mae, 1.02)


def reconstruct_command(
    source: Path, mesh: Path, tile: int, compression: float, workers: int | None = None
) -> list[str]:
    """Return the command that reconstructs a map in tiles."""
    command = [sys.executable, "-m", "normalmesh", "reconstruct", str(source), "--tiles", "--tile-size", str(tile)]
    command += ["--compression", f"{compression:g}", "-o", str(mesh)]
    return command if workers is None else [*command, "--workers", str(workers)]


def summary(found: Watched) -> str:
    """Return the figures of a command as text."""
    return (
        f"{found.seconds:.1f} s wall, {found.cpu_seconds:.1f} s CPU; memory {bytes_text(found.peak)} in all after "
        f"{found.peak_after:.0f} s, largest process {bytes_text(found.largest)}; work folder "
        f"{bytes_text(found.folder_peak)}; {len(found.workers)} worker processes"
    )


def file_errors(mesh: Path, terrain: Terrain, tile: int) -> Errors:
    """Return the errors of a mesh file."""
    return errors_of(read_surface(mesh, terrain), terrain, tile)
