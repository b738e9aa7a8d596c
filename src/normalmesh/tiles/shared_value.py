"""SharedValue: an argument of many tasks, which workers read once from the work folder."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from normalmesh.runtime.temporary_files import replace_content

#: Number of values that a worker keeps.
KEPT = 4


@dataclass(frozen=True)
class SharedValue:
    """A handle of a value in a file, which takes little to send to another process.

    Attributes
    ----------
    path
        The file.
    written
        Its time, by which workers know whether they have read it.
    """

    path: Path
    written: int

    @classmethod
    def of(cls, value: object, path: Path) -> SharedValue:
        """Write a value to a file, in a folder that is made if it is missing."""
        path.parent.mkdir(exist_ok=True)
        replace_content(path, pickle.dumps(value))
        return cls(path, path.stat().st_mtime_ns)

    @property
    def value(self) -> Any:
        """The value. All tasks of a process get the same object."""
        return _loaded(self)


@lru_cache(KEPT)
def _loaded(shared: SharedValue) -> Any:
    return pickle.loads(shared.path.read_bytes())


def given(argument: Any) -> Any:
    """Return an argument of a task: the value of a handle, anything else as it is."""
    return argument.value if isinstance(argument, SharedValue) else argument
