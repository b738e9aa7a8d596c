"""Figures of cost: seconds, memory, and the start of the command line."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scipy.fft import next_fast_len

from benchmarks import compilation
from benchmarks.scoreboard.figures import Better, Figure, Skipped
from benchmarks.solve import forget_peak, status_megabytes
from benchmarks.speed import side_of
from benchmarks.ways import Job, in_own_process, load_map, run_way, store_map, warm_up
from normalmesh import decimate, integrate, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion

#: Megapixels of foreground → rounds, of which the median counts.
ROUNDS = {1: 7, 4: 5}
#: Cosine transforms before and after each reconstruction.
TRANSFORMS = 3

#: Side of the map (px), and share of vertices saved.
LARGE_MAP = (2048, 0.99)
FEW_VERTICES, MANY_VERTICES = (1024, 0.95), (1024, 0.8)

WARM_STARTS = 3


def speed() -> Iterator[Figure | Skipped]:
    """Measure CPU seconds of a reconstruction to one percent over those of a solve by cosine transforms, one thread."""
    with tempfile.TemporaryDirectory() as folder:
        for megapixels, rounds in ROUNDS.items():
            place = Path(folder) / str(megapixels)
            # A side with small factors: the transform of a prime one takes several times as long.
            in_own_process(store_map, next_fast_len(side_of(megapixels)), place)
            ratios, wall, cpu = in_own_process(speed_rounds, place, rounds)
            noise = max(0.05, 2 * median(abs(ratio / median(ratios) - 1) for ratio in ratios))
            note = f"{min(ratios):.1f}–{max(ratios):.1f} in {rounds} rounds"
            yield Figure(f"CPU at {megapixels} MP", median(ratios), "× cosine transform", noise=noise, note=note)
            yield Figure(f"CPU seconds at {megapixels} MP", cpu, "s", Better.NEITHER, noise)
            yield Figure(f"wall seconds at {megapixels} MP", wall, "s", Better.NEITHER, noise)


def speed_rounds(folder: Path, rounds: int) -> tuple[list[float], float, float]:
    """Return the ratio of CPU seconds in each round, and the least wall and CPU seconds of a reconstruction.

    Other processes slow the reconstruction and the transforms right before and after it alike.
    """
    ours, transform = (Job(way, folder, 1, 0.99, 64.0) for way in ("mesh", "DCT, rectangle"))
    normal_map = load_map(folder).normal_map
    for job in (ours, transform):
        warm_up(job, 512)

    def seconds(job: Job) -> tuple[float, float]:
        clock = run_way(job, normal_map)[1]
        return clock.cpu_seconds["total"], clock.seconds["total"]

    ratios, taken = [], []
    for _ in range(rounds):
        reference = [seconds(transform)[0] for _ in range(TRANSFORMS)]
        taken.append(seconds(ours))
        reference += [seconds(transform)[0] for _ in range(TRANSFORMS)]
        ratios.append(taken[-1][0] / median(reference))
    cpu, wall = map(min, zip(*taken, strict=True))
    return ratios, wall, cpu


def memory() -> Iterator[Figure | Skipped]:
    """Measure peak bytes above the normal map: for each pixel, each further vertex, and each one of an integration."""
    if sys.platform != "linux":
        yield Skipped("peak memory is read from /proc, which Linux alone has")
        return
    large, few, many = (_peak(task) for task in (LARGE_MAP, FEW_VERTICES, MANY_VERTICES))
    note = f"{large.pixels / 1e6:.1f} MP, {1 - LARGE_MAP[1]:.0%} vertices"
    yield Figure("bytes a pixel", large.used / large.pixels, "B", noise=0.08, note=note)
    slope = (many.used - few.used) / (many.vertices - few.vertices)
    note = f"from {few.vertices} to {many.vertices} vertices"
    yield Figure("bytes a vertex", slope, "B", noise=0.03, note=note)
    few, many = (in_own_process(peak_of_integration, *task) for task in (FEW_VERTICES, MANY_VERTICES))
    slope = (many.used - few.used) / (many.vertices - few.vertices)
    yield Figure("bytes a vertex, integration", slope, "B", noise=0.05, note=note + ", with two copies of the mesh")


@dataclass(frozen=True)
class Peak:
    """Foreground pixels and vertices of a reconstruction, and the bytes that it used beside its normal map."""

    pixels: int
    vertices: int
    used: float


def _peak(given: tuple[int, float]) -> Peak:
    return in_own_process(peak_of_medallion, *given)


def peak_of_medallion(size: int, compression: float) -> Peak:
    """Reconstruct the medallion once the kernels are loaded."""
    for size_before, compression_before in ((64, 0.9), (320, 0.98)):
        reconstruct(Medallion(size_before).normal_map, compression=compression_before)
    normal_map = Medallion(size).normal_map
    before = forget_peak()
    surface = reconstruct(normal_map, compression=compression)
    used = (status_megabytes("VmHWM") - before) * 2**20
    return Peak(normal_map.foreground, len(surface.vertices), used)


def peak_of_integration(size: int, compression: float) -> Peak:
    """Integrate the decimated medallion once the kernels are loaded."""
    for size_before, compression_before in ((64, 0.9), (320, 0.98)):
        reconstruct(Medallion(size_before).normal_map, compression=compression_before)
    normal_map = Medallion(size).normal_map
    mesh = decimate(normal_map, compression=compression)
    # Memory that the decimation has freed is given back first.
    ctypes.CDLL(None).malloc_trim(0)
    before = forget_peak()
    surface = integrate(mesh, normal_map)
    used = (status_megabytes("VmHWM") - before) * 2**20
    return Peak(normal_map.foreground, len(surface.vertices), used)


def start() -> Iterator[Figure | Skipped]:
    """Time ``normalmesh reconstruct`` on a map of 512² pixels: with no kernel compiled, and with all cached."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compilation.write_medallion(folder / "medallion.png", 512)
        first = compilation.run(folder)
        warm = [compilation.run(folder) for _ in range(WARM_STARTS)]
    note = f"{sum(first['signatures'].values())} signatures compiled"
    yield Figure("first run, CPU", first["cpu"], "s", noise=0.1, note=note)
    yield Figure("warm start, CPU", min(run["cpu"] for run in warm), "s", noise=0.15)
    yield Figure("warm start, wall", min(run["wall"] for run in warm), "s", Better.NEITHER, 0.1)
