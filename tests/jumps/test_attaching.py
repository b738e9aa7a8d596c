"""Attaching: parts that float are joined where their steps are even."""

import numpy as np

from normalmesh import NormalMap
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.attaching import attached
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.runtime.workspace import Workspace
from surfaces import grid_mesh

SIZE, FOLD, OTHER = 96, 32, 64


def solver_of(bend):
    """Return a solver of three strips: the middle one folds evenly from the left one, and bends by the right one."""
    v, u = np.mgrid[:SIZE, :SIZE] + 0.5
    middle, right = (u > FOLD) & (u < OTHER), u > OTHER
    slope_u = np.where(middle, 0.5, 0.0)
    slope_v = np.where(right, bend * (v - SIZE / 2) / SIZE, 0.0)
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    normal_map = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    return RobustSolver(FacetSystem.of(FaceMeans.of(grid_mesh(24, SIZE), normal_map)), Workspace())


def upright(solver, column):
    return (solver.system.means.mesh.vertices[solver.system.ends][..., 0] == column).all(axis=1)


def test_a_fold_is_closed_and_an_uneven_step_stays():
    solver = solver_of(bend=4.0)
    fold, step = upright(solver, FOLD), upright(solver, OTHER)
    solver.open(fold | step)
    closed = (fold | step) & ~attached(solver, fold | step, 0.05)
    assert closed[fold].all()
    # Only where the right part is level does it go on behind the middle one.
    assert np.count_nonzero(closed & step) < np.count_nonzero(step) / 2


def test_what_is_connected_otherwise_does_not_float():
    solver = solver_of(bend=0.0)
    half = upright(solver, FOLD) & (solver.system.means.mesh.vertices[solver.system.ends][:, :, 1].max(axis=1) < 48)
    solver.open(half)
    assert (attached(solver, half, 0.05) == half).all()
    nothing = np.zeros_like(half)
    assert not attached(solver, nothing, 0.05).any()


def test_short_borders_are_chance():
    """A part with a border of 16 px stays open."""
    solver = solver_of(bend=0.0)
    corners = solver.system.means.mesh.vertices[solver.system.ends]
    middle = corners.mean(axis=1)
    around = np.array([point in ([8, 2], [8, 6], [2, 8], [6, 8]) for point in middle.tolist()])
    assert np.count_nonzero(around) == 4
    solver.open(around)
    assert (attached(solver, around, 0.05) == around).all()
