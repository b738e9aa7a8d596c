"""Tears: where a robust solution tears a surface open, and the lines that are made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from normalmesh.array_types import Bool, Float
from normalmesh.jumps.attaching import attached
from normalmesh.jumps.fronts import Fronts
from normalmesh.jumps.jump_pixels import JumpPixels
from normalmesh.jumps.lines import LOW, StrainedEdges, choose_lines
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.jumps.snapping import SnappedLine, long_enough, snapped_lines
from normalmesh.jumps.suspects import closed_noise, strained_edges, thresholds

#: Number of one-sided solves, and those after which settled edges are looked at again.
ONE_SIDED, RECHECKS = 20, (6, 13)
#: Number of Cauchy solves, and of last ones in which the twist counts as strain; their width (px), at least.
CAUCHY, LAST, WIDTH = 5, 2, 0.025
#: Noise of the strain (px) from which on a map is a measured one, with cracks between its normals.
NOISY = 0.02
#: Contrast of normals below which a measured surface is smooth: true lines have 0.3 to 1.5, cracks 0.05 to 0.2. In
#: cleaner maps a share of it is enough, down to a third.
GATE, CLEAN_GATE = 0.15, 1 / 3
#: Contrast, over the gate, of lines that are beyond doubt.
CLEAR = 4 / 3
#: Energy (px²) for each px of a line that makes a surface with it as good as one without; of lines in smooth places.
PRICE, SMOOTH_PRICE = 0.38, 2.0
#: Steps along folds vary by this share of the least strain of lines.
EVEN = 0.2
#: Rings of faces around a line that belong to it.
RINGS = 4
#: Edges are open from this strain on, in units of the least one of lines.
OPEN = 0.5
#: In reliefs, share of the energy of the closed surface that may be left within so many px of a line that is open.
#: Jumps of objects leave 0.02 to 0.2, cracks of textures 0.4 to 0.6.
LEFT, AROUND = 0.4, 16.0


@dataclass(frozen=True, eq=False)
class Tears:
    """Where a robust solution tears a surface open.

    Attributes
    ----------
    solver : RobustSolver
    noise : float
        Noise of the strain, in px.
    shares : (E,)
        Shares of their weight that edges keep: none if they are strained, all beside lines that were closed.
    lines : list of SnappedLine
    held : bool
        Whether edges that were kept from opening are strained along a line.
    """

    solver: RobustSolver
    noise: float
    shares: Float
    lines: list[SnappedLine]
    held: bool

    @classmethod
    def of(cls, solver: RobustSolver, closed: Float, fronts: Fronts, pixels: JumpPixels) -> Tears:
        """Solve robustly. ``closed`` (E,) is the strain of the continuous surface."""
        noise, edges, shares = robust_shares(solver, closed)
        found = choose_lines(edges)
        cut = attached(solver, found, EVEN * thresholds(noise)[0])
        lines = snapped_lines(edges, cut, pixels.cells, fronts.contrast)
        held = bool(edges.worth((edges.strain >= LOW) & (fronts.contrast < gate_of(noise))).any())
        tears = cls(solver, noise, shares, lines, held)
        return replace(tears, shares=tears._shares_without(found & ~cut)).without_smooth()

    @property
    def cut(self) -> Bool:
        """Edges (E,) of lines."""
        return self._cut_along(self.lines)

    def cost(self) -> float:
        """Return the energy of the surface with open lines, and the price of these, in px²."""
        cut = self.cut
        self.solver.open(cut)
        return float(self.solver.energies()[~cut].sum() + self._price * self.solver.system.lengths[cut].sum())

    def without_smooth(self) -> Tears:
        """Close lines in smooth places, unless the map is clean and they release much energy."""
        lines = [line for line in self.lines if line.contrast >= CLEAR * gate_of(self.noise)]
        smooth = [line for line in self.lines if line.contrast < CLEAR * gate_of(self.noise)]
        if smooth and self.noise < NOISY:
            price = SMOOTH_PRICE * self._price / (1 - self.noise / NOISY)
            released, lengths = self._released_by(smooth), self.solver.system.lengths
            lines += [line for line in smooth if released[line.edges].sum() >= price * lengths[line.edges].sum()]
        return self.only(lines)

    def certain(self, least: float) -> Tears:
        """Close lines that are less certain, on a scale from 0 to 1."""
        return self.only([line for line in self.lines if line.certainty >= least * (1 + line.certainty)])

    def only(self, lines: list[SnappedLine]) -> Tears:
        """Close all but some lines."""
        if len(lines) == len(self.lines):
            return self
        kept = replace(self, lines=lines)
        return replace(kept, shares=kept._shares_without(self.cut & ~kept.cut))

    def supported(self, closed: Float) -> Tears:
        """Close lines that leave much of the energy of the closed surface around them, again and again.

        In textures, cracks and scales have sides that normals show in part: opening them mends little. ``closed`` (E,)
        are the energies of the closed surface.
        """
        tears, solver = self, self.solver
        mesh, ends = solver.system.means.mesh, solver.system.ends
        while tears.lines:
            points = np.concatenate([line.path for line in tears.lines])
            owner = np.repeat(np.arange(len(tears.lines)), [len(line.path) for line in tears.lines])
            distance, nearest = cKDTree(points).query(mesh.vertices[ends].mean(axis=1), distance_upper_bound=AROUND)
            near = np.isfinite(distance)
            solver.open(tears.cut)
            left, all_ = (
                np.bincount(owner[nearest[near]], each[near], len(tears.lines))
                for each in (np.where(tears.cut, 0.0, solver.energies()), closed)
            )
            kept = [line for line, is_kept in zip(tears.lines, left <= LEFT * all_, strict=True) if is_kept]
            if len(kept) == len(tears.lines):
                break
            tears = tears.only(kept)
        return tears

    def long_lines(self) -> list[SnappedLine]:
        """Return the lines that are long enough, together with those that they are connected to."""
        enough = long_enough([line.path for line in self.lines])
        return [line for line, is_long in zip(self.lines, enough, strict=True) if is_long]

    @property
    def _price(self) -> float:
        """Energy for each px of a line."""
        return max(PRICE, thresholds(self.noise)[1])

    def _released_by(self, lines: list[SnappedLine]) -> Float:
        """Return the energy (E,), in px², that opening each edge of some lines releases."""
        cut, closed = self.cut, self._cut_along(lines)
        self.solver.open(cut)
        opened = self.solver.energies()
        self.solver.open(cut & ~closed)
        # Weight × misfit when open × when closed: these sum up to the energy that all lines together release.
        released: Float = np.sqrt(opened * self.solver.energies())
        return released

    def _cut_along(self, lines: list[SnappedLine]) -> Bool:
        cut = np.zeros(len(self.shares), np.bool_)
        for line in lines:
            cut[line.edges] = True
        return cut

    def _shares_without(self, closed: Bool) -> Float:
        """Return the shares (E,) with whole weights beside closed (E,) edges that are not on lines."""
        if not closed.any():
            return self.shares
        return np.where(self.solver.within(closed, RINGS) & ~self.cut, 1.0, self.shares)


def gate_of(noise: float) -> float:
    """Return the contrast that smooth places do not have, from the noise of the strain (px)."""
    return GATE * min(max(noise / NOISY, CLEAN_GATE), 1.0)


def robust_shares(solver: RobustSolver, closed: Float) -> tuple[float, StrainedEdges, Float]:
    """Solve robustly; return the noise of the strain, the edges, and the shares (E,) of their weight that they keep.

    ``closed`` (E,) is the strain of the continuous surface.
    """
    solver.one_sided(ONE_SIDED, RECHECKS)
    noise = closed_noise(solver)
    low, _ = thresholds(noise)
    solver.cauchy(max(WIDTH, noise), CAUCHY)
    solver.cauchy(max(WIDTH, noise), LAST, low)
    edges = strained_edges(solver, closed, noise)
    # The root of Cauchy weights: edges that are less strained pull with a force that hardly depends on it.
    return noise, edges, np.where(edges.strain >= OPEN * LOW, 0.0, np.sqrt(solver.shares()))
