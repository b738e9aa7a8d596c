"""Methods to reconstruct a surface from a normal map, each measured in its own process, for benchmarks.speed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.linalg import LinearOperator, cg

from benchmarks.solve import forget_peak, status_megabytes
from normalmesh import NormalMap, Orthographic, Surface, evaluate, integrate_pixels, reconstruct
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.evaluation.synthetic.relief_case import exact_case
from normalmesh.runtime.monitor import Monitor

Float = NDArray[np.float64]

#: Column of the table → stages in the reports of decimation and integration.
STAGES = {
    "meshing": ("start",),
    "decimation": ("collapse",),
    "alignment": ("evaluate", "flip", "move"),
    "integration": ("noise", "solve", "refine"),
}


@dataclass(frozen=True)
class Job:
    """A measurement to do.

    Attributes
    ----------
    way
        Name in :data:`WAYS`.
    folder
        Folder of the map, written by :func:`store_map`.
    threads
        Number of threads of Numba, BLAS and Fourier transforms.
    compression, threshold
        Stopping rule of the decimation, for the methods that use it.
    """

    way: str
    folder: Path
    threads: int
    compression: float
    threshold: float


@dataclass(frozen=True)
class Measured:
    """Time, memory and errors of a method.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall and processor seconds by stage of :data:`STAGES`; ``total`` includes the time between the stages.
    bytes_per_pixel
        Peak memory of the process in addition to that with the map loaded, per foreground pixel.
    mae, rmse
        Errors in degrees and pixels. The evaluation itself takes 120 bytes per pixel, after the peak was read.
    """

    job: Job
    foreground: int
    vertices: int
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    bytes_per_pixel: float
    mae: float
    rmse: float


def store_map(size: int, folder: Path) -> None:
    """Write the medallion of size × size pixels, which is faster to read than to compute."""
    case = Medallion(size).seen_by()
    folder.mkdir(parents=True)
    np.save(folder / "normals.npy", case.normals)
    np.save(folder / "depth.npy", case.depth)


def in_own_process(function: Callable[..., Any], *arguments: object, threads: int = 1) -> Any:
    """Call a function in a new process with the given number of threads, and return its result."""
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
    finally:
        # Commands that are run later have all cores again.
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def warm_up(job: Job, size: int) -> None:
    """Compile or load the kernels of a method, on a map of size × size pixels."""
    WAYS[job.way](Medallion(size).normal_map, job, Monitor(stages=STAGES))


def measure(job: Job) -> Measured:
    """Measure seconds, memory and errors of a method, without compilation."""
    warm_up(job, 128)
    case = load_map(job.folder)
    normal_map = case.normal_map
    before = forget_peak()
    result, clock = run_way(job, normal_map)
    used = (status_megabytes("VmHWM") - before) * 2**20 / normal_map.foreground
    found = evaluate(result, case)
    return Measured(
        job,
        normal_map.foreground,
        found.vertices,
        clock.seconds,
        clock.cpu_seconds,
        used,
        found.mae,
        found.rmse,
    )


def run_way(job: Job, normal_map: NormalMap) -> tuple[Surface | Float, Monitor]:
    """Run a method, and return its result and the seconds of its stages and in total."""
    clock = Monitor(stages=(*STAGES, "total"))
    with clock.stage("total"):
        return WAYS[job.way](normal_map, job, clock), clock


def load_map(folder: Path) -> Case:
    """Read the medallion written by :func:`store_map`."""
    return exact_case("medallion", np.load(folder / "depth.npy"), np.load(folder / "normals.npy"), Orthographic())


def mesh_way(normal_map: NormalMap, clock: Monitor, **stop: float) -> Surface:
    """Run our reconstruction: decimate, integrate and refine."""
    surface = reconstruct(normal_map, **stop)
    for report in (surface.decimation, surface.integration):
        for stage, parts in STAGES.items():
            clock.seconds[stage] += sum(report.seconds.get(part, 0.0) for part in parts)
            clock.cpu_seconds[stage] += sum(report.cpu_seconds.get(part, 0.0) for part in parts)
    return surface


def pixel_way(normal_map: NormalMap, clock: Monitor) -> Float:
    """Integrate on the pixel grid, and return heights (H, W)."""
    with clock.stage("integration"):
        return integrate_pixels(normal_map)


def classical_way(normal_map: NormalMap, job: Job, clock: Monitor) -> Surface:
    """Integrate all pixels, then decimate the surface by its own quadrics, with the package fast-simplification."""
    from fast_simplification import simplify

    heights = pixel_way(normal_map, clock)
    with clock.stage("meshing"):
        points, faces = _pixel_mesh(heights)
        del heights
    target = max(round((1 - job.compression) * normal_map.foreground), 3)
    with clock.stage("decimation"):
        # The package takes a number of faces. A mesh has two per vertex, less one per boundary vertex: continue from
        # the small mesh until the number of vertices fits.
        count = 2 * target
        while len(points) > target:
            points, faces = simplify(points, faces, target_count=count)
            count = len(faces) - 2 * (len(points) - target)
    return Surface(points, faces, points[:, :2] * [1, -1], normal_map.camera, normal_map.shape)


def _pixel_mesh(heights: Float) -> tuple[Float, NDArray[np.int32]]:
    """Return a vertex (N, 3) at each pixel centre, and two faces (M, 3) for each 2×2 foreground pixels."""
    mask = np.isfinite(heights)
    rows, columns = np.nonzero(mask)
    points = np.stack([columns + 0.5, -rows - 0.5, heights[mask]], axis=1)
    number = np.cumsum(mask, dtype=np.int32).reshape(mask.shape) - 1
    whole = mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:] & mask[1:, 1:]
    corners = [part[whole] for part in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:])]
    return points, np.stack([corners[k] for k in (0, 1, 2, 0, 2, 3)], axis=1).reshape(-1, 3)


def cosine_way(normal_map: NormalMap, job: Job, clock: Monitor) -> Float:
    """Solve Poisson's equation on the rectangle by cosine transforms; normals outside the mask face the viewer."""
    with clock.stage("integration"):
        right, down = _steps(normal_map)
        spectrum = fft.dctn(_divergence(right, down), overwrite_x=True, workers=job.threads)
        rows, columns = (2 - 2 * np.cos(np.pi * np.arange(size) / size) for size in normal_map.shape)
        eigenvalues = rows[:, None] + columns
        eigenvalues[0, 0] = 1
        spectrum /= eigenvalues
        heights = fft.idctn(spectrum, overwrite_x=True, workers=job.threads)
        heights[~normal_map.mask] = np.nan
        return heights


def jacobi_way(normal_map: NormalMap, clock: Monitor) -> Float:
    """Solve the equations of our pixel integration with scipy's conjugate gradients and a Jacobi preconditioner."""
    with clock.stage("integration"):
        right, down = _steps(normal_map)
        mask, squares = normal_map.mask, normal_map.normals[..., 2].astype(np.float64) ** 2
        weight_right = (mask[:, 1:] & mask[:, :-1]) * (squares[:, 1:] + squares[:, :-1]) / 2
        weight_down = (mask[1:] & mask[:-1]) * (squares[1:] + squares[:-1]) / 2
        matrix = _laplacian(mask, weight_right, weight_down)
        b = _divergence(weight_right * right, weight_down * down)[mask]
        diagonal = matrix.diagonal()
        inverse = LinearOperator(matrix.shape, lambda rest: rest / np.where(diagonal > 0, diagonal, 1), dtype=float)
        heights = np.full(mask.shape, np.nan)
        heights[mask], _ = cg(matrix, b, rtol=1e-8, atol=0, M=inverse, maxiter=20_000)
        return heights


def _steps(normal_map: NormalMap) -> tuple[Float, Float]:
    """Return the height differences to the next pixel on the right (H, W − 1) and below (H − 1, W), in pixels."""
    x, y, z = np.moveaxis(normal_map.normals.astype(np.float64), -1, 0)
    z = np.where(normal_map.mask, z, 1.0)
    right, down = -x / z, y / z
    return (right[:, 1:] + right[:, :-1]) / 2, (down[1:] + down[:-1]) / 2


def _divergence(right: Float, down: Float) -> Float:
    """Return the right-hand side (H, W) of the normal equations."""
    b = np.zeros((len(right), down.shape[1]))
    b[:, :-1] -= right
    b[:, 1:] += right
    b[:-1] -= down
    b[1:] += down
    return b


def _laplacian(mask: NDArray[np.bool_], weight_right: Float, weight_down: Float) -> csr_matrix:
    """Return the Laplacian (N, N) of the foreground pixels."""
    number = np.cumsum(mask).reshape(mask.shape) - 1
    pairs = [
        (number[:, :-1], number[:, 1:], weight_right, mask[:, :-1] & mask[:, 1:]),
        (number[:-1], number[1:], weight_down, mask[:-1] & mask[1:]),
    ]
    p, q, weights = (np.concatenate([part[k][part[3]] for part in pairs]) for k in range(3))
    shape = (int(mask.sum()),) * 2
    adjacency = coo_matrix((np.tile(weights, 2), (np.concatenate([p, q]), np.concatenate([q, p]))), shape).tocsr()
    return (diags(np.asarray(adjacency.sum(axis=1)).ravel()) - adjacency).tocsr()


#: Name in the table → function of a map, a job and a clock that returns a surface or heights (H, W).
WAYS: dict[str, Callable[[NormalMap, Job, Monitor], Surface | Float]] = {
    "mesh": lambda normal_map, job, clock: mesh_way(normal_map, clock, compression=job.compression),
    "mesh, threshold": lambda normal_map, job, clock: mesh_way(normal_map, clock, threshold=job.threshold),
    "pixels": lambda normal_map, _, clock: pixel_way(normal_map, clock),
    "pixels, classical": classical_way,
    "DCT, rectangle": cosine_way,
    "Jacobi-CG": lambda normal_map, _, clock: jacobi_way(normal_map, clock),
}
