"""KernelCache: compiled kernels on disk, for later runs.

Numba's own cache raises if one of its files is damaged or the disk is full, confuses kernels if two processes fill it
at once, and does not notice changes of kernels and constants that a kernel imports from other files. Here each compiled
kernel is a separate file with a hash of everything that it was compiled from. A file that cannot be read is compiled
again; one that cannot be written is skipped with a warning. The folder is the one that Numba chooses:
``NUMBA_CACHE_DIR``, ``__pycache__``, or the user's cache folder.
"""

from __future__ import annotations

import enum
import hashlib
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.serialize import dumps

from normalmesh.errors import NormalMeshWarning
from normalmesh.runtime.temporary_files import replace_content

#: Number of bytes of a hash.
HASH = hashlib.sha256().digest_size


def cache_of(dispatcher: Any) -> KernelCache | NoCache:
    """Return the cache of the compiled versions of a kernel."""
    try:
        return KernelCache(dispatcher)
    except RuntimeError:  # Numba finds no folder
        return NoCache()


def _at_home(locator: Any) -> Any:
    """Return a locator of the user's cache folder that fails if there is no home folder.

    Numba's own would create ``~`` in the current folder.
    """

    class AtHome(locator):  # type: ignore[misc]  # a class of Numba
        def ensure_cache_path(self) -> None:
            if not os.path.isabs(self.get_cache_path()):
                raise OSError("there is no home")
            super().ensure_cache_path()

    return AtHome


class _Places(CompileResultCacheImpl):
    """The folders that Numba tries in turn."""

    _locator_classes = [  # noqa: RUF012  # overrides a list of Numba
        _at_home(locator) if "UserWide" in locator.__name__ else locator
        for locator in CompileResultCacheImpl._locator_classes
    ]


class KernelCache(FunctionCache):
    """The compiled versions of one kernel."""

    _impl_class = _Places

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)  # type: ignore[no-untyped-call]
        self._files = _KernelFiles(Path(self.cache_path), self._impl.filename_base, dispatcher)
        self._cache_file = self._files  # type: ignore[assignment]

    @cached_property
    def was_filled(self) -> bool:
        """Whether the cache held a compiled version of the current kernel when this was first read."""
        return self._files.any()

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]
        except OSError as error:
            _warn_not_kept(f"in {self.cache_path} ({error.strerror or error})")


class NoCache(NullCache):
    """A cache that keeps nothing, and warns once."""

    def save_overload(self, signature: Any, compiled: Any) -> None:
        _warn_not_kept("anywhere")


class _KernelFiles:
    """The files of a kernel, one for each combination of argument types and processor.

    A file holds the hash of what the kernel was compiled from, the hash of the rest of the file, the key, and the code.
    """

    def __init__(self, folder: Path, name: str, dispatcher: Any) -> None:
        self._folder, self._name, self._dispatcher = folder, name, dispatcher

    def load(self, key: Any) -> Any:
        """Return the code saved for a key, or None."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        made_from, checksum, rest = content[:HASH], content[HASH : 2 * HASH], content[2 * HASH :]
        # Damaged machine code must never run.
        if made_from != self._made_from or hashlib.sha256(rest).digest() != checksum:
            return None
        saved_key, code = pickle.loads(rest)
        return pickle.loads(code) if saved_key == repr(key) else None

    def save(self, key: Any, code: Any) -> None:
        """Write the code for a key."""
        rest = pickle.dumps((repr(key), dumps(code)))
        replace_content(self._path(key), self._made_from + hashlib.sha256(rest).digest() + rest)

    def any(self) -> bool:
        """Return whether there is a file of the current kernel for any types."""
        for path in self._folder.glob(f"{self._name}.*.nbc"):
            with suppress(OSError), path.open("rb") as file:
                if file.read(HASH) == self._made_from:
                    return True
        return False

    def _path(self, key: Any) -> Path:
        signature, processor, _ = key
        kind = hashlib.sha256(repr((signature, processor)).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}.{kind}.nbc"

    @cached_property
    def _made_from(self) -> bytes:
        """Return a hash of Numba's release, of the kernel, and of all that becomes part of it."""
        text = "\n".join([numba.__version__, *parts(self._dispatcher)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def parts(dispatcher: Any) -> Iterator[str]:
    """Describe a kernel, the kernels that it calls, directly or not, and the constants that they use."""
    waiting = [dispatcher]
    for each in waiting:
        options = getattr(each, "dispatcher", each).targetoptions
        yield repr(sorted((name, _described(value)) for name, value in options.items()))
        for name, value in names_used(each.py_func):
            if not hasattr(value, "py_func"):
                yield f"{name} {_described(value)}"
            elif value not in waiting:
                waiting.append(value)
        yield from map(repr, _instructions(each.py_func.__code__))


def names_used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the global and nonlocal names that a function uses, such as ``CUT`` or ``np.pi``, and their values."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{part}", vars(value)[part]) for part in code.co_names if part in vars(value))
        elif name in function.__globals__:
            yield name, value


def _instructions(code: CodeType) -> Iterator[Any]:
    """Yield the bytecode, names and constants of a function and of the functions within it."""
    yield code.co_code, code.co_names, code.co_varnames
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            yield _described(constant)


def _described(value: Any) -> str:
    """Return a text that is the same in all processes, and differs for different values."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, set | frozenset):
        return repr(sorted(map(repr, value)))
    if isinstance(value, enum.EnumMeta):
        return repr(list(value))
    if name := getattr(value, "__qualname__", getattr(value, "__name__", None)):
        return f"{getattr(value, '__module__', '')}.{name} {getattr(value, '_fields', '')}"
    return repr(value)


@cache
def _warn_not_kept(where: str) -> None:
    """Warn that kernels cannot be kept, once for each reason."""
    warnings.warn(
        f"compiled kernels cannot be kept {where}, so that each run compiles them again; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        NormalMeshWarning,
        stacklevel=2,
    )
