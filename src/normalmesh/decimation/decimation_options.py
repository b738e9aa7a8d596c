"""Options of the decimation, with their defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from numpy.typing import ArrayLike

from normalmesh.arguments import checked_bool, checked_choice, checked_int, checked_positive
from normalmesh.errors import NormalMeshError
from normalmesh.mesh.repeats import checked_tileable

#: λ of eq. (13): weight of an even distribution of vertices beside the shape.
REGULARISATION = 1e-5

#: λ with a threshold. The vertex counts of the authors' program at the thresholds of the paper's tables are met on each
#: of the cases that they are known for to ±15 % with this value, and only in the mean with others.
THRESHOLD_REGULARISATION = 1e-4

#: Start meshes; see :func:`normalmesh.decimate`.
STARTS = ("adaptive", "pixels")

#: Upper bounds of the numbers of rounds and of passes, and of λ: far beyond what changes anything.
MAX_ROUNDS, MAX_REGULARISATION = 10_000, 1e12


class DecimationKeywords(TypedDict, total=False):
    """The options of :class:`DecimationOptions` as keyword arguments."""

    rounds: int
    passes: int
    align: str
    flips: bool
    moves: bool
    step: float
    regularisation: float | None
    in_plane: bool
    start: str
    locked: ArrayLike | None
    keep_thin: bool
    tileable: bool | str


@dataclass(frozen=True, eq=False)
class DecimationOptions:
    """How to decimate; :func:`normalmesh.decimate` describes the options.

    Raises
    ------
    NormalMeshError
        An option is out of its range.
    """

    rounds: int = 4
    passes: int = 2
    align: str = "last"
    flips: bool = True
    moves: bool = True
    step: float = 0.5
    regularisation: float | None = None
    in_plane: bool = False
    start: str = "adaptive"
    locked: ArrayLike | None = None
    keep_thin: bool = True
    tileable: bool | str = False

    def __post_init__(self) -> None:
        checked_int(self.rounds, 1, "rounds", MAX_ROUNDS)
        checked_int(self.passes, 0, "passes", MAX_ROUNDS)
        for name in ("flips", "moves", "in_plane", "keep_thin"):
            checked_bool(getattr(self, name), name)
        for name, maximum in (("step", 1.0), ("regularisation", MAX_REGULARISATION)):
            if getattr(self, name) is None and name == "regularisation":
                continue
            number = checked_positive(getattr(self, name), name)
            if number > maximum:
                raise NormalMeshError(f"{name} must be at most {maximum:g}, not {number:g}")
            # Kernels are compiled for floats.
            object.__setattr__(self, name, number)
        checked_choice(self.align, ("last", "each"), "align")
        checked_choice(self.start, STARTS, "start")
        checked_tileable(self.tileable)

    @property
    def smooth_rim(self) -> bool:
        """Whether boundary vertices leave the staircase of the mask: not in the paper, nor where thin parts may go."""
        return self.moves and self.start == "adaptive" and self.keep_thin

    def passes_after(self, last_round: bool) -> int:
        """Return the number of passes of flips and moves that follow the collapses of a round."""
        follow = (self.flips or self.moves) and (last_round or self.align == "each")
        return self.passes if follow else 0

    def regularisation_for(self, counted: bool) -> float:
        """Return λ: for a result with a number of vertices, or for one with a threshold."""
        if self.regularisation is not None:
            return self.regularisation
        return REGULARISATION if counted else THRESHOLD_REGULARISATION

    @property
    def total_passes(self) -> int:
        """The number of passes in all rounds."""
        return self.passes * (self.rounds if self.align == "each" else 1)
