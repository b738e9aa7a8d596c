"""LazyArguments: arguments of the tasks of a stage, made only when a task is about to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class LazyArguments(Mapping[Any, tuple[Any, ...]]):
    """The arguments of each task by its key, made when they are asked for."""

    def __init__(self, keys: Iterable[Any], make: Callable[[Any], tuple[Any, ...]]) -> None:
        self._keys, self._make = list(keys), make

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        return self._make(key)
