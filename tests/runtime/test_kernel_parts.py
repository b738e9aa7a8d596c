"""Test that kernels know all that they contain: no change of a part goes unnoticed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numba import typeof
from numba.core import config

from normalmesh.runtime import kernel_parts

#: A module whose kernel uses constants in every way, none of which its own bytecode contains.
MODULE = """
from collections import namedtuple
from enum import IntEnum

import numpy as np

import package
import package.nested
from normalmesh.runtime.kernels import inner, kernel

Pair = namedtuple("Pair", "x y", defaults=(1.5,))
TABLE = np.linspace(0, 1, 5000)
TABLES = (np.linspace(0, 2, 5000), "text")
PAIR = Pair(np.float64(3), 4)
WITHIN, SMALL = 6, np.float32(7)

class Kind(IntEnum):
    FIRST = 8

def plain(value):
    return value + 9

@inner
def with_default(value, shift=10):
    return value + shift

KERNELS = (with_default,)

def made(factor):
    @kernel
    def total(values, plus=11):
        inside = [WITHIN * value for value in values]
        pair = Pair(values[0])
        return (
            factor + sum(inside) + package.nested.DEEP + TABLE[1] + TABLES[0][1] + PAIR.x + SMALL + Kind.FIRST
            + plain(1) + KERNELS[0](2) + pair.y + with_default(3)
        )

    return total

total = made(12)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "nested.py").write_text("DEEP = 13\n")
    (tmp_path / "many_parts.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def described() -> list[str]:
    """Import the module again, and return the parts of its kernel."""
    for name in ("many_parts", "package", "package.nested"):
        sys.modules.pop(name, None)
    from many_parts import total  # type: ignore[import-not-found]

    return list(kernel_parts.parts(total))


def test_the_parts_are_the_same_each_time(folder: Path) -> None:
    before = described()
    assert before == described()
    assert not any(" at 0x" in part for part in before)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("package/nested.py", "13", "14"),
        ("many_parts.py", "WITHIN, SMALL = 6", "WITHIN, SMALL = 66"),
        ("many_parts.py", "np.float32(7)", "np.float64(7)"),
        ("many_parts.py", "defaults=(1.5,)", "defaults=(2.5,)"),
        ("many_parts.py", '"x y"', '"z y"'),
        ("many_parts.py", "np.linspace(0, 1, 5000)", "np.linspace(0, 1, 5000) + 1e-12 * (np.arange(5000) == 2500)"),
        ("many_parts.py", "np.linspace(0, 2, 5000)", "np.linspace(0, 2, 5000) + 1e-12 * (np.arange(5000) == 2500)"),
        ("many_parts.py", "np.float64(3), 4", "np.float64(3), 5"),
        ("many_parts.py", "FIRST = 8", "FIRST = 88"),
        ("many_parts.py", "value + 9", "value + 99"),
        ("many_parts.py", "shift=10", "shift=1010"),
        ("many_parts.py", "plus=11", "plus=1111"),
        ("many_parts.py", "made(12)", "made(1212)"),
        ("many_parts.py", "@kernel\n", "@kernel(boundscheck=True)\n"),
        ("many_parts.py", "@inner\n", "@inner(forceinline=True)\n"),
    ],
)
def test_a_change_of_any_part_is_noticed(folder: Path, file: str, before: str, after: str) -> None:
    unchanged = described()
    source = (folder / file).read_text()
    assert before in source
    (folder / file).write_text(source.replace(before, after) + "# Another size, for Python's own cache.\n")
    assert described() != unchanged


@pytest.mark.parametrize(("name", "value"), [("BOUNDSCHECK", 1), ("OPT", 0), ("SLP_VECTORIZE", 1)])
def test_a_change_of_a_setting_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    before = kernel_parts.compiler_settings()
    assert getattr(config, name) != value
    monkeypatch.setattr(config, name, value)
    assert kernel_parts.compiler_settings() != before


def test_all_settings_exist() -> None:
    """A setting that Numba renames must be found under its new name."""
    assert [name for name in kernel_parts.SETTINGS if not hasattr(config, name)] == []


def test_types_of_named_tuples_have_fields() -> None:
    """Numba's own text of a type has the name and the types of a named tuple only."""
    from collections import namedtuple  # typing.NamedTuple cannot have one name twice

    pairs = [namedtuple("Pair", fields) for fields in ("x y", "y x")]
    for values in [(1.0, 2.0), (1.0, 2)]:
        kinds = [typeof(pair(*values)) for pair in pairs]
        assert repr(kinds[0]) == repr(kinds[1])
        assert len(set(map(kernel_parts.type_text, kinds))) == 2
        nested = [typeof((np.zeros(2), (pair(*values),))) for pair in pairs]
        assert len(set(map(kernel_parts.type_text, nested))) == 2
