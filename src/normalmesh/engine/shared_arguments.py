"""SharedArguments: large arguments of tasks, which workers read from the work folder instead of from the scheduler."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path

from normalmesh.engine.jobs import Job
from normalmesh.engine.shared_value import SharedValue
from normalmesh.runtime.temporary_files import replace_content

#: Number of bytes up to which an argument travels with its task.
SMALL = 1 << 16


class SharedArguments:
    """The large arguments of the jobs of a stage, as files that are removed when no job needs them any more.

    Parameters
    ----------
    folder
        Where to write them. It is made when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # An argument that is the same in all jobs is the same in two that follow each other.
        self._last: dict[int, tuple[object, SharedValue]] = {}
        self._uses: Counter[Path] = Counter()

    def without(self, job: Job) -> Job:
        """Return a job whose large arguments are handles of files."""
        arguments = tuple(self._handle(place, value) for place, value in enumerate(job.arguments))
        self._uses.update(_paths(arguments))
        return replace(job, arguments=arguments)

    def remove(self, job: Job) -> None:
        """Remove the files that only this job, which is done, needed."""
        for path in _paths(job.arguments):
            self._uses[path] -= 1
            if not self._uses[path] and all(path != shared.path for _, shared in self._last.values()):
                path.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove all files."""
        for path in self._uses:
            path.unlink(missing_ok=True)

    def _handle(self, place: int, value: object) -> object:
        """Return an argument at a place among others as it is, or as a handle."""
        last = self._last.get(place)
        if last is not None and last[0] is value:
            return last[1]
        content = pickle.dumps(value)
        if len(content) <= SMALL:
            return value
        shared = SharedValue(self._folder / hashlib.sha256(content).hexdigest()[:32])
        if not shared.path.exists():
            self._folder.mkdir(exist_ok=True)
            replace_content(shared.path, content)
        self._last[place] = value, shared
        return shared


def _paths(arguments: tuple[object, ...]) -> set[Path]:
    return {each.path for each in arguments if isinstance(each, SharedValue)}
