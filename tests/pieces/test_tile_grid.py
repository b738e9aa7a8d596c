"""Tiles, strips and crossings against distances written from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from normalmesh import NormalMeshError
from normalmesh.pieces.map_windows import Window
from normalmesh.pieces.tile_grid import COLLAR, CROSSING, TileGrid

GRID = TileGrid(Window(10, 30, 810, 1000), 256)


def points(seed=0, count=2000):
    rng = np.random.default_rng(seed)
    return rng.uniform([30, 10], [1000, 810], (count, 2))


def test_tiles_divide_the_area():
    covered = np.zeros((900, 1100), int)
    for key in GRID.tile_keys():
        tile = GRID.tile(key)
        covered[tile.rows, tile.columns] += 1
    assert covered.sum() == 800 * 970
    assert (covered[10:810, 30:1000] == 1).all()


def test_every_point_has_its_tile():
    keys = list(GRID.tile_keys())
    for (u, v), number in zip(points(), GRID.tile_of(points()), strict=True):
        tile = GRID.tile(keys[number])
        assert tile.left <= u <= tile.right
        assert tile.top <= v <= tile.bottom


def test_collars_strips_and_crossings():
    vertical, horizontal = [30 + 256 * k for k in (1, 2, 3)], [10 + 256 * k for k in (1, 2, 3)]
    strips, crossings = GRID.strip_of(points()), GRID.crossing_of(points())
    names = {}
    for (u, v), in_collar, strip, crossing in zip(points(), GRID.in_collar(points()), strips, crossings, strict=True):
        aside = [abs(u - seam) for seam in vertical]
        below = [abs(v - seam) for seam in horizontal]
        assert in_collar == (min(*aside, *below) < COLLAR)
        assert (strip < 0) == (min(aside) < CROSSING and min(below) < CROSSING)
        assert crossing == 3 * np.argmin(below) + np.argmin(aside)
        if strip >= 0:
            beside = min(aside) < min(below)
            along = (v - 10) // 256 if beside else (u - 30) // 256
            place = (beside, int(np.argmin(aside if beside else below)), int(along))
            assert names.setdefault(int(strip), place) == place
    assert len(set(names.values())) == len(names)
    even = GRID.is_even(np.arange(9)).reshape(3, 3)
    assert not (even[1:] & even[:-1]).any()
    assert not (even[:, 1:] & even[:, :-1]).any()


def test_one_row_of_tiles_has_no_crossing():
    row = TileGrid(Window(0, 0, 200, 1000), 256)
    assert (row.crossing_of(points()) == -1).all()
    assert (row.strip_of(points()) >= 0).all()
    with pytest.raises(NormalMeshError, match="tiles"):
        TileGrid(Window(0, 0, 200, 1000), 128)
