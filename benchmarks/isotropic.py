"""Compare isotropic remeshing with decimation at equal numbers of vertices: errors, then seconds and memory by size.

Both meshes are integrated with facets without refinement, and as in the paper.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time

from benchmarks.cases import Case, case_names, load, measure
from benchmarks.solve import forget_peak, status_megabytes
from normalmesh import decimate, integrate, remesh_isotropic
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.paper.tables import geometric_mean
from normalmesh.reconstruction.presets import PRESETS

NAMES = ("relief_igea512", "relief_bunny512", "terrain_corsica_1024x1024", "terrain_sthelens_327x466")
TAGS = ("c0.25", "c1", "c4")
INTEGRATIONS = {"facets": {"refine": 0, "discontinuities": False}, "paper": vars(PRESETS["paper"].integration)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=NAMES, help="names; default: reliefs and terrain")
    parser.add_argument("--tags", nargs="*", default=TAGS, help="vertex targets in percent of the foreground")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1180, 2360], help="sides in pixels for the seconds")
    options = parser.parse_args()
    remesh_isotropic(Medallion(64).normal_map, vertices=200)
    decimate(Medallion(64).normal_map, vertices=200)
    if case_names():
        errors([load(name) for name in options.cases], options.tags)
    else:
        print("the shared cases are not on this machine")
    speed(options.sizes)


def errors(cases: list[Case], tags: list[str]) -> None:
    """Print MAE and RMSE of isotropic meshes as ratios to decimated ones with the same number of vertices."""
    titles = " ".join(f"{f'MAE {name}':>11} {f'RMSE {name}':>11}" for name in INTEGRATIONS)
    print(f"{'case':26} {'target':6} {'vertices':>8} {'error':>7} {titles} {'isotropic':>10} {'decimate':>9}")
    rows = []
    for case in cases:
        for tag in tags:
            began = time.perf_counter()
            isotropic = remesh_isotropic(case.normal_map, vertices=int(case.reference[tag]["vertices"]))
            done = time.perf_counter()
            aligned = decimate(case.normal_map, vertices=len(isotropic.vertices))
            seconds = done - began, time.perf_counter() - done
            assert isotropic.check().ok
            row = []
            for settings in INTEGRATIONS.values():
                ours, theirs = (
                    measure(integrate(mesh, case.normal_map, **settings), case, tag) for mesh in (isotropic, aligned)
                )
                row += [ours.mae / theirs.mae, ours.rmse / theirs.rmse]
            rows.append(row)
            print(
                f"{case.name:26} {tag:6} {len(isotropic.vertices):8} {isotropic.report.error:7.3f} "
                + " ".join(f"{ratio:11.3f}" for ratio in row)
                + f" {seconds[0]:8.1f} s {seconds[1]:7.1f} s",
                flush=True,
            )
    means = " ".join(f"{geometric_mean([row[k] for row in rows]):11.3f}" for k in range(len(rows[0])))
    least = " ".join(f"{min(row[k] for row in rows):11.3f}" for k in range(len(rows[0])))
    print(f"{'geometric mean':50} {means}\n{'least':50} {least}")


def speed(sizes: list[int]) -> None:
    """Print seconds and memory on the medallion, for a given error, and for 1 % vertices, found by search."""
    print(f"\n{'pixels':>9} {'vertices':>8} {'meshes':>6} {'seconds':>9} {'bytes/px':>9}   stages")
    # Each size has its own process, because the peak memory of a process never decreases.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        jobs = [(size, options) for size in sizes for options in ({"error": 1.0}, {"vertices": size * size // 140})]
        for line in pool.imap(measure_speed, jobs):
            print(line, flush=True)


def measure_speed(job: tuple[int, dict]) -> str:
    """Return one line of the table of speed."""
    size, options = job
    remesh_isotropic(Medallion(64).normal_map, vertices=200)
    normal_map = Medallion(size).normal_map
    before = forget_peak()
    began = time.perf_counter()
    mesh = remesh_isotropic(normal_map, **options)
    seconds = time.perf_counter() - began
    used = (status_megabytes("VmHWM") - before) * 2**20 / normal_map.foreground
    return (
        f"{normal_map.foreground:9} {len(mesh.vertices):8} {mesh.report.meshes:6} {seconds:7.1f} s {used:9.0f}   "
        + ", ".join(f"{name} {part:.1f}" for name, part in mesh.report.seconds.items())
    )


if __name__ == "__main__":
    main()
