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
from typing import TYPE_CHECKING, Any, NamedTuple

from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.serialize import dumps

from normalmesh.errors import NormalMeshWarning
from normalmesh.runtime.kernel_parts import compiler_settings, parts, type_text
from normalmesh.runtime.temporary_files import remove_at_end, remove_now, replace_content
from normalmesh.runtime.trusted_files import check_folder, read_trusted

if TYPE_CHECKING:
    from filelock import BaseFileLock

#: Number of bytes of a hash.
HASH = hashlib.sha256().digest_size
#: Seconds to wait for a process that compiles a kernel: no kernel takes that long.
COMPILING = 60.0


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


class _Folder(CompileResultCacheImpl):
    """The first of Numba's folders that can be used; RuntimeError if there is none."""

    _locator_classes = [_checked(locator) for locator in CompileResultCacheImpl._locator_classes]  # noqa: RUF012  # overrides a list of Numba


class _Entry(NamedTuple):
    """The file of a kernel for some types, and its first bytes: hashes of what it is made from and of the types."""

    path: Path
    header: bytes


class KernelCache(NullCache):
    """The compiled versions of one kernel, each in a file: hashes of its sources, types and code, and the code."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._turn: BaseFileLock | None = None
        self._folder: _Folder | None = None
        with suppress(RuntimeError):
            self._folder = _Folder(dispatcher.py_func)  # type: ignore[no-untyped-call]

    @cached_property
    def was_filled(self) -> bool:
        """Whether the cache held a compiled version of the current kernel when this was first read."""
        if self._folder is None:
            return False
        files = Path(self._folder.locator.get_cache_path()).glob(f"{self._folder.filename_base}.*.nbc")
        return any(read_trusted(path, HASH) == self._made_from for path in files)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel compiled for a signature, or None, and then let other processes wait for this one."""
        target_context.refresh()
        entry = self._entry(signature, target_context.codegen())
        if entry is None:
            return None
        found = self._loaded(entry, target_context)
        if found is None and self._take_turn(entry):
            # Another process may have compiled it meanwhile.
            found = self._loaded(entry, target_context)
            if found is not None:
                self._end_turn()
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the kernel compiled for a signature."""
        entry = self._entry(signature, compiled.codegen)
        try:
            if self._folder is None:
                _warn_not_kept("anywhere")
            elif entry is not None and self._folder.check_cachable(compiled):  # type: ignore[no-untyped-call]
                self._folder.locator.ensure_cache_path()
                code = dumps(self._folder.reduce(compiled))  # type: ignore[no-untyped-call]
                content = entry.header + hashlib.sha256(code).digest() + code
                replace_content(entry.path, content, mode=0o644)
        except OSError as error:
            _warn_not_kept(f"in {entry.path.parent if entry else ''} ({error.strerror or error})")
        finally:
            self._end_turn()

    def _entry(self, signature: Any, codegen: Any) -> _Entry | None:
        """Return the file for a signature, a processor and settings; None if it must not be kept.

        Such is the type of a kernel that is an argument: its text has an address, which another one may have next time.
        """
        types = [*map(type_text, signature), repr(codegen.magic_tuple()), compiler_settings()]
        if self._folder is None or any(" at 0x" in text for text in types):
            return None
        key = _hash("\n".join(types))
        name = f"{self._folder.filename_base}.{key.hex()[:16]}.nbc"
        return _Entry(Path(self._folder.locator.get_cache_path()) / name, self._made_from + key)

    def _loaded(self, entry: _Entry, target_context: Any) -> Any:
        content = read_trusted(entry.path)
        if content is None:
            return None
        header, code = content[: 3 * HASH], content[3 * HASH :]
        # Damaged machine code must never run.
        if header != entry.header + hashlib.sha256(code).digest():
            return None
        with suppress(Exception):  # whatever loading a file that is not a kernel may raise
            return self._folder.rebuild(target_context, pickle.loads(code))  # type: ignore[union-attr]
        return None

    def _take_turn(self, entry: _Entry) -> bool:
        """Wait until no other process compiles a kernel, and let others wait for this one.

        Return False if that is not possible: where folder or disk do not allow locks, several compile the same.
        """
        from filelock import FileLock

        self._end_turn()
        with suppress(OSError, NotImplementedError):
            self._folder.locator.ensure_cache_path()  # type: ignore[union-attr]
            path = entry.path.with_suffix(".lock")
            remove_at_end(path)
            lock = FileLock(path, timeout=COMPILING)
            lock.acquire()
            self._turn = lock
        return self._turn is not None

    def _end_turn(self) -> None:
        """Let other processes compile."""
        if self._turn is not None:
            self._turn.release()
            remove_now(Path(self._turn.lock_file))
            self._turn = None

    @cached_property
    def _made_from(self) -> bytes:
        """Return a hash of the compiler, of the kernel, and of all that becomes part of it."""
        return _hash("\n".join([compiler_settings(), *parts(self._dispatcher)]))


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
