"""Lines of jumps: centre lines of bands of strained edges that are long, clear, and release enough energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps._lines import Band, LineRule, centre_lines, shorten_lines
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import boundary_vertices

#: Strain (px) of a line everywhere, also in units of the noise of the strain.
LOW, LOW_NOISE = 0.5, 5.0
#: Energy (px²) that connected lines must release for each px of their length, also in units of the noise squared. Those
#: that are shorter than the last length (px) must release as much as one of it: deep steps are clear on a few px.
RELEASE, RELEASE_NOISE, FULL_LENGTH = 0.1, 16.0, 10.0
#: Edges between vertices of a band belong to it from this share of the strain on, or up to this length (px).
FILLED, SHORT = 0.25, 3.0
#: Lines prefer strained edges: costs are lengths over the strain, in units of LOW, within these limits.
LEAST_PULL, MOST_PULL = 0.25, 2.0
#: Lengths (px): of branches; by which ends are continued, where edges of the strain STRONG count a sixth; of a line,
#: next to its end, that the end does not join.
BRANCH, REACH, STRONG, STRONG_SHARE, OWN = 4.0, 4.0, 0.8, 1 / 6, 36.0
#: Two sides of a face up to this area (px²) are shortened to the third one.
SMALL_FACE = 4.5
#: Branches with one free end are lines from this length (px) on.
SPUR = 4.0


@dataclass(frozen=True, eq=False)
class StrainedEdges:
    """Edges of a facet system with what is known of their strain.

    Attributes
    ----------
    system : FacetSystem
    pixels : (E,)
        Strain and twist, in px.
    strain : (E,)
        The same in units of the thresholds of its component: :data:`LOW` is the least strain of a line.
    closed : (E,)
        Strain of the closed surface, in units in which a line must release :data:`RELEASE`.
    """

    system: FacetSystem
    pixels: Float
    strain: Float
    closed: Float

    @property
    def release(self) -> Float:
        """Energy (E,) that cutting an edge releases: weight × strain when closed × strain when open."""
        return self.system.lengths * self.strain * self.closed

    def worth(self, cut: Bool) -> Bool:
        """Return those of the cut edges (E,) whose connected line releases enough, in all and for each px."""
        system, chosen = self.system, np.flatnonzero(cut)
        line = components(system.ends[chosen], len(system.means.mesh.vertices))[system.ends[chosen, 0]]
        length, released = (np.bincount(line, each[chosen]) for each in (system.lengths, self.release))
        good = released >= RELEASE * np.maximum(length, FULL_LENGTH)
        kept = np.zeros_like(cut)
        kept[chosen[good[line]]] = True
        return kept


def choose_lines(edges: StrainedEdges) -> Bool:
    """Return the edges (E,) to cut."""
    band = edges.worth(edges.strain >= LOW)
    if not band.any():
        return band
    mesh = edges.system.means.mesh
    fixed = boundary_vertices(mesh)
    cut = _centre_lines(edges, band, fixed)
    for _ in range(2):
        shorten_lines(cut, edges.system.face_edges, edges.system.ends, edges.system.means.areas, SMALL_FACE, fixed)
    _prune_spurs(cut, edges.system, fixed)
    return edges.worth(cut)


def _centre_lines(edges: StrainedEdges, band: Bool, fixed: Bool) -> Bool:
    """Return the edges (E,) of the centre lines of a band (E,)."""
    system = edges.system
    inside = np.zeros(len(fixed), np.bool_)
    inside[system.ends[band]] = True
    fills = (edges.strain >= FILLED * LOW) | (system.lengths < SHORT)
    near = np.flatnonzero(inside[system.ends].all(axis=1) & fills)
    number = np.cumsum(inside) - 1
    lengths, strain = system.lengths[near], edges.strain[near]
    costs = lengths / np.clip(strain / LOW, LEAST_PULL, MOST_PULL)
    ends = number[system.ends[near]].astype(np.int64)
    chosen = np.zeros(len(near), np.bool_)
    rule = LineRule(LOW, RELEASE, BRANCH, REACH, STRONG, STRONG_SHARE, OWN)
    centre_lines(Band(ends, lengths, costs, strain, edges.release[near], fixed[inside]), rule, chosen)
    cut = np.zeros(len(band), np.bool_)
    cut[near[chosen]] = True
    return cut


def _prune_spurs(cut: Bool, system: FacetSystem, fixed: Bool) -> None:
    """Take short branches with one free end out of the cut edges (E,), in place, until there are none."""
    while cut.any():
        chosen = np.flatnonzero(cut)
        chains = Chains.of(system.ends[chosen], fixed)
        branch = chains.chain_of_edge
        length = np.bincount(branch, system.lengths[chosen])
        spurs = (chains.free_ends(fixed) == 1) & (length < SPUR)
        if not spurs.any():
            return
        cut[chosen[spurs[branch]]] = False
