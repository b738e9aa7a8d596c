"""Measure the CPU seconds of the first ``normalmesh reconstruct``, which compiles kernels, and of one that loads them.

Run as ``python -m benchmarks.compilation [--size N]``. Each run is a separate process with one thread; both share a
temporary cache folder. The own seconds of a kernel exclude those of the kernels that are compiled on its behalf.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher

from normalmesh.cli.reconstruct import reconstruct


class CompilationTimes(event.Listener):
    """CPU seconds that Numba takes to compile each kernel, without and with the kernels compiled on its behalf."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.signatures: Counter[str] = Counter()
        self.parallel: set[str] = set()
        self._open: list[list[float]] = []

    def on_start(self, event: event.Event) -> None:
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: event.Event) -> None:
        start, inner = self._open.pop()
        seconds = time.process_time() - start
        if self._open:
            self._open[-1][1] += seconds
        dispatcher = event.data["dispatcher"]
        name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        self.own[name] += seconds - inner
        self.total[name] += seconds
        self.signatures[name] += 1
        if dispatcher.targetoptions.get("parallel"):
            self.parallel.add(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=512, help="side of the medallion in pixels")
    parser.add_argument("--measure", nargs=2, type=Path, metavar=("MAP", "RESULT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*arguments.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_medallion(Path(folder, "medallion.png"), arguments.size)
        first, warm = (run(Path(folder)) for _ in range(2))
    print(f"{arguments.size}² medallion       CPU      wall  kernels compiled  signatures  loaded")
    for name, result in (("first run", first), ("warm start", warm)):
        kernels, signatures = len(result["own"]), sum(result["signatures"].values())
        print(
            f"{name:14} {result['cpu']:8.2f} s {result['wall']:6.2f} s {kernels:17} {signatures:11} "
            f"{result['loaded']:7}"
        )
    print_slowest(first)


def write_medallion(path: Path, size: int) -> None:
    """Write the normals of the medallion as an 8-bit PNG with its mask as alpha channel."""
    # Imported here because the measured runs do not need it.
    from normalmesh.evaluation.synthetic.medallion import Medallion

    normal_map = Medallion(size).normal_map
    colours = np.rint(127.5 * (normal_map.normals + 1)).astype(np.uint8)
    alpha = np.where(normal_map.mask, 255, 0).astype(np.uint8)
    path.write_bytes(imagecodecs.png_encode(np.dstack([colours, alpha])))


def run(folder: Path) -> dict[str, Any]:
    """Run :func:`measure` in a new process with its cache below ``folder``, and return its result and wall seconds."""
    result = folder / "result.json"
    command = [sys.executable, "-m", __spec__.name, "--measure", str(folder / "medallion.png"), str(result)]
    settings = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(folder / "cache")}
    # As after an installation, the bytecode cache of Python exists from the second run.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | settings
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
    return {**json.loads(result.read_text()), "wall": time.perf_counter() - start}


def measure(path: Path, result: Path) -> None:
    """Reconstruct a map as the command line does, and write seconds and numbers of kernels as JSON."""
    times = CompilationTimes()
    event.register("numba:compile", times)
    reconstruct([str(path), "--output", str(path.with_suffix(".glb"))], standalone_mode=False)
    # Count each kernel once, even if several modules import it.
    kernels = {
        kernel
        for name, module in list(sys.modules.items())
        if name.startswith("normalmesh")
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher)
    }
    counts = {
        "cpu": time.process_time(),
        "own": times.own,
        "total": times.total,
        "signatures": times.signatures,
        "parallel": sorted(times.parallel),
        "loaded": sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels),
    }
    result.write_text(json.dumps(counts))


def print_slowest(result: dict[str, Any]) -> None:
    """Print the ten kernels with the largest own seconds, and our kernels that were compiled for several signatures."""
    print("\nown CPU   with callees  signatures  kernel")
    for name, seconds in Counter(result["own"]).most_common(10):
        note = ", parallel" if name in result["parallel"] else ""
        print(f"{seconds:5.2f} s {result['total'][name]:11.2f} s {result['signatures'][name]:11}  {name}{note}")
    repeated = [
        f"{name.removeprefix('normalmesh.')} {count}"
        for name, count in result["signatures"].items()
        if count > 1 and name.startswith("normalmesh")
    ]
    print(f"\n{len(repeated)} kernels compiled more than once: {', '.join(sorted(repeated))}")


if __name__ == "__main__":
    main()
