"""One exact solve over all tiles, by elimination.

Each tile eliminates its interior and hands on a dense matrix of its border. Tiles are merged in pairs: their matrices
are added, and unknowns that occur nowhere else are eliminated. From the last node back to the tiles, unknowns follow
from those of the node above. The interior of a tile is factorised again for that, so nothing large is kept meanwhile.

Error estimate and iterative refinement cost little: the expansion of a tile, whose factor is at hand, corrects the
interior for the border that it was given, and condenses what the border misses. The nodes turn that into corrections of
all borders. Only if these are too large, tiles are expanded again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.engine.array_file import Arrays, Run
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.errors import NormalMeshError
from normalmesh.integration.prior_correction import Solve
from normalmesh.pieces.elimination_tasks import (
    condense_tile,
    expand_tile,
    merge_nodes,
    substitute_back,
    substitute_forward,
)
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import ROUNDING, TOLERANCE, Solution


class TiledSystem:
    """The system of all tiles: it can be solved for many right-hand sides.

    The free constant of each floating component is chosen so that its mean is zero, as by
    :class:`~normalmesh.solvers.sparse_system.PreparedSystem`. Arguments of tasks are arrays, numbers, systems of tiles,
    and results of earlier stages, which are only handed on.
    """

    def __init__(self, partition: Partition, tree: MergeLevels, run: Run) -> None:
        self._partition, self._run = partition, run
        labels, component = np.unique(partition.gauge.component[partition.separators], return_inverse=True)
        self._gauge = Gauge(component.astype(np.int32), partition.gauge.floating[labels])
        floating = np.where(self._gauge.floating[component], component, -1)
        self._levels = plan_merges(tree, partition.borders, floating, partition.diagonal)
        self._nodes: dict[int, Arrays] = {}
        self._passes = 0

    def solve(self, right_side: Float | None = None, *, max_error: float = np.inf) -> Solution:
        """Solve for a right-hand side (M,), by default that of the elements.

        ``max_error`` asks for a small error of each unknown, as far as rounding allows.

        Raises
        ------
        NormalMeshError
            The matrix is not positive definite, or the residual of 1e-8 is not reached.
        """
        if right_side is not None:
            right_side = self._partition.gauge.centred(right_side)
        rights = {
            tile: None if right_side is None else self._partition.local(tile, right_side) for tile in self._partition
        }
        border, last = self._back(self._condense(rights)), np.inf
        # Errors of the separators and errors of the interior between them add up.
        goal, expansions = max_error / 2, 0
        while True:
            expanded, expansions = self._expand(border, rights, goal), expansions + 1
            step = self._gauge.centred(self._back(self._forward(self._summed(expanded, "missing"))))
            error = float(np.abs(step).max(initial=0.0))
            if error <= goal or not error < last / 2:
                break
            border, last = border + step, error
        error += max(float(each["error"]) for each in expanded.values())
        return self._solution(border, expanded, error, expansions)

    def _condense(self, rights: Mapping[int, Float | None]) -> dict[int, Arrays]:
        """Eliminate everything; return what each node left of the right-hand side, for back substitution."""
        first = not self._passes
        shared = {tile: border for tile, border in self._partition.borders.items() if len(border)}
        tiles = LazyArguments(shared, lambda tile: (self._partition[tile], rights[tile], first))
        results = dict(self._staged("condense", condense_tile, tiles, work=0.01 if first else 0.0))
        if not first:
            return self._forward(self._summed(results, "right"))
        missing = self._summed(results, "right")
        for number, level in enumerate(self._levels, 1):
            arguments = {
                key: ([results[c] for c in node.children], node.places, len(node.beyond), node.pins, missing[node.own])
                for key, node in level.items()
            }
            results |= self._staged(f"merge-{number}", merge_nodes, arguments)
            _add(missing, level, results)
        self._nodes = {key: results[key] for level in self._levels for key in level}
        return self._nodes

    def _forward(self, missing: Float) -> dict[int, Arrays]:
        """Substitute a right-hand side (S,) of the separators through all nodes, from the tiles upwards."""
        results: dict[int, Arrays] = {}
        for number, level in enumerate(self._levels, 1):
            arguments = {key: (self._nodes[key], missing[node.own], len(node.beyond)) for key, node in level.items()}
            results |= self._staged(f"forward-{number}", substitute_forward, arguments)
            _add(missing, level, results)
        return results

    def _back(self, substituted: Mapping[int, Arrays]) -> Float:
        """Return the separators (S,), from the last node down to the tiles."""
        x = np.zeros(len(self._partition.separators))
        for number, level in reversed(list(enumerate(self._levels, 1))):
            arguments = {key: (self._nodes[key], substituted[key], x[node.beyond]) for key, node in level.items()}
            found = self._staged(f"back-{number}", substitute_back, arguments)
            for key, node in level.items():
                x[node.own] = found[key]["values"]
        self._passes += 1
        return x

    def _expand(self, border: Float, rights: Mapping[int, Float | None], max_error: float) -> Mapping[int, Arrays]:
        """Solve for the interiors of all tiles, given all separators (S,)."""
        borders = self._partition.borders
        tiles = LazyArguments(
            rights, lambda tile: (self._partition[tile], border[borders[tile]], rights[tile], max_error)
        )
        return self._staged("expand", expand_tile, tiles, work=0.01 if self._passes == 1 else 0.0)

    def _staged(
        self, name: str, function: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]], work: float = 0.0
    ) -> Mapping[int, Arrays]:
        return self._run(f"{name}-{self._passes}", function, arguments, work=work) if arguments else {}

    def _summed(self, results: Mapping[int, Arrays], name: str) -> Float:
        """Return the sums (S,) or (3, S) over all tiles of what they have for their borders."""
        count = len(self._partition.separators)
        total = np.zeros((3, count) if name == "border" else count)
        for tile, border in self._partition.borders.items():
            if len(border):
                total[..., border] += results[tile][name]
        return total

    def _solution(self, border: Float, expanded: Mapping[int, Arrays], error: float, steps: int) -> Solution:
        """Put the parts together, and check the residual."""
        partition = self._partition
        x = np.empty(len(partition.gauge.component))
        x[partition.separators] = border
        for tile in partition:
            x[partition.interior(tile)] = expanded[tile]["values"]
        within = sum(expanded[tile]["squares"] for tile in partition)
        size, scale, rounded = np.sqrt(within + (self._summed(expanded, "border") ** 2).sum(axis=1))
        residual = float(size / (scale or 1.0))
        if not (residual <= TOLERANCE or size <= ROUNDING * rounded):
            raise NormalMeshError(
                f"the system could not be solved: residual {residual:.1e} of the right side after {steps} expansions, "
                f"{TOLERANCE:.0e} was asked for; is the matrix positive definite?"
            )
        free = int(np.count_nonzero(partition.gauge.floating))
        return Solution(partition.gauge.centred(x), "elimination", steps, residual, error, free)


def _add(missing: Float, level: Mapping[int, MergeNode], results: Mapping[int, Arrays]) -> None:
    """Add what the nodes of a level leave for others to the right-hand side (S,)."""
    for key, node in level.items():
        missing[node.beyond] += results[key]["right"]


@dataclass(frozen=True, eq=False)
class TiledEquations:
    """Equations of which only the edges are in memory; see :class:`.prior_correction.Equations`.

    ``run`` is handed to :class:`.TiledSystem`, whose stages have names.
    """

    elements: Elements  # edges alone
    part: Integer  # (M,): connected part of each face
    tile: Integer  # (M,): the tile of each face
    centroids: Float  # (M, 2)
    tree: MergeLevels
    run: Run

    def diagonal(self) -> Float:
        return self.elements.diagonal()

    def missing(self, x: Float) -> Float:
        first, second = self.elements.pairs.T
        flow = self.elements.weights * (x[first] - x[second] + self.elements.steps)
        return np.subtract(*(np.bincount(faces, flow, len(x)) for faces in (second, first)), dtype=np.float64)

    def restricted(self, chosen: Integer) -> TiledEquations:
        number = np.full(len(self.part), -1)
        number[chosen] = np.arange(len(chosen))
        pairs, weights, steps = self.elements.pairs, self.elements.weights, self.elements.steps
        kept = number[pairs[:, 0]] >= 0
        elements = Elements.of_edges(number[pairs[kept]], weights[kept], steps[kept], len(chosen))
        arrays = self.part[chosen], self.tile[chosen], self.centroids[chosen]
        return TiledEquations(elements, *arrays, self.tree, self.run)

    def with_terms(self, rows: csr_matrix, weights: Float) -> Solve:
        elements = replace(self.elements, rows=rows, row_weights=weights, row_values=np.zeros_like(weights))
        _, part = np.unique(self.part, return_inverse=True)
        gauge = Gauge(part.astype(np.int32), np.zeros(int(part.max()) + 1, np.bool_))
        system = TiledSystem(Partition(elements, self.tile, self.centroids, gauge), self.tree, self.run)
        return lambda right: system.solve(right).x


#: Nodes of each level, from the tiles upwards, with their two children, which may lie several levels below. Tiles are
#: numbered row by row, nodes follow.
MergeLevels = list[dict[int, tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class MergeNode:
    """A node of the merge tree, whose ``children`` are tiles or nodes."""

    children: tuple[int, ...]
    places: tuple[Integer, ...]  # for each child, where its unknowns are among own separators, then those beyond
    own: Integer  # (k,) separators that are eliminated here, ascending
    beyond: Integer  # (b,) separators that are handed on, ascending
    pins: Float  # (k,) numbers to be added to the diagonal of own separators, which fix free constants


def merge_levels(rows: int, columns: int) -> MergeLevels:
    """Return the binary tree over a grid of tiles.

    Neighbours are paired across the shorter extent of the merged rectangles, so that these stay compact and their
    outlines short; the last one of a row may stay alone.
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    height, width, levels = 1, 1, MergeLevels()
    while grid.size > 1:
        in_rows = grid.shape[1] == 1 or (grid.shape[0] > 1 and (height, -len(grid)) < (width, -grid.shape[1]))
        height, width = (2 * height, width) if in_rows else (height, 2 * width)
        grid = grid.T if in_rows else grid
        pairs = grid[:, : grid.shape[1] // 2 * 2].reshape(len(grid), -1, 2)
        nodes = rows * columns + sum(map(len, levels)) + np.arange(pairs.size // 2).reshape(pairs.shape[:2])
        levels.append(
            {int(node): (int(a), int(b)) for node, (a, b) in zip(nodes.flat, pairs.reshape(-1, 2), strict=True)}
        )
        grid = np.concatenate([nodes, grid[:, 2 * pairs.shape[1] :]], axis=1)
        grid = grid.T if in_rows else grid
    return levels


def plan_merges(
    tree: MergeLevels, borders: Mapping[int, Integer], floating: Integer, diagonal: Float
) -> list[dict[int, MergeNode]]:
    """Return the nodes of each level that have two children which hand on separators, by number.

    ``borders`` are the separators of each tile that has faces, ascending; ``floating`` (S,) is the floating component
    of each separator, −1 for none; ``diagonal`` (S,) is what it is before anything is eliminated. The separator of each
    component that is eliminated last is pinned: its number on the diagonal is doubled.
    """
    counts = np.bincount(np.concatenate([np.empty(0, np.int64), *borders.values()]), minlength=len(floating))
    # What each tile or node hands on, and in how many tiles below it each of these occurs.
    handed = {tile: (border, np.ones(len(border), np.int64)) for tile, border in borders.items() if len(border)}
    stands_for: dict[int, int] = {}
    levels: list[dict[int, MergeNode]] = []
    for level in tree:
        nodes: dict[int, MergeNode] = {}
        for number, pair in level.items():
            children = [each for each in (stands_for.get(child, child) for child in pair) if each in handed]
            if len(children) < 2:
                stands_for[number] = children[0] if children else number
                continue
            unknowns, inverse = np.unique(np.concatenate([handed[c][0] for c in children]), return_inverse=True)
            below = np.bincount(inverse, np.concatenate([handed[c][1] for c in children]), len(unknowns))
            done = below == counts[unknowns]
            if not done.all():
                handed[number] = unknowns[~done], below[~done].astype(np.int64)
            place = np.where(done, np.cumsum(done) - 1, np.count_nonzero(done) + np.cumsum(~done) - 1)
            places = np.split(place[inverse], [len(handed[children[0]][0])])
            nodes[number] = MergeNode(tuple(children), tuple(places), unknowns[done], unknowns[~done], np.empty(0))
        if nodes:
            levels.append(nodes)
    return _pinned(levels, floating, diagonal)


def _pinned(levels: list[dict[int, MergeNode]], floating: Integer, diagonal: Float) -> list[dict[int, MergeNode]]:
    """Return the nodes with pins: of each floating component the separator that is eliminated last."""
    own = [node.own for level in levels for node in level.values()]
    order = np.concatenate([np.empty(0, np.int64), *own])
    order = order[floating[order] >= 0]
    last = np.full(int(floating.max(initial=-1)) + 1, -1)
    # If several values are assigned to one place, the last one is kept.
    last[floating[order]] = order
    last = last[last >= 0]
    pins = np.zeros(len(floating))
    # A row of zeros, whose unknown is not determined, gets one.
    pins[last] = np.where(diagonal[last] > 0, diagonal[last], 1.0)
    return [{key: replace(node, pins=pins[node.own]) for key, node in level.items()} for level in levels]
