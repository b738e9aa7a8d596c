"""Check the tree of blocks and the places in their fronts against definitions."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.spatial import Delaunay

from normalmesh.solvers import elimination_plan
from normalmesh.solvers.elimination_plan import EliminationPlan
from thread_counts import on_one_and_on_several


def planar_matrix(n, seed):
    """Return the adjacency, with a diagonal, of a planar graph of several components, and positions."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    faces = Delaunay(places).simplices
    ends = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ends = ends[rng.random(len(ends)) > 0.4]
    rows, columns = np.concatenate([ends, ends[:, ::-1], np.stack([np.arange(n)] * 2, axis=1)]).T
    matrix = coo_matrix((np.ones(len(rows)), (rows, columns)), (n, n)).tocsr()
    matrix.sum_duplicates()
    return matrix, places


@pytest.fixture(params=[elimination_plan._ROOM, 1], ids=["room", "little room"])
def in_parts(request, monkeypatch):
    """Divide small systems into parts, too."""
    monkeypatch.setattr(elimination_plan, "_PARALLEL_FROM", 0)
    monkeypatch.setattr(elimination_plan, "_PARTS", 8)
    monkeypatch.setattr(elimination_plan, "_ROOM", request.param)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("in_parts")
def test_borders_are_those_of_an_elimination(seed):
    matrix, places = planar_matrix(300, seed)
    blocks, tree, _ = EliminationPlan(matrix, places).elimination
    count = len(blocks.start)
    owner = np.repeat(np.arange(count), blocks.stop - blocks.start)
    assert np.array_equal(tree.position[blocks.order], np.arange(300))
    dense = matrix.toarray()[np.ix_(blocks.order, blocks.order)] != 0
    borders, children = [], [[] for _ in range(count)]
    for s in range(count):
        beyond = set(blocks.stop[s] + np.flatnonzero(dense[blocks.start[s] : blocks.stop[s], blocks.stop[s] :].any(0)))
        for child in children[s]:
            beyond |= {p for p in borders[child] if p >= blocks.stop[s]}
        borders.append(sorted(beyond))
        assert list(tree.rows[tree.border[s] : tree.border[s + 1]]) == borders[s]
        assert tree.parent[s] == (owner[borders[s][0]] if beyond else -1)
        if beyond:
            children[tree.parent[s]].insert(0, s)
    for s in range(count):
        linked, child = [], tree.child[s]
        while child >= 0:
            linked.append(child)
            child = tree.sibling[child]
        assert linked == children[s]


@pytest.mark.usefixtures("in_parts")
def test_places_in_fronts_are_those_of_their_positions():
    matrix, places = planar_matrix(300, 5)
    blocks, tree, assembly = EliminationPlan(matrix, places).elimination
    row_of = np.repeat(np.arange(300), np.diff(matrix.indptr))
    seen = 0
    for s in range(len(blocks.start)):
        own, beyond = np.arange(blocks.start[s], blocks.stop[s]), tree.rows[tree.border[s] : tree.border[s + 1]]
        lead = -len(own) % 4
        columns = np.concatenate([own, beyond])
        width = lead + len(own) + (len(beyond) + 3) // 4 * 4
        for at in range(assembly.pointers[s], assembly.pointers[s + 1]):
            row, column = divmod(assembly.place[at], width)
            entry = assembly.entry[at]
            assert own[row] == tree.position[row_of[entry]]
            assert columns[column - lead] == tree.position[matrix.indices[entry]] >= own[row]
            seen += 1
        if len(beyond):
            above = tree.parent[s]
            own_above = np.arange(blocks.start[above], blocks.stop[above])
            front = np.append(own_above, tree.rows[tree.border[above] : tree.border[above + 1]])
            there = assembly.column[tree.border[s] : tree.border[s + 1]]
            assert np.array_equal(front[there - (-len(own_above) % 4)], beyond)
            ends = assembly.run_end[tree.border[s] : tree.border[s + 1]]
            expected = [
                next(e for e in range(q + 1, len(there) + 1) if e == len(there) or there[e] != there[e - 1] + 1)
                for q in range(len(there))
            ]
            assert list(ends) == expected
    assert seen == np.count_nonzero(tree.position[matrix.indices] >= tree.position[row_of])


@pytest.mark.usefixtures("in_parts")
def test_any_number_of_threads():
    matrix, places = planar_matrix(2000, 1)
    alone, together = on_one_and_on_several(lambda: EliminationPlan(matrix, places).elimination)
    for one, other in zip(alone, together, strict=True):
        assert all(np.array_equal(*each) for each in zip(one, other, strict=True))
