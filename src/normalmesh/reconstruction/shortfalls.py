"""Shortfalls: what a surface lacks of what was asked for, and why."""

from __future__ import annotations

from collections.abc import Iterator

from normalmesh.errors import ShortfallWarning, count_text, warn_caller
from normalmesh.mesh.origin import Decimation, Tolerance
from normalmesh.mesh.surface import Surface

#: Largest share of the foreground that may be lost, or spilled onto the background, without a warning.
MAX_LOST = 0.005
#: Largest difference from the number of vertices asked for without a warning: a share of it, and a number.
TOLERANCE, MARGIN = 0.02, 10


def shortfalls(surface: Surface) -> Iterator[str]:
    """Yield one sentence for each thing that was asked for and could not be had."""
    report, coverage = surface.decimation, surface.coverage
    if isinstance(report, Decimation):
        if report.dropped_lines > (len(surface.discontinuities.lines) if surface.discontinuities else 0):
            pieces, are = count_text(report.dropped_lines, "piece"), "is" if report.dropped_lines == 1 else "are"
            yield (
                f"{pieces} of the lines along which depth jumps, the least certain, {are} bridged: all of them "
                "would need too large a share of the vertices; ask for more"
            )
        vertices, target = len(surface.vertices), report.target
        if report.detail is None and target is not None and abs(vertices - target) > TOLERANCE * target + MARGIN:
            more = report.reason or "cuts along jumps add some"
            reason = more if vertices > target else "the pixels of the foreground have no use for more"
            yield f"{target} vertices were asked for, but the surface has {vertices}: {reason}"
        if report.tolerance is not None:
            yield from _missed(report.tolerance, surface)
    if surface.repeats is not None and surface.repeats.excess is not None:
        yield surface.repeats.excess
    if coverage is not None and (
        max(coverage.uncovered_share, coverage.spilled_share) > MAX_LOST or coverage.lost_components
    ):
        yield f"the surface of {len(surface.vertices)} vertices covers {coverage}; ask for more vertices"


def _missed(tolerance: Tolerance, surface: Surface) -> Iterator[str]:
    """Yield one sentence for each bound that a surface exceeds."""
    for name in tolerance.missed:
        what, unit = ("mean angle", "°") if name == "max_angle" else ("deviation", f" {surface.units}")
        yield (
            f"a {what} of {tolerance.bounds[name]:g}{unit} is out of reach: the best surface that was found, of "
            f"{len(surface.vertices)} vertices, has {tolerance.reached[name]:.3g}{unit}"
        )


def report_shortfalls(surface: Surface) -> None:
    """Warn of what a surface lacks, on behalf of the caller."""
    for text in shortfalls(surface):
        warn_caller(text, ShortfallWarning)
