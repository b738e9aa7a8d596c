"""Test that the inner kernels of the rooms with the formulas compile for graphics cards."""

import importlib
import math
import pkgutil

import numpy as np
import pytest
from numba import float64, int64
from numba.core.errors import NumbaError

from device_kernels import DeviceTwins, argument_types, called_by
from normalmesh import NormalMap, Orthographic, Perspective, decimate, find_jumps, integrate_pixels, reconstruct
from normalmesh.decimation.thinning import Part
from normalmesh.runtime.compilation import kernels
from normalmesh.runtime.kernels import InnerKernel, inner
from periodic_maps import map_of_slopes, waves

pytest.importorskip("numba_cuda")

ROOMS = ["decimation", "facets", "integration", "jumps"]
SIDE = 64


def inner_kernels(room):
    """Return the inner kernels of a room."""
    package = importlib.import_module(f"normalmesh.{room}")
    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    members = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return {each for each in members if isinstance(each, InnerKernel) and each.__module__ in names}


def stripes(camera):
    """Return a disc with stripes that rise or fall towards the top from a flat lower half, with jumps between them."""
    v, u = np.mgrid[:SIDE, :SIDE] + 0.5
    sign = np.where(u // 8 % 2 == 0, 1.0, -1.0) * (v < SIDE / 2)
    normals = np.stack([np.zeros_like(u), -sign, np.ones_like(u)], axis=-1)
    inside = np.hypot(u - SIDE / 2, v - SIDE / 2) < 0.47 * SIDE
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), inside, camera)


def nothing(vertices):
    return np.zeros(len(vertices), bool)


@pytest.fixture(scope="module")
def types():
    """The types of the arguments of inner kernels in small reconstructions."""
    normal_map = stripes(Orthographic())
    jumps = find_jumps(normal_map)
    surface = reconstruct(normal_map, vertices=300, jumps=jumps)
    Part.of_faces(surface, surface.faces, surface.walls, nothing).thinned(surface, nothing)
    integrate_pixels(normal_map, jumps=jumps)
    reconstruct(map_of_slopes(*waves((48, 48))[1:]), vertices=60, tileable=True)
    # Large enough for a coarse start mesh.
    decimate(map_of_slopes(*waves((260, 260))[1:]), threshold=2.0)
    reconstruct(stripes(Perspective(60, 60, SIDE / 2, SIDE / 2)), vertices=300)
    return argument_types([each for each in kernels if each.py_func.__module__.split(".")[1] in ROOMS])


@pytest.mark.parametrize("room", ROOMS)
def test_inner_kernels_compile_for_cards(room, types):
    """Kernels that others call are compiled as parts of these."""
    members = inner_kernels(room)
    assert {each.__name__ for each in members if each.dispatcher not in types} == set(), "not called above"
    parts = {part for each in members for part in called_by(each.py_func).values()}
    twins = DeviceTwins()
    for each in members - parts:
        for arguments in types[each.dispatcher]:
            assert each.__name__ in twins.ptx(each, arguments)


@inner(allocates=True)
def scratch(count):
    return np.empty(count).size


@inner(allocates=True)
def using_scratch(count):
    return scratch(count)


@inner
def rounded_place(value, table):
    return table[math.floor(value)]


@pytest.mark.parametrize(
    ("kernel", "arguments", "problem"),
    [(using_scratch, (int64,), "empty"), (rounded_place, (float64, float64[::1]), "getitem")],
)
def test_what_cards_cannot_do_is_refused(kernel, arguments, problem):
    with pytest.raises(NumbaError, match=problem):
        DeviceTwins().ptx(kernel, arguments)
