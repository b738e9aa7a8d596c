"""What becomes part of a compiled kernel, as text: a kernel must be compiled again when any of it changes.

These are the kernel and those that it calls, directly or not, their options, the constants that they use, the fields of
named tuples, the settings of Numba, and the releases of Numba, LLVM and NumPy.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import config

#: Settings of Numba that change machine code. The processor is part of Numba's own key.
SETTINGS = (
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "EXTEND_VARIABLE_LIFETIMES",
    "USING_SVML",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
)
#: Packages whose functions Numba replaces by its own.
REPLACED = ("numpy", "numba", "math", "cmath", "builtins", "operator")


def compiler_settings() -> str:
    """Describe the compiler: releases, and settings that change machine code."""
    releases = numba.__version__, llvmlite.__version__, np.__version__
    return repr((releases, [(name, getattr(config, name, None)) for name in SETTINGS]))


def type_text(kind: Any) -> str:
    """Return a text that differs for different Numba types; that of Numba itself omits the fields of named tuples."""
    inside = getattr(kind, "types", ()) or [each for each in (getattr(kind, "dtype", None),) if each is not None]
    texts = [repr(kind), *map(type_text, inside)]
    if isinstance(kind, types.BaseNamedTuple):
        texts.append(_described(kind.instance_class))  # type: ignore[attr-defined]  # of both of its kinds
    return f"{type(kind).__name__}({', '.join(texts)})"


def parts(dispatcher: Any) -> Iterator[str]:
    """Describe a kernel, the kernels that it calls, directly or not, and the constants that they use."""
    waiting = [dispatcher]
    for each in waiting:
        function = getattr(each, "py_func", each)
        inner = getattr(each, "dispatcher", each)
        for options in (getattr(inner, "targetoptions", {}), getattr(inner, "locals", {})):
            yield repr(sorted((name, _described(value)) for name, value in options.items()))
        constants = [*names_used(function), ("defaults", function.__defaults__), ("", function.__kwdefaults__)]
        for name, value in constants:
            for content in _contents(value):
                if _is_compiled(content) and content not in waiting:
                    waiting.append(content)
                yield f"{name} {_described(content)}"
        yield from map(repr, _instructions(function.__code__))


def names_used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the global and nonlocal names that a function uses, such as ``CUT`` or ``np.pi``, and their values.

    Names used by functions within it, such as comprehensions, are included.
    """
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    names = list(_names(code))
    for name in names:
        if name in function.__globals__:
            yield from _attributes(name, function.__globals__[name], names)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in a function and in the functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _attributes(name: str, value: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield a value, or for a module its attributes, and those of its modules, that are among the names."""
    if not isinstance(value, ModuleType):
        yield name, value
        return
    for part in dict.fromkeys(names):
        # A path that comes back to the name that it began with goes around in circles.
        if part in vars(value) and part not in name.split("."):
            yield from _attributes(f"{name}.{part}", vars(value)[part], names)


def _is_compiled(value: Any) -> bool:
    """Return whether a value is a kernel, or a function that becomes part of kernels."""
    if hasattr(value, "py_func"):
        return True
    return isinstance(value, FunctionType) and value.__module__.partition(".")[0] not in REPLACED


def _contents(value: Any) -> Iterator[Any]:
    """Yield a value, and the values in a tuple, list or dictionary, after its type and its number of values."""
    if isinstance(value, Mapping):
        value = [each for item in value.items() for each in item]
    if isinstance(value, tuple | list):
        yield f"{type(value).__qualname__} {getattr(value, '_fields', '')} {len(value)}"
        for each in value:
            yield from _contents(each)
    else:
        yield value


def _instructions(code: CodeType) -> Iterator[Any]:
    """Yield the bytecode, names and constants of a function and of the functions within it."""
    yield code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            yield from map(_described, _contents(constant))


def _described(value: Any) -> str:
    """Return a text that is the same in all processes, and differs for different values."""
    kind = type(value).__qualname__
    if isinstance(value, np.ndarray):
        return f"{kind} {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, set | frozenset):
        return f"{kind} {sorted(map(_described, value))}"
    if isinstance(value, enum.EnumMeta):
        return f"{value.__module__}.{value.__qualname__} {list(value)}"
    if name := getattr(value, "__qualname__", getattr(value, "__name__", None)):
        fields = getattr(value, "_fields", ""), getattr(value, "_field_defaults", "")
        return f"{getattr(value, '__module__', '')}.{name} {fields}"
    return f"{kind} {value!r}"
