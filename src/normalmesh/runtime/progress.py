"""Progress: what long work tells about itself while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from normalmesh.errors import NormalMeshError, repr_for_error

#: The stage of the last step.
DONE = "done"


@dataclass(frozen=True)
class Step:
    """How far long work is.

    Attributes
    ----------
    share
        Of the time that all of it takes, roughly: from 0 to 1, never falling. It is 1 at the end, and only there.
    stage
        What is being done, such as ``"collapse"``; ``"done"`` at the end.
    vertices
        Of the mesh as it is now; None while there is none.
    """

    share: float
    stage: str
    vertices: int | None = None


#: Seconds of one core of a server, for estimates: by foreground pixels, and by vertices of the result.
DECIMATION_SECONDS, INTEGRATION_SECONDS, VERTEX_SECONDS = 0.7e-6, 0.2e-6, 6.5e-5

#: Told each step. What it raises ends the work and goes to the caller.
Progress = Callable[[Step], None]


def checked_progress(progress: Progress | None) -> Progress | None:
    if progress is not None and not callable(progress):
        raise NormalMeshError(f"progress must be a function of a normalmesh.Step, not {repr_for_error(progress)}")
    return progress


def estimate_seconds(foreground: int, vertices: int) -> tuple[float, float]:
    """Seconds of decimation and of integration, very roughly: processors differ."""
    return DECIMATION_SECONDS * foreground, INTEGRATION_SECONDS * foreground + VERTEX_SECONDS * vertices


class Teller:
    """Tells a callback, if there is one, about work that consists of weighted parts."""

    def __init__(self, progress: Progress | None, work: float) -> None:
        self.progress = checked_progress(progress)
        self.work = work
        self.done = 0.0
        self.stage = ""
        self.vertices: int | None = None

    def begin(self, stage: str, vertices: int | None = None) -> None:
        """A stage begins."""
        self.stage = stage
        self.reach(self.done, vertices)

    def advance(self, work: float, vertices: int | None = None) -> None:
        """So much more of the work is done."""
        self.reach(self.done + work, vertices)

    def reach(self, done: float, vertices: int | None = None) -> None:
        """So much of the work is done in all, if not more; vertices stay what they were unless they are given."""
        self.done = max(self.done, done)
        self.vertices = self.vertices if vertices is None else vertices
        self._tell(self.done)

    def finish(self, vertices: int | None = None) -> None:
        if self.progress is not None:
            self.progress(Step(1.0, DONE, self.vertices if vertices is None else vertices))

    def part(self, work: float) -> Progress:
        """A callback for other work, of which this one consists for so much."""
        before = self.done
        self.done += work

        def tell(step: Step) -> None:
            if step.stage != DONE:
                self.stage = step.stage
                self.vertices = step.vertices
                self._tell(before + work * step.share)

        return tell

    def _tell(self, done: float) -> None:
        if self.progress is not None:
            # A guess of the work may be too low, but only the end is the end.
            self.progress(Step(min(done / self.work, 0.99), self.stage, self.vertices))
