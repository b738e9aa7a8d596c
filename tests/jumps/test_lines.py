"""Centre lines of bands of strained edges on hand-made meshes."""

import numpy as np

from normalmesh import ScreenMesh
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps import lines
from normalmesh.jumps._lines import shorten_lines
from normalmesh.jumps.lines import LOW, SPUR, StrainedEdges, choose_lines
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.cut_mesh import boundary_vertices
from surfaces import plane_map


class Sheet:
    """A mesh of two triangles for each of 40 × 40 pixels, on whose edges a strain can be drawn."""

    def __init__(self, size=40):
        self.mesh = ScreenMesh.from_mask(np.ones((size, size), bool))
        self.system = FacetSystem.of(FaceMeans.of(self.mesh, plane_map((0, 0, 1), (size, size))))
        self.places = self.mesh.vertices[self.system.ends]
        self.middles = self.places.mean(axis=1)
        self.strain = np.full(len(self.places), 0.01)

    def band(self, start, end, strain=4.0, width=0.1):
        """Strain the edges whose ends are within a width of a segment."""
        start, end = np.array(start, float), np.array(end, float)
        along = (end - start) / np.linalg.norm(end - start)
        share = np.clip((self.places - start) @ along, 0, np.linalg.norm(end - start))
        away = np.linalg.norm(self.places - start - share[..., None] * along, axis=-1).max(axis=1)
        self.strain[away <= width] = np.maximum(self.strain[away <= width], strain)

    def edges(self, closed=0.5):
        return StrainedEdges(self.system, self.strain, self.strain, np.full(len(self.strain), closed))

    def chains(self, cut):
        return Chains.of(self.system.ends[cut], boundary_vertices(self.mesh))

    def chosen(self, closed=0.5):
        """Return the points (K, 2) along each chain of the lines that are chosen."""
        chains = self.chains(choose_lines(self.edges(closed)))
        return [self.mesh.vertices[chains[c]] for c in range(len(chains))]


def ends_of(line):
    return sorted(map(tuple, line[[0, -1]].tolist()))


def test_a_thin_line_is_itself():
    sheet = Sheet()
    sheet.band((20, 10), (20, 30))
    (line,) = sheet.chosen()
    assert ends_of(line) == [(20, 10), (20, 30)]
    assert (line[:, 0] == 20).all()
    assert len(line) == 21


def test_a_wide_band_gives_one_line_without_combs():
    sheet = Sheet()
    sheet.band((20, 8), (20, 32), strain=1.2 * LOW, width=2.2)
    sheet.band((20, 8), (20, 32), strain=4.0)
    (line,) = sheet.chosen()
    inner = line[(line[:, 1] > 11) & (line[:, 1] < 29)]
    assert (inner[:, 0] == 20).all()
    assert len(line) < 35


def test_a_y_has_three_branches():
    sheet = Sheet()
    for end in ((20, 36), (6, 6), (34, 6)):
        sheet.band((20, 20), end, width=0.75)
    branches = sheet.chosen()
    assert len(branches) == 3
    tips = {end for line in branches for end in ends_of(line)}
    middle = [line[np.abs(line - 20).sum(axis=1).argmin()] for line in branches]
    assert all(np.linalg.norm(point - 20) < 4 for point in middle)
    for tip in ((20, 36), (6, 6), (34, 6)):
        assert min(np.linalg.norm(np.subtract(tip, end)) for end in tips) < 2.5


def test_weakly_strained_edges_join_two_lines():
    sheet = Sheet()
    sheet.band((20, 6), (20, 18))
    sheet.band((20, 21), (20, 34))
    apart = sheet.chosen()
    assert sorted(ends_of(line) for line in apart) == [[(20, 6), (20, 18)], [(20, 21), (20, 34)]]
    sheet.band((20, 18), (20, 21), strain=1.1 * LOW)
    (line,) = sheet.chosen()
    assert ends_of(line) == [(20, 6), (20, 34)]


def test_ends_join_the_outline():
    sheet = Sheet()
    sheet.band((20, 1), (20, 25))
    (line,) = sheet.chosen()
    assert ends_of(line) == [(20, 1), (20, 25)]
    sheet.band((20, 0), (20, 1), strain=1.1 * LOW)
    (line,) = sheet.chosen()
    assert ends_of(line) == [(20, 0), (20, 25)]


def test_ends_join_so_that_a_loop_closes(monkeypatch):
    sheet = Sheet()
    corners = [(10, 10), (30, 10), (30, 30), (10, 30)]
    for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
        sheet.band(start, end)
    cut = choose_lines(sheet.edges())
    assert np.count_nonzero(cut) >= 76
    degree = np.bincount(sheet.system.ends[cut].ravel())
    assert set(degree[degree > 0]) == {2}
    monkeypatch.setattr(lines, "REACH", 0.0)
    cut = choose_lines(sheet.edges())
    assert 1 in np.bincount(sheet.system.ends[cut].ravel())


def test_lines_release_enough_in_all_and_for_each_px():
    def kept(length, strain, closed):
        sheet = Sheet()
        sheet.band((20, 10), (20, 10 + length), strain=strain)
        chosen = sheet.edges(closed).worth(sheet.strain >= LOW)
        assert set(chosen[sheet.strain < LOW]) == {False}
        return bool(chosen.any())

    # On 12 px of a step of 0.5 px, 0.1 px² for each px are enough.
    assert kept(12, 0.5, 0.22)
    assert not kept(12, 0.5, 0.18)
    # Short lines must release as much as 10 px of it: their steps are higher.
    assert not kept(4, 0.5, 0.22)
    assert kept(4, 4.0, 0.22)
    assert not kept(3, 1.0, 0.22)
    nothing = Sheet()
    assert not nothing.edges().worth(nothing.strain >= LOW).any()
    assert not choose_lines(nothing.edges()).any()


def test_spurs_go_and_branches_stay():
    sheet = Sheet()
    sheet.band((20, 4), (20, 36), strain=5.0)
    sheet.band((20, 20), (20 + int(SPUR) - 1, 20), strain=3.0)
    (line,) = sheet.chosen()
    assert ends_of(line) == [(20, 4), (20, 36)]
    sheet.band((20, 20), (34, 20), strain=1.3 * LOW)
    assert len(sheet.chosen()) == 3


def test_two_sides_of_a_small_face_become_the_third():
    mesh = ScreenMesh(
        np.array([[0.0, 0], [0, 2], [2, 0], [2, 2], [4, 0]]), np.array([[0, 1, 2], [2, 1, 3], [2, 3, 4]], np.int32)
    )
    system = FacetSystem.of(FaceMeans.of(mesh, plane_map((0, 0, 1), (4, 4))))
    ends = [frozenset(pair) for pair in system.ends.tolist()]
    assert set(ends) == {frozenset((1, 2)), frozenset((2, 3))}
    # The face 1, 2, 3 has two inner edges and the boundary beside them: nothing to shorten.
    cut = np.array([True, True])
    shorten_lines(cut, system.face_edges, system.ends, system.means.areas, 4.5, np.zeros(5, bool))
    assert cut.all()
    sheet = Sheet(8)
    corner = sheet.system.face_edges[(sheet.system.face_edges >= 0).all(axis=1)][0]
    for fixed in (False, True):
        cut = np.zeros(len(sheet.strain), bool)
        cut[corner[:2]] = True
        before = cut.copy()
        fixed_vertices = np.full(len(sheet.mesh.vertices), fixed)
        shorten_lines(cut, sheet.system.face_edges, sheet.system.ends, sheet.system.means.areas, 4.5, fixed_vertices)
        assert np.flatnonzero(cut).tolist() == (np.flatnonzero(before).tolist() if fixed else [corner[2]])
