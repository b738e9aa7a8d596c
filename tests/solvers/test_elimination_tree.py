"""Check tasks, order and memory of elimination trees on random forests."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from normalmesh.solvers.elimination_tree import EliminationTree


@st.composite
def forests(draw):
    """Draw the parents of up to 40 blocks. Parents come after their children; roots have −1."""
    blocks = draw(st.integers(1, 40))
    return np.array([draw(st.sampled_from([-1, *range(s + 1, blocks)])) for s in range(blocks)], np.int32)


@given(forests())
def test_subtrees_are_contiguous_and_end_with_their_roots(parent):
    post = EliminationTree.of(parent).postorder()
    assert np.array_equal(np.sort(post), np.arange(parent.size))
    for s in range(parent.size):
        subtree = [t for t in range(parent.size) if s in _ancestry(parent, t)]
        assert sorted(post[subtree]) == list(range(post[s] - len(subtree) + 1, post[s] + 1))


@given(forests(), st.sampled_from([0.0, 0.1, 0.3, 1.0]))
def test_tasks_of_a_level_do_not_depend_on_each_other(parent, share):
    task, levels = EliminationTree.of(parent).tasks(np.ones(parent.size), share)
    level = np.searchsorted(levels, task, side="right") - 1
    assert set(task) == set(range(levels[-1]))
    for s in range(parent.size):
        for above in _ancestry(parent, s)[1:]:
            assert task[above] == task[s] or level[above] > level[s]
    for t in range(levels[-1]):
        members = np.flatnonzero(task == t)
        assert members.size <= max(1, share * parent.size)


@given(forests(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 10**6))
def test_updates_that_are_needed_are_not_overwritten(parent, share, seed):
    """Tasks of one level are done in turns, block by block, each with a stack of its own."""
    tree, rng = EliminationTree.of(parent), np.random.default_rng(seed)
    size = rng.integers(0, 5, parent.size)
    task, levels = tree.tasks(np.ones(parent.size), share)
    place, length, stack = tree.update_places(size, task)
    buffer, stacks = np.full(length, -1), np.full((levels[-1], stack), -1)
    level, rank = np.searchsorted(levels, task, side="right") - 1, tree.postorder()
    # Random numbers that ascend within each task.
    turn = np.empty(parent.size)
    for t in range(levels[-1]):
        members = np.flatnonzero(task == t)
        turn[members[np.argsort(rank[members])]] = np.sort(rng.random(members.size))

    def numbers(s):
        where, begin = (buffer, place[s]) if place[s] >= 0 else (stacks[task[s]], ~place[s])
        return where[begin : begin + size[s]]

    for s in np.lexsort((turn, level)):
        numbers(s)[:] = s
        assert numbers(s).size == size[s]
        for c in np.flatnonzero(parent == s):
            assert (numbers(c) == c).all()


def test_one_task_takes_no_more_memory_than_its_stacks():
    parent = np.array([2, 2, 6, 5, 5, 6, -1], np.int32)
    _, length, stack = EliminationTree.of(parent).update_places(np.full(7, 10), np.zeros(7, np.int64))
    assert (length, stack) == (10, 40)


@given(forests(), st.integers(0, 10**6))
def test_kept_updates_do_not_overlap(parent, seed):
    tree = EliminationTree.of(parent)
    size = np.random.default_rng(seed).integers(0, 5, parent.size)
    place, length = tree.kept_places(size)
    assert (place >= 0).all()
    assert (place + size <= length).all()
    for s in range(parent.size):
        for t in range(s):
            if parent[t] == s or s not in _ancestry(parent, t):
                assert place[s] + size[s] <= place[t] or place[t] + size[t] <= place[s]
    assert length <= 2 * _largest_sum_of_incomparable(parent, size)


def _largest_sum_of_incomparable(parent, size):
    """Return the largest sum of sizes over blocks of which none lies above another."""
    best = np.zeros(parent.size + 1, np.int64)
    for s in range(parent.size):
        best[s] = max(best[s], size[s])
        best[parent[s]] += best[s]
    return best[-1]


def _ancestry(parent, s):
    """Return the block and its ancestors."""
    line = []
    while s >= 0:
        line.append(s)
        s = parent[s]
    return line
