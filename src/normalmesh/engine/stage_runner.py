"""StageRunner: runs stages of tasks, and keeps results between them, so that earlier stages need not be kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from normalmesh.engine.array_file import ArrayFile
from normalmesh.engine.engine import Engine


@dataclass(eq=False)
class StageRunner:
    """Runs stages whose names begin with a prefix, and keeps results.

    Attributes
    ----------
    engine : Engine
    prefix
        What the names of all stages and results begin with.
    names
        Stages since the last result was kept.
    """

    engine: Engine
    prefix: str = ""
    names: list[str] = field(default_factory=list)

    def run(self, prefix: str = "") -> Callable[..., dict[Any, ArrayFile]]:
        """Return a function that runs stages whose names begin with a prefix."""

        def run(
            stage: str, function: Callable[..., Any], arguments: Mapping[Any, tuple[Any, ...]]
        ) -> dict[Any, ArrayFile]:
            name = f"{self.prefix}{prefix}{stage}"
            self.names.append(name)
            return self.engine.run(name, function, arguments, work=_share(name))

        return run

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the result of this name, or make it, keep it, and remove the stages that led to it."""
        file = self.engine.folder.result("kept", f"{self.prefix}{name}")
        if file.exists:
            return pickle.loads(file["pickled"].tobytes())
        made = make()
        self.engine.folder.save(
            "kept", f"{self.prefix}{name}", {"pickled": np.frombuffer(pickle.dumps(made), np.uint8)}
        )
        for stage in self.names:
            self.engine.folder.remove_stage(stage)
        self.names.clear()
        return made

    @property
    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Wall and CPU seconds by stage."""
        return dict(self.engine.seconds), dict(self.engine.cpu_seconds)


#: Share of the time that stages take, by what their names end with; others take none to speak of.
SHARES = {
    "components": 0.01,
    "noise_0_0": 0.07,
    "levels": 0.03,
    "first": 0.03,
    "histogram": 0.03,
    "pilot": 0.02,
    "begin": 0.25,
    "finish": 0.08,
    "means": 0.04,
    "condense-0": 0.01,
    "expand-1": 0.01,
    "tiles": 0.12,
}


def _share(stage: str) -> float:
    """Return the share of the time that a stage takes."""
    return next((share for name, share in SHARES.items() if stage.endswith(name)), 0.0)
