"""Refinement in rounds, with solves between them: the same for a mesh in one piece and for one in many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from normalmesh.array_types import Bool

#: Rounds of refinement between two solves.
ROUNDS_PER_SOLVE = 2
#: Fraction of the vertices of a component that must change in a round for another one to follow.
MIN_CHANGE = 0.005
#: Rounds of refinement after bad faces were cut off where the depth jumps.
ROUNDS_AFTER_CUTS = 2


class RefinedMesh(Protocol):
    """A mesh, in one piece or in many, with the unknown at its vertices.

    Attributes
    ----------
    moving : (C,) bool
        Components that the next round refines. Each rests as soon as few of its vertices change, whatever others do.
    torn : (C,) bool
        Components that are cut.
    """

    moving: Bool

    @property
    def torn(self) -> Bool: ...

    @property
    def is_placed(self) -> bool:
        """Whether jumps place the parts of the surface."""
        ...

    def refine_in_turn(self, turns: range) -> None:
        """Run some rounds on the components that move; bad faces of those that are cut are removed afterwards."""
        ...

    def detach_bad_faces(self) -> None:
        """Cut bad faces off from what the placement holds apart from them, and make up for vertices that are lost."""
        ...

    def then_solve(self, name: str, change: Callable[[], None]) -> None:
        """Change the mesh, and solve it; the result has a name, by which it may be kept."""
        ...

    def finish(self, tidies: bool) -> None:
        """Remove bad faces if ``tidies``, and add vertices up to the number asked for."""
        ...


def refine_in_rounds(mesh: RefinedMesh, rounds: int) -> None:
    """Refine a mesh that is solved, remove bad faces, and add vertices up to the number asked for, in place.

    Where the depth jumps, bad faces are also cut off from what the placement holds apart from them, and some more
    rounds follow. The last changes are not followed by a solve, which would make new bad faces.
    """
    _run(mesh, range(rounds))
    if rounds and mesh.is_placed:
        mesh.then_solve("detach", mesh.detach_bad_faces)
        mesh.moving = mesh.torn
        _run(mesh, range(rounds, rounds + ROUNDS_AFTER_CUTS))
    mesh.finish(tidies=rounds > 0)


def _run(mesh: RefinedMesh, turns: range) -> None:
    """Run rounds, and solve after every second one, until all components rest."""
    for start in turns[::ROUNDS_PER_SOLVE]:
        few = range(start, min(start + ROUNDS_PER_SOLVE, turns.stop))
        mesh.then_solve(f"refine-{start}", partial(mesh.refine_in_turn, few))
        if not mesh.moving.any():
            break
