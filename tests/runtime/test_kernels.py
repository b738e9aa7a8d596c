"""Kernels compile, with our compiler or Numba's alone, to what they say."""

import sys

import numpy as np
import pytest
from numba import njit, prange
from numba.core import errors
from numba.core.runtime import _nrt_python, rtsys

from normalmesh.runtime import kernels
from normalmesh.runtime.kernels import inner, kernel


@inner
def doubled(value):
    return 2 * value


def test_inner_kernels_are_compiled_once_for_whole_numbers_of_all_kinds():
    @njit
    def kernel(small, large):
        return doubled(small[0]) + doubled(large[0]) + doubled(3)

    assert kernel(np.ones(1, np.int32), np.ones(1, np.int64)) == 10
    assert len(doubled._kernel.signatures) == 1


def test_inner_kernels_are_plain_functions_in_python():
    assert doubled("ab") == "abab"
    assert doubled.__name__ == "doubled"


@inner(forceinline=True)
def doubled_row(table, row):
    for column in range(table.shape[1]):
        table[row, column] = doubled(table[row, column])


@inner
def shared_out(whole, parts):
    return whole // parts


@pytest.mark.parametrize("parallel", [False, True])
def test_kernels_call_inner_kernels_that_call_others(parallel):
    @kernel(cache=False, parallel=parallel)
    def all_rows(table):
        for row in prange(len(table)):
            doubled_row(table, row)

    table = np.arange(6.0).reshape(2, 3)
    all_rows(table)
    assert np.array_equal(table, 2 * np.arange(6.0).reshape(2, 3))


def test_numbas_messages_keep_their_colours():
    """They are left out only while a kernel is compiled."""
    before = errors.termcolor()

    @kernel(cache=False)
    def same(value):
        return value

    assert same(1) == 1
    assert errors.termcolor() is before


def test_errors_reach_the_caller():
    @kernel(cache=False)
    def half(whole, parts):
        return shared_out(whole, parts)

    assert half(7, 2) == 3
    with pytest.raises(ZeroDivisionError):
        half(7, 0)


@inner
def first_row(table):
    return table[0]


@inner
def summed(row):
    total = row[0] * 0
    for value in row[1:]:
        total += value
    return total + row[0]


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
def test_no_reference_is_lost_or_left(function):
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


def test_only_inner_kernels_are_called_by_kernels():
    @kernel(cache=False)
    def outer(value):
        return value + 1

    @kernel(cache=False)
    def caller(value):
        return outer(value)

    with pytest.raises(TypeError, match=r"outer.* called by another kernel"):
        caller(1)


def test_the_same_expression_on_other_types_is_another_one():
    @kernel(cache=False)
    def total(a, b):
        return a[0] + b[0] / 2, a[0] * b[0]

    assert total(np.array([1]), np.array([3])) == (2.5, 3)
    assert total(np.array([1j]), np.array([3.0])) == (1.5 + 1j, 3j)


def test_releases_of_numba_that_were_not_tested_compile_alone(monkeypatch):
    monkeypatch.setattr(kernels, "TESTED", ((0, 1), (0, 2)))

    @inner
    def tripled(value):
        return 3 * value

    @kernel(cache=False)
    def all_tripled(values):
        for i in range(values.size):
            values[i] = tripled(values[i])

    values = np.arange(4)
    all_tripled(values)
    assert np.array_equal(values, 3 * np.arange(4))
