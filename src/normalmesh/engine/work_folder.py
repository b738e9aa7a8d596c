"""WorkFolder: what the stages of a tiled reconstruction leave on a disk that all workers share.

``folder.json`` describes what the folder is for, ``lock`` is held by the process that ``process`` names, and
``stage/key.arrays`` are the results. A process that is killed leaves whole results only, and files of its own that the
next one removes.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from numpy.typing import NDArray

from normalmesh.engine.array_file import ArrayFile
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text, repr_for_error
from normalmesh.runtime.temporary_files import replace_content

#: Number of the format of folders, and the files that describe one.
FORMAT, ABOUT, LOCK, HOLDER = 1, "folder.json", "lock", "process"
#: Folder of arguments of tasks that are under way.
SHARED = "shared"
#: Errors of disks that know no locks, as some of clusters.
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
#: Suffix of results.
SUFFIX = ".arrays"
#: Number of differences that an error names.
NAMED = 3


class WorkFolder:
    """A folder of results, which one process at a time uses: a context manager that holds its lock.

    Parameters
    ----------
    path
        The folder. It is made if it is missing; then its parent must exist.
    description
        What the results depend on: values that JSON can hold, by name, as :func:`description_of` makes them.

    Raises
    ------
    NormalMeshError
        The folder was made for something else, holds other files, or another process uses it.
    """

    def __init__(self, path: Path, description: Mapping[str, object]) -> None:
        self.path = path.absolute()
        self._description: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **description}))
        self._lock = FileLock(self.path / LOCK, timeout=0, thread_local=False)

    def __enter__(self) -> WorkFolder:
        try:
            self.path.mkdir(exist_ok=True)
            if any(self.path.iterdir()) and not _is_work_folder(self.path):
                raise NormalMeshError(
                    f"{path_text(self.path)} is not a folder of normalmesh's work, and not empty: give another one"
                )
            self._take_lock()
        except OSError as error:
            raise NormalMeshError(f"cannot work in {path_text(self.path)}: {error.strerror or error}") from error
        try:
            self._check()
            self._remove_abandoned()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def result(self, stage: str, key: object) -> ArrayFile:
        """Return the file of a result, whether it is there or not."""
        name = "_".join(map(str, key)) if isinstance(key, tuple) else str(key)
        return ArrayFile(self.path / stage / f"{name}{SUFFIX}")

    def save(self, stage: str, key: object, arrays: Mapping[str, NDArray[Any]]) -> ArrayFile:
        """Write a result of this process, and return its file."""
        result = self.result(stage, key)
        result.path.parent.mkdir(exist_ok=True)
        result.save(arrays)
        return result

    def remove_stage(self, stage: str) -> None:
        """Remove the results of a stage, to which no later one refers."""
        shutil.rmtree(self.path / stage, ignore_errors=True)

    def _take_lock(self) -> None:
        try:
            self._lock.acquire()
        except Timeout as error:
            holder = self.path / HOLDER
            name = holder.read_text() if holder.exists() else "unknown"
            raise NormalMeshError(
                f"another process ({name}) uses the folder {path_text(self.path)}: wait for it, or give another folder"
            ) from error
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno not in WITHOUT_LOCKS:
                raise
            warnings.warn(
                f"the disk of {path_text(self.path)} knows no locks: make sure that no other process uses the folder",
                NormalMeshWarning,
                stacklevel=3,
            )
        else:
            (self.path / HOLDER).write_text(f"process {os.getpid()} on {socket.gethostname()}")

    def _check(self) -> None:
        """Write what the folder is for, or compare it with what it was made for."""
        about = self.path / ABOUT
        if not about.exists():
            replace_content(about, json.dumps(self._description, indent=1).encode(), synchronised=True)
            return
        try:
            known = json.loads(about.read_text())
        except ValueError:
            known = None
        if not isinstance(known, dict):
            raise NormalMeshError(f"{path_text(about)} is damaged: remove the folder, or give another one")
        changes = [
            f"{name} was {repr_for_error(known.get(name))}, now {repr_for_error(self._description.get(name))}"
            for name in dict.fromkeys([*self._description, *known])
            if known.get(name) != self._description.get(name)
        ]
        if changes:
            raise NormalMeshError(
                f"the folder {path_text(self.path)} holds work of another reconstruction "
                f"({'; '.join(changes[:NAMED])}): give the same input and options, another folder, or remove it"
            )

    def _remove_abandoned(self) -> None:
        """Remove what other processes were writing, and gave to each other: those that still run work for nobody."""
        self.remove_stage(SHARED)
        for path in self.path.rglob(".normalmesh-*"):
            with suppress(OSError):  # Windows keeps files that are open
                path.unlink()


def holds_results(path: Path) -> bool:
    """Return whether a folder holds a result of work that has not been finished."""
    return any(path.glob(f"*/*{SUFFIX}"))


def remove_work(path: Path) -> None:
    """Remove a work folder that no process uses, and all that is in it."""
    if not _is_work_folder(path):
        return
    # What tells that it is a work folder goes last, so that one whose removal was interrupted can be used again.
    for found in path.iterdir():
        if found.name not in (ABOUT, LOCK, HOLDER):
            shutil.rmtree(found, ignore_errors=True)
    for name in (HOLDER, ABOUT, LOCK):
        with suppress(OSError):
            (path / name).unlink()
    with suppress(OSError):
        path.rmdir()


def _is_work_folder(path: Path) -> bool:
    return (path / ABOUT).exists() or (path / LOCK).exists()
