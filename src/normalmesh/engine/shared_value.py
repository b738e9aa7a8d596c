"""SharedValue: an argument of tasks that is too large to travel with them; workers read it from the work folder."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

#: Number of values that a worker keeps, such as the map that all tasks read.
KEPT = 4


@dataclass(frozen=True)
class SharedValue:
    """A handle of a value in a file, which takes little to send to another process."""

    path: Path

    @property
    def value(self) -> Any:
        """The value. Tasks that follow each other in one process get the same object."""
        return _loaded(self)


@lru_cache(KEPT)
def _loaded(shared: SharedValue) -> Any:
    return pickle.loads(shared.path.read_bytes())


def given(argument: Any) -> Any:
    """Return an argument of a task: the value of a handle, anything else as it is."""
    return argument.value if isinstance(argument, SharedValue) else argument
