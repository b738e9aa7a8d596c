"""Check that merging covers every tile once, between neighbours, into compact rectangles."""

import pytest

from normalmesh.pieces.elimination import merge_levels


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 5), (3, 3), (7, 4), (16, 2), (8, 8)])
def test_nodes_are_rectangles_of_neighbours(rows, columns):
    tree = merge_levels(rows, columns)
    extents = {
        tile: (tile // columns, tile // columns + 1, tile % columns, tile % columns + 1)
        for tile in range(rows * columns)
    }
    alive = set(extents)
    for level in tree:
        made = []
        for number, (a, b) in level.items():
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
    levels = merge_levels(16, 2)
    assert [len(level) for level in levels] == [16, 8, 4, 2, 1]
    # Pairs of rows, then squares.
    assert next(iter(levels[0].values())) in {(0, 1), (0, 2)}
    assert sorted(tile for child in next(iter(levels[1].values())) for tile in levels[0][child]) == [0, 1, 2, 3]
