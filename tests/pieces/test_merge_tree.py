"""Check that merging covers every tile once, between neighbours, into compact rectangles."""

import pytest

from normalmesh.pieces.merge_plan import MergeTree


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 5), (3, 3), (7, 4), (16, 2), (8, 8)])
def test_nodes_are_rectangles_of_neighbours(rows, columns):
    tree = MergeTree.of(rows, columns)
    extents = {
        tile: (tile // columns, tile // columns + 1, tile % columns, tile % columns + 1)
        for tile in range(rows * columns)
    }
    alive = set(extents)
    for level in tree.levels:
        made = []
        for number, (a, b) in level:
            top, bottom, left, right = extents[a]
            if extents[b][:2] == (top, bottom):
                assert extents[b][2] == right
                right = extents[b][3]
            else:
                assert extents[b] == (bottom, extents[b][1], left, right)
                bottom = extents[b][1]
            extents[number] = top, bottom, left, right
            alive -= {a, b}
            made.append(number)
        assert alive.isdisjoint(made)
        alive |= set(made)
    assert [extents[each] for each in alive] == [(0, rows, 0, columns)]


def test_rectangles_stay_compact():
    levels = MergeTree.of(16, 2).levels
    assert [len(level) for level in levels] == [16, 8, 4, 2, 1]
    # Pairs of rows, then squares.
    assert levels[0][0][1] in {(0, 1), (0, 2)}
    squares = dict(levels[0])
    assert sorted(tile for child in levels[1][0][1] for tile in squares[child]) == [0, 1, 2, 3]
