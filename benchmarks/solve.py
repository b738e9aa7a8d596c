"""Compare sparse solvers: mesh systems with scipy's splu and Jacobi-CG, pixel grids with a DCT of the same rectangle.

Seconds include analysis, factorisation or coarsening; peak is the memory that the solver adds to the process. Each line
has its own process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time

import numpy as np
from scipy import fft
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.linalg import LinearOperator, cg, splu
from scipy.spatial import Delaunay

from normalmesh.integration.pixel_grid import EdgeWeights, solve_grid
from normalmesh.solvers.sparse_system import PreparedSystem

MASKS = ("full", "disc", "20 % holes", "35 % holes", "comb", "spiral")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small systems only")
    quick = parser.parse_args().quick
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    meshes = [20_000, 200_000] if quick else [20_000, 200_000, 1_000_000]
    grids = [("full", 1024), ("disc", 1024)] if quick else [(name, 1024) for name in MASKS]
    if not quick:
        grids += [("full", 2048), ("20 % holes", 2048), ("full", 4096), ("disc", 4096)]
    context = multiprocessing.get_context("spawn")
    print("mesh system            set-up    solve   peak MB  residual     ÷ splu  ÷ Jacobi-CG")
    with context.Pool(1, maxtasksperchild=1) as pool:
        for line in pool.imap(measure_mesh, [(n, kind) for n in meshes for kind in ("cotangent", "dual")]):
            print(line, flush=True)
        print("pixel grid             seconds    peak MB  residual     ÷ DCT")
        for line in pool.imap(measure_grid, grids):
            print(line, flush=True)


def triangulation(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (n, 2) and faces (m, 3) of a mesh with dense and sparse regions."""
    rng = np.random.default_rng(0)
    side = int(np.sqrt(n))
    along = np.linspace(0, 1, side, endpoint=False)
    zero = np.zeros(side)
    outline = [(along, zero), (zero + 1, along), (1 - along, zero + 1), (zero, 1 - along)]
    points = np.vstack([np.column_stack(part) for part in outline])
    centres, spread = rng.random((12, 2)), rng.uniform(0.01, 0.2, 12)
    while len(points) < n:
        near = rng.integers(0, 12, n)
        drawn = np.where(
            rng.random((n, 1)) < 0.5, rng.random((n, 2)), centres[near] + spread[near, None] * rng.normal(size=(n, 2))
        )
        inside = ((drawn > 0.3 / side) & (drawn < 1 - 0.3 / side)).all(axis=1)
        points = np.vstack([points, drawn[inside]])[:n]
    return points, Delaunay(points).simplices


def cotangent_system(vertices: np.ndarray, faces: np.ndarray) -> tuple[csr_matrix, np.ndarray]:
    """Return the vertex Laplacian and the positions of its unknowns."""
    rows, columns, weights = [], [], []
    for k in range(3):
        a, b, c = faces[:, k], faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
        e, f = vertices[b] - vertices[a], vertices[c] - vertices[a]
        cotangent = (e * f).sum(axis=1) / np.abs(e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0])
        rows += [b, c]
        columns += [c, b]
        weights += [cotangent, cotangent]
    return laplacian(np.concatenate(rows), np.concatenate(columns), np.concatenate(weights), len(vertices)), vertices


def dual_system(vertices: np.ndarray, faces: np.ndarray) -> tuple[csr_matrix, np.ndarray]:
    """Return the facet Laplacian, weighted by edge lengths, of about half the faces: n unknowns as for vertices."""
    count = len(vertices)
    centres = vertices[faces].mean(axis=1)
    kept = np.argsort(centres[:, 0])[:count]
    faces, centres = faces[kept], centres[kept]
    pairs = np.sort(np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
    owner = np.tile(np.arange(count), 3)
    order = np.lexsort(pairs.T)
    pairs, owner = pairs[order], owner[order]
    same = np.flatnonzero((pairs[1:] == pairs[:-1]).all(axis=1))
    length = np.linalg.norm(vertices[pairs[same, 0]] - vertices[pairs[same, 1]], axis=1)
    a, b = owner[same], owner[same + 1]
    return laplacian(np.concatenate([a, b]), np.concatenate([b, a]), np.tile(length, 2), count), centres


def laplacian(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, n: int) -> csr_matrix:
    """Return the matrix with the sums of the weights on the diagonal and −weights off the diagonal."""
    adjacency = coo_matrix((weights, (rows, columns)), (n, n)).tocsr()
    return (diags(np.asarray(adjacency.sum(axis=1)).ravel()) - adjacency).tocsr()


def measure_mesh(job: tuple[int, str]) -> str:
    """Return one line of the first table."""
    n, kind = job
    system = cotangent_system if kind == "cotangent" else dual_system
    small, places = system(*triangulation(2000))
    PreparedSystem(small, coordinates=places).solve(np.zeros(2000))
    matrix, coordinates = system(*triangulation(n))
    b = matrix @ np.random.default_rng(1).normal(size=n)
    before, start = forget_peak(), time.perf_counter()
    prepared = PreparedSystem(matrix, coordinates=coordinates)
    ready = time.perf_counter()
    solution = prepared.solve(b)
    done = time.perf_counter()
    used = status_megabytes("VmHWM") - before
    ratios = "       –            –" if n > 200_000 else baselines(matrix, b, done - start)
    return f"{kind:10} {n:9} {ready - start:9.2f} {done - ready:8.2f} {used:9.0f} {solution.residual:9.0e} {ratios}"


def baselines(matrix: csr_matrix, b: np.ndarray, ours: float) -> str:
    """Return our time relative to the baselines, which need a grounded matrix and take minutes beyond 2e5 unknowns."""
    diagonal = matrix.diagonal()
    start = time.perf_counter()
    grounded = matrix.tocsc(copy=True)
    grounded[0, 0] += diagonal[0] or 1.0
    splu(grounded).solve(b)
    factorised = time.perf_counter()
    inverse = LinearOperator(matrix.shape, lambda r: r / np.where(diagonal > 0, diagonal, 1), dtype=np.float64)
    cg(matrix, b, rtol=1e-8, atol=0, M=inverse, maxiter=3000)
    iterated = time.perf_counter()
    return f"{ours / (factorised - start):11.2f} {ours / (iterated - factorised):12.2f}"


def mask_of(name: str, size: int) -> np.ndarray:
    """Return a mask by name, from simple ones to ones with many cracks."""
    mask = np.ones((size, size), bool)
    if name == "disc":
        i, j = np.ogrid[:size, :size]
        mask = (i - size / 2) ** 2 + (j - size / 2) ** 2 < (0.48 * size) ** 2
    elif name.endswith("holes"):
        mask = np.random.default_rng(0).random((size, size)) > int(name[:2]) / 100
    elif name == "comb":
        mask[:-1, 1::2] = False
    elif name == "spiral":
        mask[:] = False
        for k in range(0, size // 2 - 1, 2):
            mask[k, max(k - 2, 0) : size - k] = True
            mask[k : size - k, size - 1 - k] = True
            mask[size - 1 - k, k : size - k] = True
            mask[k + 2 : size - k, k] = True
    return mask


def grid_problem(name: str, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mask, weights to the right and down, and right-hand side of a smooth surface with gradient noise."""
    mask = mask_of(name, size)
    rng = np.random.default_rng(1)
    wave = np.sin(np.arange(size) / size * 9, dtype=np.float32)
    cosines = 0.3 + 0.7 * wave[:, None] ** 2 * wave**2
    right, down = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, np.float32)
    right[:, :-1] = (mask[:, 1:] & mask[:, :-1]) * cosines[:, 1:]
    down[:-1] = (mask[1:] & mask[:-1]) * cosines[1:]
    b = np.zeros(mask.shape)
    flow = right[:, :-1] * (wave[:-1] + rng.normal(0, 0.1, (size, size - 1)))
    b[:, :-1] -= flow
    b[:, 1:] += flow
    return mask, right, down, b


def measure_grid(job: tuple[str, int]) -> str:
    """Return one line of the second table."""
    name, size = job
    mask, right, down, b = grid_problem(name, 64)
    solve_grid(mask, EdgeWeights(right, down), b)
    mask, right, down, b = grid_problem(name, size)
    before, start = forget_peak(), time.perf_counter()
    z = solve_grid(mask, EdgeWeights(right, down), b)
    done = time.perf_counter()
    used = status_megabytes("VmHWM") - before
    flow_right, flow_down = right[:, :-1] * np.diff(z, axis=1), down[:-1] * np.diff(z, axis=0)
    b[:, :-1] += flow_right
    b[:, 1:] -= flow_right
    b[:-1] += flow_down
    b[1:] -= flow_down
    # The rest of b is the residual.
    right_side = grid_problem(name, size)[3]
    residual = np.linalg.norm(b) / np.linalg.norm(right_side)
    ratio = (done - start) / dct_seconds(right_side)
    return f"{name:11} {size:5}² {done - start:13.2f} {used:10.0f} {residual:9.0e} {ratio:9.1f}"


def dct_seconds(b: np.ndarray) -> float:
    """Return the seconds of a Poisson solve of the rectangle with unit weights by cosine transforms."""
    start = time.perf_counter()
    spectrum = fft.dctn(b)
    rows, columns = (2 - 2 * np.cos(np.pi * np.arange(size) / size) for size in b.shape)
    eigenvalues = rows[:, None] + columns
    eigenvalues[0, 0] = 1
    spectrum /= eigenvalues
    fft.idctn(spectrum, overwrite_x=True)
    return time.perf_counter() - start


def forget_peak() -> float:
    """Reset the peak memory of the process (Linux), and return its resident megabytes."""
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")
    return status_megabytes("VmRSS")


def status_megabytes(field: str) -> float:
    """Return a field of /proc/self/status in megabytes: VmRSS, resident memory, or VmHWM, its peak."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


if __name__ == "__main__":
    main()
