"""Test that kernels compute what they should, release what they allocate, and reject wrong options."""

import gc
import importlib
import os
import pkgutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.runtime import _nrt_python, rtsys

import normalmesh
from normalmesh.runtime.compilation import compilation_reported
from normalmesh.runtime.kernels import InnerKernel, inner, kernel


@inner
def doubled(value):
    return 2 * value


def test_inner_kernels_are_compiled_once_for_all_integer_types():
    @njit
    def kernel(small, large):
        return doubled(small[0]) + doubled(large[0]) + doubled(3)

    assert kernel(np.ones(1, np.int32), np.ones(1, np.int64)) == 10
    assert len(doubled.dispatcher.signatures) == 1


def test_inner_kernels_run_compiled_when_python_calls_them():
    """Compiled integers wrap around; those of Python do not."""

    @inner
    def wrapped(value):
        return value + np.int64(2**63 - 1)

    assert wrapped(1) == -(2**63)
    assert wrapped.__name__ == "wrapped"
    assert doubled.py_func("ab") == "abab"


@inner(forceinline=True)
def doubled_row(table, row):
    for column in range(table.shape[1]):
        table[row, column] = doubled(table[row, column])


@inner
def checked_root(value):
    if value < 0:
        raise ValueError("negative")
    return value**0.5


@inner
def quotient(a, b):
    return a / b


def test_kernels_call_inner_kernels_that_call_others():
    @kernel(cache=False)
    def all_rows(table):
        for row in range(len(table)):
            doubled_row(table, row)

    table = np.arange(6.0).reshape(2, 3)
    all_rows(table)
    assert np.array_equal(table, 2 * np.arange(6.0).reshape(2, 3))


def test_errors_reach_the_caller():
    @kernel(cache=False)
    def twice_the_root(value):
        return 2 * checked_root(value)

    assert twice_the_root(4.0) == 4.0
    with pytest.raises(ValueError, match="negative"):
        twice_the_root(-1.0)


def test_divisions_by_zero_are_those_of_numpy():
    assert quotient(1.0, 0.0) == np.inf
    assert np.isnan(quotient(0.0, 0.0))


@inner(allocates=True)
def first_row(table):
    return table[0]


@inner
def both_ends(row):
    return row[:1], row[-1:]


@inner
def summed(row):
    total = row[0] * 0
    for value in row[1:]:
        total += value
    first, last = both_ends(row)
    return total + first[0] + last[0] - row[-1]


def borrowing(table):
    return summed(table[1]) + summed(table[:, 0])


def handing_back(table):
    return first_row(table), table.T


def picking(table):
    odd = table[0][np.array([1, 2])]
    return summed(odd)


def making(table):
    rows = np.zeros(len(table))
    for i in range(len(table)):
        rows[i] = summed(table[i])
    return rows


@pytest.mark.parametrize("function", [borrowing, handing_back, picking, making])
def test_references_are_counted_correctly(function):
    compiled = kernel(cache=False)(function)
    table = np.arange(6.0).reshape(2, 3)
    compiled(table)
    _nrt_python.memsys_enable_stats()
    references, before = sys.getrefcount(table), rtsys.get_allocation_stats()
    for _ in range(10):
        results, expected = compiled(table), function(table)
        assert str(results) == str(expected)
    del results, expected
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert sys.getrefcount(table) == references
    assert after.alloc - before.alloc == after.free - before.free


@inner
def makes(table):
    return np.zeros(len(table))[0]


@inner
def copies(table):
    return table[0][np.array([1, 2])].sum()


@inner
def hands_on(table):
    return first_row(table)[0]


@inner
def returns_its_own(table):
    return table


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (makes, "empty"),
        (copies, "array"),
        (hands_on, "first_row returns arrays to hands_on"),
        (returns_its_own, "returns arrays to"),
        (both_ends, "returns arrays to"),
    ],
)
def test_inner_kernels_that_create_or_return_arrays_need_allocates(wrong, message):
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises((NumbaError, TypeError), match=message):
        wrong(np.ones((2, 3)))
    # The error does not leave interrupts or the garbage collector switched off.
    assert signal.getsignal(signal.SIGINT) is handler
    assert gc.isenabled()


def test_options_do_not_apply_to_called_kernels():
    """The result is 0 only if the terms of the sum are not reordered."""

    @inner
    def left_over(a, b):
        return (a + b) - b

    @kernel(cache=False, fastmath=True)
    def fast(a, b):
        return left_over(a, b)

    assert fast(1.0, 1e30) == 0


def test_kernels_are_compiled_for_each_combination_of_types():
    @kernel(cache=False)
    def total(a, b):
        return a[0] + b[0] / 2, a[0] * b[0]

    assert total(np.array([1]), np.array([3])) == (2.5, 3)
    assert total(np.array([1j]), np.array([3.0])) == (1.5 + 1j, 3j)


def test_no_kernel_has_fast_arithmetic():
    """Else releases of Numba, and processes that compile a kernel and those that load it, could round differently."""
    for module in pkgutil.walk_packages(normalmesh.__path__, "normalmesh."):
        if module.name.rpartition(".")[2].startswith("_") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = {
        getattr(value, "dispatcher", value)
        for name, module in list(sys.modules.items())
        if name.startswith("normalmesh.")
        for value in vars(module).values()
        if isinstance(value, InnerKernel | Dispatcher)
    }
    assert len(found) > 200
    assert [each.__qualname__ for each in found if each.targetoptions["fastmath"]] == []


def test_compilations_are_reported():
    reports = []

    @kernel(cache=False)
    def twice(value):
        return doubled(value)

    with compilation_reported(lambda number, total: reports.append((number, total))):
        assert twice(1) == 2
        assert twice(2) == 4
    twice(2.0)
    assert [number for number, _ in reports] == [1]
    assert reports[0][1] >= 1


#: Reconstructs and integrates a small map, and saves the heights of its pixels.
PLAIN = """
import sys, numpy as np, normalmesh as nm
v, u = np.indices((12, 12)) - 5.5
camera = nm.Perspective(40.0, 40.0, 6.0, 6.0) if sys.argv[2] == "perspective" else nm.Orthographic()
slopes = np.where(u > 0, 0.1, -0.1) * u, -0.05 * v
given = nm.NormalMap(np.stack([*slopes, np.ones_like(u)], axis=-1), np.hypot(u, v) < 6.5, camera)
mesh = nm.reconstruct(given, vertices=25, discontinuities=True)
np.save(sys.argv[1], [mesh.depth_map((12, 12)), nm.integrate_pixels(given, discontinuities=True)])
"""


@pytest.mark.parametrize("camera", ["orthographic", "perspective"])
def test_kernels_run_as_plain_python(camera, tmp_path):
    heights = []
    for disabled in "01":
        path = tmp_path / f"{disabled}.npy"
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-W", "error::RuntimeWarning", "-c", PLAIN, str(path), camera]
        subprocess.run(command, env=environment, check=True, timeout=120)
        heights.append(np.load(path))
    assert np.isfinite(heights[0]).sum() > 200
    assert np.allclose(*heights, atol=1e-4, equal_nan=True)
