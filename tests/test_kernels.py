"""Kernels compile, with our compiler or Numba's alone, to what they say."""

import numpy as np
import pytest
from numba import njit, prange

from normalmesh import _kernels
from normalmesh._kernels import KernelCompiler, inner, kernel


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


def test_errors_reach_the_caller():
    @kernel(cache=False)
    def half(whole, parts):
        return shared_out(whole, parts)

    assert half(7, 2) == 3
    with pytest.raises(ZeroDivisionError):
        half(7, 0)


def test_the_same_expression_on_other_types_is_another_one():
    @kernel(cache=False)
    def total(a, b):
        return a[0] + b[0] / 2, a[0] * b[0]

    assert total(np.array([1]), np.array([3])) == (2.5, 3)
    assert total(np.array([1j]), np.array([3.0])) == (1.5 + 1j, 3j)


def test_releases_of_numba_that_were_not_tested_compile_alone(monkeypatch):
    assert KernelCompiler in _kernels._compiled_by(KernelCompiler).values()
    monkeypatch.setattr(_kernels, "TESTED", ((0, 1), (0, 2)))
    assert _kernels._compiled_by(KernelCompiler) == {}

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
