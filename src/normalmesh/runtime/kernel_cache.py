"""KernelCache: compiled kernels on disk, for later runs.

Numba's own cache fails where a file of it is damaged or the disk is full, mixes up kernels when two processes fill it
at once, and does not notice that a kernel of another file, which became part of this one, has changed. Here each
compiled kernel is a file of its own that says what it is; what cannot be read is compiled again, what cannot be written
is not kept. Numba says where files go: ``NUMBA_CACHE_DIR``, ``__pycache__``, or the user's folder for caches.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, dumps
from numba.core.runtime import rtsys

from normalmesh.errors import NormalMeshWarning
from normalmesh.runtime.temporary_files import replace_content

CHECKSUM = hashlib.sha256().digest_size


def cache_of(function: Callable[..., Any], options: str = "", complete: bool = False) -> KernelCache | NoCache:
    """Where compiled versions of a function are kept; those compiled with other options have another name.

    ``complete`` says that they hold all that they call, as those of :mod:`normalmesh.runtime.compiler` do.
    """
    try:
        return KernelCache(function, options, complete)
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
    """The compiled versions of one function."""

    _impl_class = _Places

    def __init__(self, function: Callable[..., Any], options: str, complete: bool) -> None:
        super().__init__(function)
        self._complete = complete
        stamp = (numba.__version__, self._impl.locator.get_source_stamp(), _kernel_sources())
        self._cache_file = _KernelFiles(Path(self.cache_path), self._impl.filename_base + options, stamp)  # type: ignore[assignment]

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        if not self._complete:
            return super().load_overload(signature, target_context)
        # Numba would import all that compiling needs.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)

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
    """A file for each set of argument types and processor: a checksum, what the code was made from, and the code."""

    def __init__(self, folder: Path, name: str, stamp: tuple[Any, ...]) -> None:
        self._folder, self._name, self._stamp = folder, name, stamp

    def load(self, key: Any) -> Any:
        """What was saved for a key, or None."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        # Damaged machine code must never run.
        if hashlib.sha256(content[CHECKSUM:]).digest() != content[:CHECKSUM]:
            return None
        made_from, code = pickle.loads(content[CHECKSUM:])
        return pickle.loads(code) if made_from == self._made_from(key) else None

    def save(self, key: Any, code: Any) -> None:
        content = pickle.dumps((self._made_from(key), dumps(code)))
        replace_content(self._path(key), hashlib.sha256(content).digest() + content)

    def _path(self, key: Any) -> Path:
        signature, processor, _ = key
        kind = hashlib.sha256(repr((signature, processor)).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}.{kind}.nbc"

    def _made_from(self, key: Any) -> bytes:
        return hashlib.sha256(repr((key, self._stamp)).encode()).digest()


@cache
def _kernel_sources() -> bytes:
    """One hash of all files with kernels: a compiled kernel contains those that it calls."""
    root = Path(__file__).parents[1]
    content = hashlib.sha256()
    for path in sorted(root.rglob("_[!_]*.py")):
        content.update(path.read_bytes())
    return content.digest()


@cache
def _warn_not_kept(where: str) -> None:
    """Once for each reason."""
    warnings.warn(
        f"compiled kernels cannot be kept {where}, so that each run compiles them again; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        NormalMeshWarning,
        stacklevel=2,
    )
