"""Check that the elimination by tiles has the solution of the whole system."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags, vstack
from scipy.spatial import Delaunay

from normalmesh import NormalMeshError
from normalmesh.pieces.elimination import TiledSystem, merge_levels
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.solvers.sparse_system import PreparedSystem
from task_loop import Loop
from thread_counts import on_one_and_on_several


class Scene:
    """The dual graph of a random triangulation of the unit square, divided into tiles."""

    def __init__(self, n, grid, seed, lost=0.0, hole=0.0):
        self.rng = rng = np.random.default_rng(seed)
        points = rng.random((n, 2))
        mesh = Delaunay(points)
        centroids = points[mesh.simplices].mean(axis=1)
        kept = np.hypot(*(centroids - 0.4).T) >= hole
        number = np.cumsum(kept) - 1
        first, second = np.repeat(np.arange(len(kept)), 3), mesh.neighbors.ravel()
        inner = (second > first) & kept[first] & kept[second] & (rng.random(first.size) >= lost)
        self.grid, self.places = grid, centroids[kept]
        column, row = np.floor(self.places * grid[::-1]).astype(np.int64).T
        self.tile = row * grid[1] + column
        pairs = number[np.stack([first[inner], second[inner]], axis=1)]
        count = len(self.places)
        weights, steps = rng.random(len(pairs)) + 0.1, rng.normal(size=len(pairs))
        self.elements = Elements.of_edges(pairs, weights, steps, count)

    def hold(self, share):
        count = len(self.tile)
        held = np.where(self.rng.random(count) < share, self.rng.random(count), 0.0)
        self.elements = self.elements.holding(held, self.rng.normal(size=count))

    def add_rows(self, count):
        """Add rows over paths of three faces, most of them across tiles."""
        a, b = self.elements.pairs.T
        across = np.flatnonzero(self.tile[a] != self.tile[b])
        edges = self.rng.choice(np.append(across, 0), count)
        third = [b[a == face][-1] for face in a[edges]]
        faces = np.stack([a[edges], b[edges], third], axis=1).ravel()
        numbers = np.tile([0.5, 0.3, 0.2], count), faces, np.arange(0, 3 * count + 1, 3)
        rows = csr_matrix(numbers, (count, len(self.tile)))
        rows.sum_duplicates()
        held = self.elements
        rows = vstack([held.rows, rows], format="csr")
        weights = np.append(held.row_weights, self.rng.random(count))
        values = np.append(held.row_values, self.rng.normal(size=count))
        self.elements = replace(held, rows=rows, row_weights=weights, row_values=values)

    def system(self, run=None):
        partition = Partition(self.elements, self.tile, self.places)
        return TiledSystem(partition, merge_levels(*self.grid), run or Loop())

    def expected(self, right=None):
        """Return the solution of the whole, and its matrix."""
        elements, count = self.elements, len(self.tile)
        edges = len(elements.pairs)
        numbers = np.tile([-1.0, 1.0], edges), elements.pairs.ravel(), np.arange(0, 2 * edges + 1, 2)
        steps, rows = csr_matrix(numbers, (edges, count)), elements.rows
        matrix = steps.T @ diags(elements.weights) @ steps
        matrix = csr_matrix(matrix + rows.T @ diags(elements.row_weights) @ rows)
        if right is None:
            right = steps.T @ (elements.weights * elements.steps)
            right += rows.T @ (elements.row_weights * elements.row_values)
        gauge = elements.gauge()
        return PreparedSystem(matrix, coordinates=self.places, gauge=gauge).solve(gauge.centred(right), max_error=1e-9)


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 3), (1, 5)])
@pytest.mark.parametrize("lost", [0.0, 0.45])
def test_solution_of_the_whole(grid, lost):
    """Without some edges there are hundreds of components, within a tile or across several."""
    scene = Scene(500, grid, 0, lost, hole=0.2)
    found, expected = scene.system().solve(max_error=1e-9), scene.expected()
    np.testing.assert_allclose(found.x, expected.x, atol=1e-10)
    assert found.free_constants == expected.free_constants == (1 if lost == 0 else found.free_constants)
    assert lost == 0 or found.free_constants > 100
    assert found.residual < 1e-13
    assert found.error < 1e-10


def test_held_faces_and_rows_across_tiles():
    scene = Scene(800, (3, 3), 1, lost=0.2)
    scene.hold(0.01)
    scene.add_rows(30)
    assert len(np.unique(scene.tile[scene.elements.rows[-1].indices])) > 1
    found, expected = scene.system().solve(max_error=1e-9), scene.expected()
    np.testing.assert_allclose(found.x, expected.x, atol=1e-9)
    assert found.free_constants == expected.free_constants


def test_tiles_without_faces_and_edges_of_no_weight():
    scene = Scene(500, (4, 4), 2, hole=0.15)
    # Two tiles become one, and the edges around a third weigh nothing.
    scene.tile[np.isin(scene.tile, [0, 7])] = 4
    cut = (scene.tile[scene.elements.pairs] == 10).sum(axis=1) == 1
    scene.elements.weights[cut] = 0.0
    found, expected = scene.system().solve(max_error=1e-9), scene.expected()
    np.testing.assert_allclose(found.x, expected.x, atol=1e-10)
    assert found.free_constants == expected.free_constants == 2


def test_robust_weights_over_ten_decades():
    """Small changes of the steps would show in a solution that is not exact."""
    scene = Scene(2000, (3, 2), 3, lost=0.1)
    weights = 10.0 ** (-10 * scene.rng.random(len(scene.elements.pairs)))
    scene.elements = replace(scene.elements, weights=weights)
    truth = scene.rng.normal(size=len(scene.tile))
    a, b = scene.elements.pairs.T
    scene.elements = replace(scene.elements, steps=truth[b] - truth[a])
    found = scene.system().solve(max_error=1e-7)
    np.testing.assert_allclose(found.x, scene.elements.gauge().centred(truth), atol=1e-7)
    assert found.error < 1e-7


def test_further_right_sides():
    scene = Scene(600, (2, 3), 4)
    scene.hold(0.02)
    system = scene.system()
    system.solve()
    for _ in range(2):
        right = scene.rng.normal(size=len(scene.tile))
        np.testing.assert_allclose(system.solve(right, max_error=1e-9).x, scene.expected(right).x, atol=1e-9)


def test_tiles_without_separators_are_solved_once():
    """Two of four tiles have parts of their own only."""
    scene, done = Scene(500, (2, 2), 8), []
    pairs = scene.elements.pairs
    apart = (scene.tile[pairs[:, 0]] != scene.tile[pairs[:, 1]]) & ((scene.tile[pairs] // 2).max(axis=1) == 1)
    weights, steps = scene.elements.weights[~apart], scene.elements.steps[~apart]
    scene.elements = replace(scene.elements, pairs=pairs[~apart], weights=weights, steps=steps)

    def run(stage, function, arguments, *, work):
        done.extend((stage, key) for key in arguments)
        return Loop()(stage, function, arguments)

    found, expected = scene.system(run).solve(max_error=1e-9), scene.expected()
    np.testing.assert_allclose(found.x, expected.x, atol=1e-10)
    assert found.free_constants == 3
    assert [key for stage, key in done if stage.startswith("condense")] == [0, 1]
    assert len([key for stage, key in done if stage.startswith("merge")]) == 1


class Handle:
    """A result that lies elsewhere."""

    def __init__(self, arrays):
        assert all(isinstance(each, np.ndarray) for each in arrays.values())
        self._stored = pickle.dumps(arrays)

    def __getitem__(self, name):
        return pickle.loads(self._stored)[name]


def test_tasks_elsewhere_whose_results_are_handles():
    scene, stages = Scene(300, (2, 2), 5), []

    def run(stage, function, arguments, *, work):
        stages.append(stage)
        function, arguments = pickle.loads(pickle.dumps((function, dict(arguments.items()))))
        return {key: Handle(result) for key, result in Loop()(stage, function, arguments).items()}

    system = scene.system(run)
    assert np.array_equal(system.solve().x, scene.system().solve().x)
    system.solve(np.zeros(len(scene.tile)))
    assert len(set(stages)) == len(stages)


def test_errors_are_found_and_corrected():
    """A worker whose condensed matrices are wrong by a thousandth."""
    scene = Scene(500, (2, 2), 6)

    def run(stage, function, arguments, *, work):
        results = Loop()(stage, function, arguments)
        if stage.startswith("condense"):
            for result in results.values():
                result["triangle"] *= 1.001
        return results

    found = scene.system(run).solve(max_error=1e-9)
    assert found.iterations > 2
    assert found.error < 1e-9
    np.testing.assert_allclose(found.x, scene.expected().x, atol=1e-8)
    with pytest.raises(NormalMeshError, match="the system could not be solved: residual"):
        scene.system(run).solve()


def test_the_same_bits_for_any_number_of_threads():
    scene = Scene(1500, (2, 2), 7)
    assert np.array_equal(*on_one_and_on_several(lambda: scene.system().solve().x))
