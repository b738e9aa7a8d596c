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
from contextlib import ExitStack, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.serialize import dumps

from normalmesh.errors import NormalMeshWarning
from normalmesh.runtime.kernel_parts import compiler_settings, parts, type_text
from normalmesh.runtime.temporary_files import removed_at_end, replace_content

#: Number of bytes of a hash.
HASH = hashlib.sha256().digest_size
#: Seconds to wait for a process that compiles a kernel: no kernel takes that long.
COMPILING = 60.0
#: Permission of others to write.
WRITABLE = stat.S_IWGRP | stat.S_IWOTH
#: Neither follow a link, nor wait for the other end of a pipe. Not all systems have all of these.
FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def is_safe(status: os.stat_result) -> bool:
    """Return whether only this user and root can have written to a file or folder; Windows keeps folders apart."""
    return not hasattr(os, "geteuid") or (status.st_uid in (0, os.geteuid()) and not status.st_mode & WRITABLE)


def read_trusted(path: Path, size: int = -1) -> bytes | None:
    """Return the first bytes of a file, by default all; None if it is missing or another user could have written it.

    Loading machine code executes it. What is checked is the open file, which nobody can exchange afterwards.
    """
    with suppress(OSError), open(os.open(path, FLAGS), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and is_safe(status) and is_safe(path.parent.stat()):
            return file.read(size)
    return None


def _checked(locator: Any) -> Any:
    """Return a locator of Numba that fails if there is no home folder, or if other users can write to the folder.

    Numba's own would create ``~`` in the current folder.
    """

    class Checked(locator):  # type: ignore[misc]  # a class of Numba
        def ensure_cache_path(self) -> None:
            path = Path(self.get_cache_path())
            if "UserWide" in locator.__name__:
                if not path.is_absolute():
                    raise OSError("there is no home")
                # Numba lets others write to it if the umask does.
                if path.is_dir() and hasattr(os, "geteuid") and path.stat().st_uid == os.geteuid():
                    path.chmod(path.stat().st_mode & ~WRITABLE)
            path.mkdir(0o755, parents=True, exist_ok=True)
            if not is_safe(path.stat()):
                raise PermissionError(0, "other users can write to it", str(path))
            super().ensure_cache_path()

    return Checked


class _Folder(CompileResultCacheImpl):
    """The first of Numba's folders that can be used; RuntimeError if there is none."""

    _locator_classes = [_checked(locator) for locator in CompileResultCacheImpl._locator_classes]  # noqa: RUF012  # overrides a list of Numba


class KernelCache(NullCache):
    """The compiled versions of one kernel, each in a file: hashes of its sources, types and code, and the code."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._turn = ExitStack()
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
        path, header = self._entry(signature, target_context.codegen())
        if path is None:
            return None
        found = self._loaded(path, header, target_context)
        if found is None and self._take_turn(path):
            # Another process may have compiled it meanwhile.
            found = self._loaded(path, header, target_context)
            if found is not None:
                self._end_turn()
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the kernel compiled for a signature."""
        path, header = self._entry(signature, compiled.codegen)
        try:
            if self._folder is None:
                _warn_not_kept("anywhere")
            elif path is not None and self._folder.check_cachable(compiled):  # type: ignore[no-untyped-call]
                self._folder.locator.ensure_cache_path()
                code = dumps(self._folder.reduce(compiled))  # type: ignore[no-untyped-call]
                replace_content(path, header + hashlib.sha256(code).digest() + code, mode=0o644)
        except OSError as error:
            _warn_not_kept(f"in {path.parent if path else ''} ({error.strerror or error})")
        finally:
            self._end_turn()

    def _entry(self, signature: Any, codegen: Any) -> tuple[Path | None, bytes]:
        """Return the file for a signature, a processor and settings, and its first bytes: hashes of sources and types.

        There is no file for the type of a kernel that is an argument: its text has an address, which another one may
        have next time.
        """
        types = [*map(type_text, signature), repr(codegen.magic_tuple()), compiler_settings()]
        if self._folder is None or any(" at 0x" in text for text in types):
            return None, b""
        key = _hash("\n".join(types))
        name = f"{self._folder.filename_base}.{key.hex()[:16]}.nbc"
        return Path(self._folder.locator.get_cache_path()) / name, self._made_from + key

    def _loaded(self, path: Path, header: bytes, target_context: Any) -> Any:
        content = read_trusted(path) or b""
        code = content[3 * HASH :]
        # Damaged machine code must never run.
        if content[: 3 * HASH] != header + hashlib.sha256(code).digest():
            return None
        with suppress(Exception):  # whatever loading a file that is not a kernel may raise
            return self._folder.rebuild(target_context, pickle.loads(code))  # type: ignore[union-attr]
        return None

    def _take_turn(self, path: Path) -> bool:
        """Wait until no other process compiles a kernel, and let others wait for this one.

        Return False if that is not possible: where folder or disk do not allow locks, several compile the same.
        """
        from filelock import FileLock

        self._end_turn()
        with suppress(OSError, NotImplementedError), ExitStack() as turn:
            self._folder.locator.ensure_cache_path()  # type: ignore[union-attr]
            lock_path = turn.enter_context(removed_at_end(path.with_suffix(".lock")))
            turn.enter_context(FileLock(lock_path, timeout=COMPILING))
            self._turn = turn.pop_all()
            return True
        return False

    def _end_turn(self) -> None:
        """Let other processes compile."""
        self._turn.close()

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
