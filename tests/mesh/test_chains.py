"""Chains of edges against a naive partition of the edges of random graphs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from normalmesh.mesh.chains import Chains


@st.composite
def graphs(draw):
    """Return the edges (E, 2) of a random graph, of which most vertices have few edges, and its fixed vertices (N,)."""
    count = draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    ring = np.stack([np.arange(count), (np.arange(count) + 1) % count], axis=1)
    more = rng.integers(0, count, (draw(st.integers(0, 4)), 2))
    edges = np.concatenate([ring[rng.random(count) < draw(st.sampled_from([0.5, 0.9, 1.0]))], more])
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned][:, ::-1]
    return rng.permutation(count)[rng.permutation(edges)].reshape(-1, 2), rng.random(count) < draw(
        st.sampled_from([0.0, 0.2])
    )


def degrees(edges, fixed):
    return np.bincount(edges.ravel(), minlength=len(fixed))


def naive_chains(edges, fixed):
    """Return the sets of edges that vertices of degree two, which are not fixed, join."""
    groups = {e: frozenset([e]) for e in range(len(edges))}
    for v in np.flatnonzero((degrees(edges, fixed) == 2) & ~fixed):
        one, two = np.flatnonzero((edges == v).any(axis=1))
        both = groups[one] | groups[two]
        groups.update(dict.fromkeys(both, both))
    return set(groups.values())


@given(graphs())
def test_chains_are_those_of_a_naive_partition(graph):
    edges, fixed = graph
    chains = Chains.of(edges, fixed)
    found = [chains.edges[chains.starts[c] + 1 : chains.starts[c + 1]] for c in range(len(chains))]
    assert {frozenset(each) for each in found} == naive_chains(edges, fixed)
    assert sum(map(len, found)) == len(edges)
    for c, along in enumerate(found):
        assert (chains.chain_of_edge[along] == c).all()


@given(graphs())
def test_chains_are_walks_between_stops(graph):
    edges, fixed = graph
    chains = Chains.of(edges, fixed)
    stops = fixed | (degrees(edges, fixed) != 2)
    for c in range(len(chains)):
        vertices, along = chains[c], chains.edges[chains.starts[c] : chains.starts[c + 1]]
        assert along[0] == -1
        steps = np.stack([vertices[:-1], vertices[1:]], axis=1)
        assert np.array_equal(np.sort(edges[along[1:]], axis=1), np.sort(steps, axis=1))
        assert not stops[vertices[1:-1]].any()
        is_loop = not stops[vertices].any()
        assert stops[vertices[[0, -1]]].all() or is_loop
        if is_loop:
            assert vertices[0] == vertices[-1] == vertices.min()


@given(graphs())
def test_free_ends_are_ends_that_nothing_else_meets(graph):
    edges, fixed = graph
    chains = Chains.of(edges, fixed)
    free = (degrees(edges, fixed) == 1) & ~fixed
    expected = [int(free[chains[c][0]]) + int(free[chains[c][-1]]) for c in range(len(chains))]
    assert chains.free_ends(fixed).tolist() == expected


def test_a_loop_a_junction_and_a_fixed_vertex():
    loop, star = [(3, 1), (1, 2), (2, 3)], [(4, 5), (4, 6), (7, 4), (7, 8)]
    fixed = np.zeros(9, bool)
    chains = Chains.of(np.array(loop + star), fixed)
    assert [chains[c].tolist() for c in range(len(chains))] == [[4, 5], [4, 6], [4, 7, 8], [1, 3, 2, 1]]
    assert chains.free_ends(fixed).tolist() == [1, 1, 1, 0]
    fixed[[7, 5, 2]] = True
    chains = Chains.of(np.array(loop + star), fixed)
    assert [chains[c].tolist() for c in range(len(chains))] == [[2, 1, 3, 2], [4, 5], [4, 6], [4, 7], [7, 8]]
    assert chains.free_ends(fixed).tolist() == [0, 0, 1, 0, 1]


def test_without_edges_there_are_no_chains():
    fixed = np.zeros(3, bool)
    chains = Chains.of(np.zeros((0, 2), np.int32), fixed)
    assert len(chains) == len(chains.chain_of_edge) == len(chains.free_ends(fixed)) == 0
