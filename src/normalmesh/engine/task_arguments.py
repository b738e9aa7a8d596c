"""Arguments of tasks: made only when they are needed, and given to other processes through files if they are large."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from normalmesh.runtime.temporary_files import replace_content

#: Number of bytes up to which an argument travels with its task.
SMALL = 1 << 16
#: Number of large arguments that a worker keeps, such as the map that all tasks read.
KEPT = 4


class LazyArguments(Mapping[Any, tuple[Any, ...]]):
    """The arguments of each task of a stage by its key, made when they are asked for."""

    def __init__(self, keys: Iterable[Any], make: Callable[[Any], tuple[Any, ...]]) -> None:
        self._keys, self._make = list(keys), make

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        return self._make(key)


@dataclass(frozen=True)
class _Handle:
    """What travels in place of a large argument."""

    path: Path


class SharedArguments:
    """The large arguments of the tasks of a stage, as files in a folder that is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # An argument that is the same in all tasks is the same in two that follow each other.
        self._last: dict[int, tuple[object, _Handle]] = {}

    def handed(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of a task as they travel, large ones as handles."""
        return tuple(self._handed(place, value) for place, value in enumerate(arguments))

    def remove(self) -> None:
        """Remove all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _handed(self, place: int, value: object) -> object:
        last = self._last.get(place)
        if last is not None and last[0] is value:
            return last[1]
        content = pickle.dumps(value)
        if len(content) <= SMALL:
            return value
        handle = _Handle(self._folder / hashlib.sha256(content).hexdigest()[:32])
        if not handle.path.exists():
            self._folder.mkdir(exist_ok=True)
            replace_content(handle.path, content)
        self._last[place] = value, handle
        return handle


def received(argument: Any) -> Any:
    """Return an argument of a task that has travelled. Tasks that follow each other in one process get the same one."""
    return _loaded(argument.path) if isinstance(argument, _Handle) else argument


@lru_cache(KEPT)
def _loaded(path: Path) -> Any:
    return pickle.loads(path.read_bytes())
