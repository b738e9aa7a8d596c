"""Seconds of each stage and peak memory of a reconstruction at 1 % vertices, for growing maps."""

from __future__ import annotations

import argparse
import multiprocessing

from benchmarks.solve import forget_peak, status_megabytes
from normalmesh import reconstruct
from normalmesh.evaluation.medallion import Medallion


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[512, 1180, 2048], help="pixels on a side")
    sizes = parser.parse_args().sizes
    print(f"{'pixels':>9} {'decimate':>9} {'s/MP':>6} {'solve':>7} {'refine':>7} {'bytes/px':>9}   decimation")
    # A process of its own for each size: peak memory never falls within a process.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for line in pool.imap(measure, sizes):
            print(line, flush=True)


def measure(size: int) -> str:
    """One line of the table."""
    reconstruct(Medallion(64).normal_map, compression=0.9)
    normal_map = Medallion(size).normal_map
    before = forget_peak()
    surface = reconstruct(normal_map, compression=0.99)
    used = (status_megabytes("VmHWM") - before) * 2**20 / normal_map.foreground
    assert surface.decimation is not None
    assert surface.integration is not None
    stages = surface.decimation.seconds
    decimation = sum(stages.values())
    integration = surface.integration.seconds
    megapixels = normal_map.foreground / 1e6
    return (
        f"{normal_map.foreground:9} {decimation:7.2f} s {decimation / megapixels:6.2f} {integration['solve']:5.2f} s "
        f"{integration['refine']:5.2f} s {used:9.0f}   "
        + ", ".join(f"{name} {seconds:.2f}" for name, seconds in stages.items())
    )


if __name__ == "__main__":
    main()
