"""Test extreme and invalid targets: the mesh comes as close as possible, or an error names the argument."""

from __future__ import annotations

import math

import numpy as np
import pytest

from invocation import invoke
from meshes import bumpy_map
from normalmesh import NormalMeshError, decimate, reconstruct, reconstruct_levels, reconstruct_within, remesh_isotropic
from normalmesh.errors import ShortfallWarning
from surface_checks import assert_valid_surface

MAP = bumpy_map((20, 20))


@pytest.mark.parametrize("vertices", [0, 1, 2, -1, math.nan, math.inf, 2**31, 10**400, 5.0, "5", True, [5], 1j])
def test_impossible_numbers_of_vertices(vertices):
    for run in (reconstruct, decimate, remesh_isotropic):
        with pytest.raises(NormalMeshError, match="vertices must be a whole number from 3 to 2147483647"):
            run(MAP, vertices=vertices)


@pytest.mark.parametrize("threshold", [0, -1, math.nan, math.inf, "5", 1j, 10**400])
def test_impossible_thresholds(threshold):
    with pytest.raises(NormalMeshError, match="threshold must be a positive number"):
        reconstruct(MAP, threshold=threshold)


@pytest.mark.parametrize("compression", [0, 1, -0.1, 98, 100, 101, math.nan, "98%", True])
def test_impossible_compressions(compression):
    with pytest.raises(NormalMeshError, match=r"compression must lie between 0 and 1, such as 0\.98"):
        reconstruct(MAP, compression=compression)


@pytest.mark.parametrize("rules", [{"vertices": 5, "threshold": 1.0}, {"vertices": 5, "compression": 0.5}])
def test_at_most_one_rule(rules):
    with pytest.raises(NormalMeshError, match="give at most one of vertices, threshold, compression and detail"):
        reconstruct(MAP, **rules)


@pytest.mark.parametrize(
    "rule",
    [{"vertices": 3}, {"vertices": 2**31 - 1}, {"threshold": 1e-300}, {"threshold": 1e300}, {"compression": 1e-300},
     {"compression": 1 - 1e-16}],
)  # fmt: skip
def test_extreme_but_possible(rule):
    surface = reconstruct(MAP, **rule)
    assert_valid_surface(surface, MAP)
    assert 3 <= len(surface.vertices) <= 21 * 21


def test_memory_is_estimated_for_vertices_that_the_mesh_can_have():
    assert not reconstruct(MAP, vertices=10**9, memory_limit=1e9).decimation.target_met


@pytest.mark.parametrize("vertices", [[], [5, 5], [3, 9], [9, 2], [9, math.nan], "95", None, 7, {9: 5}, np.ones(1)])
def test_impossible_levels(vertices):
    with pytest.raises(NormalMeshError, match="vertices"):
        reconstruct_levels(MAP, vertices)


@pytest.mark.parametrize("bound", [0, -1, math.nan, math.inf, "1"])
@pytest.mark.parametrize("name", ["max_angle", "max_error"])
def test_impossible_bounds(name, bound):
    with pytest.raises(NormalMeshError, match=f"{name} must be a positive number"):
        reconstruct_within(MAP, **{name: bound})


@pytest.mark.parametrize("name", ["max_angle", "max_error"])
def test_unreachable_bounds_give_the_best_surface(name):
    with pytest.warns(ShortfallWarning, match="of 1e-300.* is out of reach: the best surface that was found"):
        surface = reconstruct_within(MAP, **{name: 1e-300})
    assert not surface.decimation.tolerance.met


def test_other_stopping_rules_are_refused_by_a_search():
    with pytest.raises(NormalMeshError, match="vertices is not for reconstruct_within"):
        reconstruct_within(MAP, max_angle=5.0, vertices=9)


@pytest.mark.parametrize("threads", [0, -1, 10**9, "a", 1.0, True, math.nan])
def test_impossible_numbers_of_threads(threads):
    with pytest.raises(NormalMeshError, match="threads"):
        reconstruct(MAP, vertices=9, threads=threads)


@pytest.mark.parametrize("limit", [0, -1, math.nan, "1GB", True])
def test_impossible_memory_limits(limit):
    with pytest.raises(NormalMeshError, match=r"memory_limit must be a positive number of bytes, or math\.inf"):
        reconstruct(MAP, vertices=9, memory_limit=limit)


NUMBERS = ("0", "-1", "nan", "inf", "-inf", "1e400", "x", "", "0x10")
WRONG = {
    "--compression": (*NUMBERS, "100", "101", "100%"),
    "--vertices": (*NUMBERS, "1", "2", "5.0"),
    "--threshold": NUMBERS,
    "--max-angle": NUMBERS,
    "--max-error": NUMBERS,
    "--lod": (*NUMBERS, "1", "0%", "101%", ",", "9,,5", "9" * 30),
    "--focal-px": NUMBERS,
    "--pixel-size": NUMBERS,
    "--distance": NUMBERS,
    "--threads": NUMBERS,
    "--memory-limit": tuple(number for number in NUMBERS if number != "inf"),
}


@pytest.mark.parametrize("option", WRONG)
def test_options_of_the_command_line(option, tmp_path):
    """Wrong usage gives status 2 and a message that names the option, and no file is written."""
    for value in WRONG[option]:
        result = invoke("reconstruct", tmp_path / "none.png", "-o", tmp_path / "out.glb", option, value)
        assert result.exit_code == 2, (value, result.output)
        assert option in result.output
        assert not (tmp_path / "out.glb").exists()
