"""KernelCache: compiled kernels on disk, for later runs.

Numba's own cache raises if one of its files is damaged or the disk is full, confuses kernels if two processes fill it
at once, and does not notice changes of kernels and constants that a kernel imports from other files. Here each compiled
kernel is a separate file with a hash of everything that it was compiled from. A kernel whose file cannot be read, or
does not contain what it should, is compiled again; one that cannot be written is skipped with a warning. Of several
processes that need a kernel at the same time, one compiles it, and the others wait for its file. The folder is
the first of those that Numba tries to which no other user can write: ``NUMBA_CACHE_DIR``, ``__pycache__``, or the
user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import warnings
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.serialize import dumps

from normalmesh.errors import NormalMeshWarning
from normalmesh.runtime.file_lock import FileLock
from normalmesh.runtime.kernel_parts import compiler_settings, parts, type_text
from normalmesh.runtime.temporary_files import replace_content
from normalmesh.runtime.trusted_files import check_folder, read_trusted

#: Number of bytes of a hash.
HASH = hashlib.sha256().digest_size
#: Seconds to wait for a process that compiles a kernel: no kernel takes that long.
COMPILING = 60.0


def cache_of(dispatcher: Any) -> KernelCache | NoCache:
    """Return the cache of the compiled versions of a kernel."""
    try:
        return KernelCache(dispatcher)
    except RuntimeError:  # Numba finds no folder
        return NoCache()


def _checked(locator: Any) -> Any:
    """Return a locator of Numba that fails if there is no home folder, or if other users can write to the folder.

    Numba's own would create ``~`` in the current folder.
    """

    class Checked(locator):  # type: ignore[misc]  # a class of Numba
        def ensure_cache_path(self) -> None:
            path = Path(self.get_cache_path())
            if "UserWide" in locator.__name__:
                _make_private(path)
            path.mkdir(0o755, parents=True, exist_ok=True)
            check_folder(path)
            super().ensure_cache_path()

    return Checked


def _make_private(path: Path) -> None:
    """Forbid others to write to the user's own cache folder, which Numba allows them if the umask does."""
    if not path.is_absolute():
        raise OSError("there is no home")
    if path.is_dir() and hasattr(os, "geteuid") and path.stat().st_uid == os.geteuid():
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))


class _Places(CompileResultCacheImpl):
    """The folders that Numba tries in turn."""

    _locator_classes = [_checked(locator) for locator in CompileResultCacheImpl._locator_classes]  # noqa: RUF012  # overrides a list of Numba


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

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        found = self._loaded(signature, target_context)
        if found is None and self._files.take_turn(self._key_of(signature, target_context)):
            # Another process may have compiled it meanwhile.
            found = self._loaded(signature, target_context)
            if found is not None:
                self._files.end_turn()
        return found

    def _key_of(self, signature: Any, target_context: Any) -> Any:
        return self._index_key(signature, target_context.codegen())  # type: ignore[no-untyped-call]

    def _loaded(self, signature: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(signature, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # whatever loading a file that is not a kernel may raise
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]
        except OSError as error:
            _warn_not_kept(f"in {self.cache_path} ({error.strerror or error})")
        finally:
            self._files.end_turn()


class NoCache(NullCache):
    """A cache that keeps nothing, and warns once."""

    def save_overload(self, signature: Any, compiled: Any) -> None:
        _warn_not_kept("anywhere")


class _KernelFiles:
    """The files of a kernel, one for each combination of argument types, processor and settings.

    A file holds the hash of what the kernel was compiled from, the hash of the key, the hash of the code, and the code.
    """

    def __init__(self, folder: Path, name: str, dispatcher: Any) -> None:
        self._folder, self._name, self._dispatcher = folder, name, dispatcher
        self._lock: FileLock | None = None

    def load(self, key: Any) -> Any:
        """Return the code saved for a key, or None."""
        text = _key_text(key)
        content = read_trusted(self._path(text)) if text else None
        if content is None:
            return None
        header, code = content[: 3 * HASH], content[3 * HASH :]
        # Damaged machine code must never run.
        return pickle.loads(code) if header == self._header(text, code) else None

    def save(self, key: Any, code: Any) -> None:
        """Write the code for a key."""
        if text := _key_text(key):
            content = dumps(code)
            replace_content(self._path(text), self._header(text, content) + content, mode=0o644)

    def take_turn(self, key: Any) -> bool:
        """Wait until no other process compiles the code for a key, and let others wait for this one.

        Return False if that is not possible: where folder or disk do not allow locks, several compile the same.
        """
        self.end_turn()
        if text := _key_text(key):
            with suppress(OSError):
                lock = FileLock(self._path(text).with_suffix(".lock"), temporary=True)
                if lock.take(COMPILING):
                    self._lock = lock
        return self._lock is not None

    def end_turn(self) -> None:
        """Let other processes compile."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def any(self) -> bool:
        """Return whether there is a file of the current kernel for any types."""
        files = self._folder.glob(f"{self._name}.*.nbc")
        return any(read_trusted(path, HASH) == self._made_from for path in files)

    def _header(self, key: str, code: bytes) -> bytes:
        return self._made_from + _hash(key) + hashlib.sha256(code).digest()

    def _path(self, key: str) -> Path:
        return self._folder / f"{self._name}.{_hash(key).hex()[:16]}.nbc"

    @cached_property
    def _made_from(self) -> bytes:
        """Return a hash of the compiler, of the kernel, and of all that becomes part of it."""
        return _hash("\n".join([compiler_settings(), *parts(self._dispatcher)]))


def _key_text(key: Any) -> str:
    """Return the types of the arguments, the processor and the settings; empty if a type is of one process only.

    Such is the type of a kernel that is an argument: its text has an address, which another kernel may have next time.
    """
    signature, processor, _ = key
    text = "\n".join([*map(type_text, signature), repr(processor), compiler_settings()])
    return "" if " at 0x" in text else text


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@cache
def _warn_not_kept(where: str) -> None:
    """Warn that kernels cannot be kept, once for each reason."""
    warnings.warn(
        f"compiled kernels cannot be kept {where}, so that each run compiles them again; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        NormalMeshWarning,
        stacklevel=2,
    )
