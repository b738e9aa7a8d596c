"""StageRunner: an engine whose stages and results have names that begin with a prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from normalmesh.engine.array_file import ArrayFile, Arrays
from normalmesh.engine.engine import Engine


@dataclass(frozen=True)
class StageRunner:
    """Runs stages, and keeps results, under names that begin with a prefix.

    Attributes
    ----------
    engine : Engine
    prefix
        What the names of all stages and results begin with.
    """

    engine: Engine
    prefix: str = ""

    def run(self, prefix: str = "") -> Callable[..., dict[Any, ArrayFile]]:
        """Return a function that runs stages whose names begin with a further prefix."""

        def run(
            stage: str,
            function: Callable[..., Arrays],
            arguments: Mapping[Any, tuple[Any, ...]],
            *,
            work: float = 0.0,
        ) -> dict[Any, ArrayFile]:
            return self.engine.run(f"{self.prefix}{prefix}{stage}", function, arguments, work=work)

        return run

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the result of this name, or make it, keep it, and remove the stages that led to it."""
        return self.engine.kept(f"{self.prefix}{name}", make)

    @property
    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Wall and CPU seconds by stage."""
        return dict(self.engine.seconds), dict(self.engine.cpu_seconds)
