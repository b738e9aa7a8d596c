"""Estimate the memory and time of a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass

from normalmesh.cli.progress_display import duration_text


@dataclass(frozen=True)
class ResourceEstimate:
    """Expected vertices, bytes in addition to the normal map, and seconds on one core."""

    vertices: int
    memory: int
    seconds: float

    @classmethod
    def of(cls, pixels: int, foreground: int, vertices: int) -> ResourceEstimate:
        """Estimate a reconstruction from the pixels of the image, its foreground pixels and the expected vertices."""
        from normalmesh.reconstruction.estimates import estimate_memory, estimate_seconds

        memory = estimate_memory(pixels, foreground, vertices)
        return cls(vertices, memory, sum(estimate_seconds(foreground, vertices)))

    def __str__(self) -> str:
        from normalmesh.runtime.memory import bytes_text

        return f"about {bytes_text(self.memory)} of memory and, on one core, {duration_text(self.seconds)}"
