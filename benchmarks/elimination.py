"""Measure the elimination by tiles against the factor of the whole system, on a dual graph of two faces a cell.

Processor seconds on one thread, bytes of results, residual, estimated error, and the largest difference of an unknown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from normalmesh.pieces.elimination import TiledSystem, merge_levels
from normalmesh.pieces.elimination_tasks import Arrays
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.runtime.threads import limited_threads
from normalmesh.solvers.sparse_system import PreparedSystem

Float = NDArray[np.float64]

#: Side of a cell in px, and how far its corners are moved.
CELL, MOVED = 10.0, 0.15
#: Share of the edges whose weights vary over all decades, as beside jumps.
WEAK = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=400, help="cells a side; there are two unknowns a cell")
    parser.add_argument("--tiles", type=int, nargs="*", default=[1, 2, 4, 8], help="tiles a side")
    parser.add_argument("--decades", type=float, default=0.0, help="range of weights; default: %(default)s")
    options = parser.parse_args()
    places, elements = _scene(options.cells, options.decades)
    with limited_threads(1):
        matrix, right = _assembled(elements)
        start = time.process_time()
        system = PreparedSystem(matrix, coordinates=places, gauge=elements.gauge())
        expected = system.solve(right, max_error=1e-7)
        seconds = time.process_time() - start
        print(
            f"{len(places)} unknowns, whole, without assembly: {seconds:.2f} s, residual {expected.residual:.1e}, "
            f"error {expected.error:.1e} px"
        )
        del system, matrix
        for count in options.tiles:
            engine = _Engine()
            start = time.process_time()
            row, column = np.minimum(places.T[::-1] // (CELL * options.cells / count), count - 1).astype(np.int32)
            partition = Partition(elements, row * np.int32(count) + column, places)
            found = TiledSystem(partition, merge_levels(count, count), engine).solve(max_error=1e-7)
            seconds = time.process_time() - start
            difference = np.abs(found.x - expected.x).max()
            print(
                f"{count**2} tiles: {seconds:.2f} s, {engine.bytes / 1e6:.0f} MB, residual {found.residual:.1e}, "
                f"error {found.error:.1e} px, {difference:.1e} px from the whole; "
                + ", ".join(f"{name} {each:.2f} s" for name, each in engine.seconds.items())
            )


class _Engine:
    """Runs tasks in this process, and adds up their seconds and the bytes of their results."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.bytes = 0

    def __call__(
        self, stage: str, function: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]], *, work: float = 0.0
    ) -> Mapping[int, Arrays]:
        name, results = stage.split("-")[0], {}
        for key in arguments:
            given = arguments[key]
            start = time.process_time()
            results[key] = function(*given)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start
            self.bytes += sum(each.nbytes for each in results[key].values())
        return results


def _scene(cells: int, decades: float) -> tuple[Float, Elements]:
    """Return centroids of faces, and elements whose steps are those of waves with noise."""
    rng = np.random.default_rng(0)
    corners = np.stack(np.meshgrid(np.arange(cells + 1.0), np.arange(cells + 1.0)), axis=-1)
    corners += MOVED * rng.uniform(-1, 1, corners.shape)
    a, b, c, d = corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]
    places = CELL * np.stack([a + b + d, b + c + d], axis=2).reshape(-1, 2) / 3
    upper = 2 * np.arange(cells**2, dtype=np.int32).reshape(cells, cells)
    sides = (upper, upper + 1), (upper[:, :-1] + 1, upper[:, 1:]), (upper[:-1] + 1, upper[1:])
    pairs = np.concatenate([np.stack(each, axis=-1).reshape(-1, 2) for each in sides])
    weights = 1 + rng.random(len(pairs))
    weak = rng.random(len(pairs)) < WEAK
    weights[weak] *= 10.0 ** (-decades * rng.random(np.count_nonzero(weak)))
    height = 100 * np.sin(places[:, 0] / 300) * np.cos(places[:, 1] / 200)
    steps = height[pairs[:, 1]] - height[pairs[:, 0]] + 0.1 * rng.normal(size=len(pairs))
    return places, Elements.of_edges(pairs, weights, steps, len(places))


def _assembled(elements: Elements) -> tuple[csr_matrix, Float]:
    """Return matrix and right-hand side."""
    count, edges = elements.rows.shape[1], len(elements.pairs)
    numbers = np.tile([-1.0, 1.0], edges), elements.pairs.ravel(), np.arange(0, 2 * edges + 1, 2)
    steps = csr_matrix(numbers, shape=(edges, count))
    matrix = csr_matrix(steps.T @ diags(elements.weights) @ steps)
    matrix.sort_indices()
    return matrix, steps.T @ (elements.weights * elements.steps)


if __name__ == "__main__":
    main()
