"""Tasks, order and stacks of an elimination tree keep what they promise, on any forest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normalmesh.solvers.elimination_tree import EliminationTree


@st.composite
def forests(draw):
    """Parents of up to 40 blocks, each after its children, some none."""
    blocks = draw(st.integers(1, 40))
    return np.array([draw(st.sampled_from([-1, *range(s + 1, blocks)])) for s in range(blocks)], np.int32)


@given(forests())
def test_subtrees_are_contiguous_and_end_with_their_roots(parent):
    post = EliminationTree.of(parent).post()
    assert np.array_equal(np.sort(post), np.arange(parent.size))
    for s in range(parent.size):
        subtree = [t for t in range(parent.size) if s in _line(parent, t)]
        assert sorted(post[subtree]) == list(range(post[s] - len(subtree) + 1, post[s] + 1))


@given(forests(), st.sampled_from([0.0, 0.1, 0.3, 1.0]))
def test_tasks_of_a_level_do_not_depend_on_each_other(parent, share):
    task, levels = EliminationTree.of(parent).tasks(np.ones(parent.size), share)
    level = np.searchsorted(levels, task, side="right") - 1
    assert set(task) == set(range(levels[-1]))
    for s in range(parent.size):
        for above in _line(parent, s)[1:]:
            assert task[above] == task[s] or level[above] > level[s]
    for t in range(levels[-1]):
        members = np.flatnonzero(task == t)
        assert members.size <= max(1, share * parent.size)


@given(forests(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 10**6))
def test_updates_that_are_needed_are_not_overwritten(parent, share, seed):
    tree = EliminationTree.of(parent)
    size = np.random.default_rng(seed).integers(0, 5, parent.size)
    task, _ = tree.tasks(np.ones(parent.size), share)
    place, room = tree.places(size, task)
    owner = np.full(room, -1)
    for s in np.lexsort((tree.post(), task)):
        owner[place[s] : place[s] + size[s]] = s
        for c in np.flatnonzero(parent == s):
            assert (owner[place[c] : place[c] + size[c]] == c).all()


def test_one_task_takes_no_more_room_than_its_stacks():
    parent = np.array([2, 2, 6, 5, 5, 6, -1], np.int32)
    _, room = EliminationTree.of(parent).places(np.full(7, 10), np.zeros(7, np.int64))
    assert room == pytest.approx(40)


def _line(parent, s):
    """The block and its ancestors."""
    line = []
    while s >= 0:
        line.append(s)
        s = parent[s]
    return line
