"""KernelCache: compiled kernels on disk, for later runs.

Numba's own cache fails where a file of it is damaged or the disk is full, mixes up kernels when two processes fill it
at once, and does not notice that a kernel or a constant of another file, which became part of this one, has changed.
Here each compiled kernel is a file of its own that says what it was made from; what cannot be read is compiled again,
what cannot be written is not kept. Numba says where files go: ``NUMBA_CACHE_DIR``, ``__pycache__``, or the user's
folder for caches.
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
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, dumps

from normalmesh.errors import NormalMeshWarning
from normalmesh.runtime.temporary_files import replace_content

HASH = hashlib.sha256().digest_size


def cache_of(dispatcher: Any) -> KernelCache | NoCache:
    """Return where compiled versions of a kernel are kept."""
    try:
        return KernelCache(dispatcher)
    except RuntimeError:  # Numba finds no folder
        return NoCache()


def _at_home(locator: Any) -> Any:
    """Numba's way to the user's folder for caches, but only if there is one: else it is ``~`` in the current folder."""

    class AtHome(locator):
        def ensure_cache_path(self) -> None:
            if not os.path.isabs(self.get_cache_path()):
                raise OSError("there is no home")
            super().ensure_cache_path()

    return AtHome


class _Places(CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012  # as Numba has it
        _at_home(locator) if "UserWide" in locator.__name__ else locator
        for locator in CompileResultCacheImpl._locator_classes
    ]


class KernelCache(FunctionCache):
    """The compiled versions of one kernel."""

    _impl_class = _Places

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self._files = _KernelFiles(Path(self.cache_path), self._impl.filename_base, dispatcher)
        self._cache_file = self._files  # type: ignore[assignment]

    @cached_property
    def was_filled(self) -> bool:
        """Whether, when this is first asked, there is a compiled version of the kernel as it is now."""
        return self._files.any()

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except OSError as error:
            _warn_not_kept(f"in {self.cache_path} ({error.strerror or error})")


class NoCache(NullCache):
    """Keeps nothing."""

    def save_overload(self, signature: Any, compiled: Any) -> None:
        _warn_not_kept("anywhere")


class _KernelFiles:
    """A file for each set of argument types and processor.

    It holds two hashes, of what the kernel was made from and of the rest of the file; its key; and the code.
    """

    def __init__(self, folder: Path, name: str, dispatcher: Any) -> None:
        self._folder, self._name, self._dispatcher = folder, name, dispatcher

    def load(self, key: Any) -> Any:
        """Return what was saved for a key, or None."""
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
        rest = pickle.dumps((repr(key), dumps(code)))
        replace_content(self._path(key), self._made_from + hashlib.sha256(rest).digest() + rest)

    def any(self) -> bool:
        """Whether there is a file of the kernel as it is now, for some types."""
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
        """A hash of Numba's release, of the kernel, and of all that becomes part of it."""
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
    """Return the names from outside that a function uses, such as ``CUT`` or ``np.pi``, and their values."""
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
    yield code.co_code, code.co_names, code.co_varnames
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            yield _described(constant)


def _described(value: Any) -> str:
    """Return a text that is the same in each process, and another one for another value."""
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
    """Once for each reason."""
    warnings.warn(
        f"compiled kernels cannot be kept {where}, so that each run compiles them again; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        NormalMeshWarning,
        stacklevel=2,
    )
