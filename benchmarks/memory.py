"""Measure the peak memory and the seconds of reconstructions, and compare them with the estimates.

Memory is what is used in addition to the normal map; seconds are those of the processor, on one thread. The constants
of ``normalmesh.reconstruction.estimates``, and of the modules that it names, are derived from it: an estimate should be
between the measurement and 1.5 times as much. ``--markdown`` prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import multiprocessing
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.solve import forget_peak, status_megabytes
from normalmesh import NormalMap, add_noise, integrate_pixels, reconstruct, reconstruct_levels, reconstruct_within
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.integration.pixel_integration import IMAGE_BYTES, RECTANGLE_BYTES
from normalmesh.normals.noise import NEGLIGIBLE, component_noise
from normalmesh.reconstruction.estimates import Estimate

Mask = NDArray[np.bool_]

#: Shapes of masks by name: functions of columns, rows and the side of the image.
SHAPES: dict[str, Callable[[Any, Any, int], Any]] = {
    "comb, teeth of 1 px": lambda u, v, side: (u % 2 == 0) | (v == 0),
    "stripes of 3 px": lambda u, v, side: u % 4 < 3,
    "stripes of 12 px": lambda u, v, side: u % 16 < 12,
    "grid of 2 px": lambda u, v, side: (u % 16 < 2) | (v % 16 < 2),
    "5 % of pixels missing": lambda u, v, side: np.random.default_rng(0).random((side, side)) > 0.05,
    "20 % of pixels missing": lambda u, v, side: np.random.default_rng(0).random((side, side)) > 0.2,
    "squares of 5 px": lambda u, v, side: (u % 8 < 5) & (v % 8 < 5),
    "squares of 20 px": lambda u, v, side: (u % 24 < 20) & (v % 24 < 20),
    "dots far apart": lambda u, v, side: (u % 64 < 6) & (v % 64 < 6),
    "spiral of 4 px": lambda u, v, side: _spiral(u - side / 2, v - side / 2) & (np.hypot(u, v) < 2 * side),
}


def _spiral(x: Any, y: Any) -> Any:
    return (np.hypot(x, y) / 8 - np.arctan2(y, x) / (2 * np.pi)) % 1 < 0.5


@dataclass(frozen=True)
class Task:
    """A reconstruction: a kind of map, a stopping rule with options, and a factor of the side of the image."""

    kind: str
    rule: dict[str, Any]
    scale: float = 1.0


TASKS = [
    Task("medallion", {"compression": 0.997}, 2.0),
    Task("medallion", {"compression": 0.99}, 2.0),
    Task("medallion", {"compression": 0.95}, 1.5),
    Task("medallion", {"compression": 0.8}),
    Task("medallion in a large image", {"compression": 0.98}, 2.0),
    Task("plane", {"compression": 0.98}, 1.5),
    Task("waves", {"compression": 0.98}, 1.5),
    Task("noise of 5°", {"compression": 0.98}, 1.5),
    Task("balls that occlude each other", {"compression": 0.98}, 1.5),
    Task("balls that occlude each other", {"compression": 0.999}, 1.5),
    *(Task(kind, {"compression": 0.98}) for kind in SHAPES),
    Task("medallion", {"threshold": 1.0}, 1.5),
    Task("medallion", {"threshold": 0.01}),
    Task("comb, teeth of 1 px", {"threshold": 1.0}),
    Task("white noise", {"threshold": 1.0}),
    Task("white noise", {"threshold": 1e-4}, 0.7),
    Task("medallion", {"max_error": 0.02}),
    Task("medallion", {"max_angle": 1.0}),
    Task("medallion", {"levels": [0.1, 0.02, 0.005]}),
    Task("waves", {"compression": 0.98, "preset": "paper"}),
    Task("waves", {"pixels": True}, 1.5),
    Task("5 % of pixels missing", {"pixels": True}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000, help="side of the smallest images in pixels")
    parser.add_argument("--only", default="", help="measure only kinds or rules that contain this text")
    parser.add_argument("--markdown", action="store_true", help="print a table in Markdown")
    arguments = parser.parse_args()
    chosen = [(task, arguments.size) for task in TASKS if arguments.only in f"{task.kind} {task.rule}"]
    row = "| {} |".format if arguments.markdown else "{}".format
    between = " | " if arguments.markdown else "  "
    print(row(between.join(["input".ljust(30), "rule".ljust(20), *HEADINGS])))
    if arguments.markdown:
        print("|---" * (2 + len(HEADINGS)) + "|")
    # Each line has its own process, because the peak memory of a process never decreases.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for measured in pool.imap(measure, chosen):
            print(row(between.join(measured.columns())), flush=True)


HEADINGS = ("    MP", "vertices", "estimated", "    used", "ratio", "estimated", "  used", "ratio")


@dataclass(frozen=True)
class Measured:
    """Estimated and used bytes and seconds of a task."""

    task: Task
    pixels: int
    vertices: int
    estimated: tuple[float, float]
    used: tuple[float, float]

    def columns(self) -> list[str]:
        """Return the cells of the table."""
        bytes_ratio, seconds_ratio = (one / other for one, other in zip(self.estimated, self.used, strict=True))
        rule = ", ".join(f"{name} {value}" for name, value in self.task.rule.items())
        return [
            f"{self.task.kind:30}",
            f"{rule:20}",
            f"{self.pixels / 1e6:6.2f}",
            f"{self.vertices:8}",
            f"{self.estimated[0] / 1e6:6.0f} MB",
            f"{self.used[0] / 1e6:5.0f} MB",
            f"{bytes_ratio:5.2f}",
            f"{self.estimated[1]:7.1f} s",
            f"{self.used[1]:4.1f} s",
            f"{seconds_ratio:5.2f}",
        ]


def measure(given: tuple[Task, int]) -> Measured:
    """Reconstruct a map, and measure its memory and time beside its estimates."""
    task, size = given
    warnings.simplefilter("ignore")
    # Kernels are loaded first.
    for kind in ("balls that occlude each other", "noise of 5°", task.kind):
        run(normal_map_of(kind, 320), {"compression": 0.98})
    run(normal_map_of("medallion", 320), {"threshold": 1.0})
    normal_map = normal_map_of(task.kind, round(task.scale * size))
    estimated = estimate(normal_map, task.rule)
    ctypes.CDLL(None).malloc_trim(0)
    before, began = forget_peak(), time.process_time()
    vertices = run(normal_map, task.rule)
    seconds = time.process_time() - began
    used = (status_megabytes("VmHWM") - before) * 2**20
    return Measured(task, normal_map.foreground, vertices, estimated, (used, seconds))


def run(normal_map: NormalMap, rule: dict[str, Any]) -> int:
    """Reconstruct on one thread, and return the number of vertices."""
    options: dict[str, Any] = {"threads": 1, "memory_limit": math.inf}
    if "pixels" in rule:
        return int(np.isfinite(integrate_pixels(normal_map, memory_limit=math.inf)).sum())
    if "levels" in rule:
        return len(reconstruct_levels(normal_map, levels(normal_map, rule), **options)[0].vertices)
    if "max_error" in rule or "max_angle" in rule:
        return len(reconstruct_within(normal_map, **rule, **options).vertices)
    return len(reconstruct(normal_map, **rule, **options).vertices)


def estimate(normal_map: NormalMap, rule: dict[str, Any]) -> tuple[float, float]:
    """Return the estimated bytes and seconds; there is no estimate of the seconds on the pixel grid."""
    counts = MaskCounts.of(normal_map.mask)
    if "pixels" in rule:
        rectangle = math.prod(normal_map.rectangle()[2:])
        return RECTANGLE_BYTES * rectangle + IMAGE_BYTES * normal_map.mask.size, math.nan
    if "levels" in rule:
        found = Estimate.levels(counts, levels(normal_map, rule))
    elif "max_error" in rule or "max_angle" in rule:
        found = Estimate.within(counts, "max_error" in rule)
    else:
        is_paper = rule.get("preset") == "paper"
        stopping = StoppingRule(**{name: value for name, value in rule.items() if name != "preset"})
        found = Estimate.of(counts, stopping, "pixels" if is_paper else "adaptive", not is_paper)
    smooths = component_noise(normal_map).largest.degrees >= NEGLIGIBLE
    return replace(found, smooths=smooths).memory, found.seconds


def levels(normal_map: NormalMap, rule: dict[str, Any]) -> list[int]:
    """Return the vertices of levels of detail."""
    return [round(share * normal_map.foreground) for share in rule["levels"]]


def normal_map_of(kind: str, side: int) -> NormalMap:
    """Return the normal map of a kind."""
    if kind == "medallion":
        return Medallion(side).normal_map
    if kind == "medallion in a large image":
        return padded(Medallion(side // 2).normal_map, 4)
    if kind == "plane":
        return NormalMap(waves(side, 0.0))
    if kind == "balls that occlude each other":
        return NormalMap(balls(side))
    if kind in SHAPES:
        v, u = np.mgrid[:side, :side]
        return NormalMap(waves(side), SHAPES[kind](u, v, side))
    smooth = NormalMap(waves(side))
    return smooth if kind == "waves" else add_noise(smooth, {"noise of 5°": 5.0, "white noise": 40.0}[kind])


def padded(normal_map: NormalMap, times: int) -> NormalMap:
    """Return the map with background above it, such that the image has ``times`` as many rows."""
    above = ((normal_map.shape[0] * (times - 1), 0), (0, 0))
    return NormalMap(np.pad(normal_map.normals, (*above, (0, 0))), np.pad(normal_map.mask, above), normal_map.camera)


def waves(side: int, slope: float = 0.5, period: float = 80.0) -> NDArray[np.float32]:
    """Return the normals (H, W, 3) of a product of two sines."""
    v, u = 2 * np.pi / period * (np.mgrid[:side, :side] + 0.5)
    gradient = slope * np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.cos(v)], axis=-1)
    normals = np.concatenate([gradient * (-1, 1), np.ones((side, side, 1))], axis=-1)
    return (normals / np.linalg.norm(normals, axis=-1, keepdims=True)).astype(np.float32)


def balls(side: int, count: int = 60) -> NDArray[np.float32]:
    """Return the normals (H, W, 3) of balls, without their rims, at different depths in front of a plane."""
    rng = np.random.default_rng(0)
    v, u = np.mgrid[:side, :side] + 0.5
    height, normals = np.zeros((side, side)), np.zeros((side, side, 3), np.float32)
    normals[..., 2] = 1
    for _ in range(count):
        (x, y), radius = rng.random(2) * side, (0.03 + 0.06 * rng.random()) * side
        right, up = (u - x) / radius, (y - v) / radius
        towards = np.sqrt(np.maximum(1 - right**2 - up**2, 0))
        top = 0.3 * side * rng.random() + radius * towards
        front = (towards > 0.4) & (top > height)
        height[front] = top[front]
        normals[front] = np.stack([right, up, towards], axis=-1)[front]
    return normals


if __name__ == "__main__":
    main()
