"""The memory and time that a reconstruction is estimated to take, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normalmesh.runtime.progress_bar import duration_text

if TYPE_CHECKING:
    from normalmesh.reconstruction.estimates import Estimate


def needs_text(estimate: Estimate) -> str:
    """Return the bytes in addition to the normal map, and the seconds on one core, as text."""
    from normalmesh.runtime.memory import bytes_text

    return f"about {bytes_text(estimate.memory)} of memory and, on one core, {duration_text(estimate.seconds)}"
