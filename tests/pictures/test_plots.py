"""Test the plots with matplotlib and the view in PyVista."""

import sys

import numpy as np
import pytest

from normalmesh import NormalMeshError, Orthographic, evaluate, plot_density, plot_error, plot_wireframe, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.pictures.panels import edges
from normalmesh.pictures.plots import pyvista_view
from scenes import scene


@pytest.fixture(scope="module")
def normal_map():
    return scene("spiral", 96).normal_map(Orthographic())


@pytest.fixture(scope="module")
def surface(normal_map):
    return reconstruct(normal_map, compression=0.9, discontinuities=True)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def covers_the_image(ax, surface):
    rows, columns = surface.shape
    return ax.get_xlim() == (0, columns) and ax.get_ylim() == (rows, 0) and ax.get_aspect() == 1


def test_wireframe(pyplot, surface):
    ax = plot_wireframe(surface)
    assert covers_the_image(ax, surface)
    black, red = ax.collections
    assert len(black.get_segments()) == len(edges(surface))
    assert len(red.get_segments()) == len(surface.discontinuities.screen)
    assert str(len(surface.vertices)) in ax.get_title()
    ax.figure.canvas.draw()


def test_density(pyplot, surface):
    ax = plot_density(surface)
    assert covers_the_image(ax, surface)
    assert ax.images[0].colorbar.ax.get_ylabel() == "vertices per 100 px"
    ax.figure.canvas.draw()


def test_error(pyplot, surface, normal_map):
    ax = plot_error(surface, normal_map)
    assert covers_the_image(ax, surface)
    shown = ax.images[0].get_array()
    assert shown.mean() == pytest.approx(evaluate(surface, normal_map).mae, rel=1e-4)
    assert f"{shown.mean():.2f}°" in ax.get_title()
    assert ax.images[0].colorbar.ax.get_ylabel() == "degrees"


def test_error_of_the_depth(pyplot, surface, normal_map):
    depth = Medallion(96).height
    ax = plot_error(surface, normal_map, depth=depth, align="rigid")
    expected = evaluate(surface, normal_map, depth, align="rigid")
    assert ax.images[0].get_array().mean() == pytest.approx(np.nanmean(np.abs(expected.depth_error)))
    assert f"{expected.rmse:.3g} px" in ax.get_title()
    with pytest.raises(NormalMeshError, match="give the true depth, too"):
        plot_error(surface, normal_map, align="rigid")


def test_error_of_another_image_is_rejected(pyplot, surface):
    with pytest.raises(NormalMeshError, match=r"96×96 pixels but the normal map has 64×64"):
        plot_error(surface, Medallion(64).normal_map)


def test_given_axes_are_used(pyplot, surface, normal_map):
    _, (first, second, third) = pyplot.subplots(1, 3)
    assert plot_wireframe(surface, first) is first
    assert plot_density(surface, ax=second) is second
    assert plot_error(surface, normal_map, third) is third
    assert len(pyplot.get_fignums()) == 1


def test_surface_and_wireframe_side_by_side(pyplot, surface):
    shaded, wires = surface.plot()
    assert shaded.figure is wires.figure
    assert np.ptp(shaded.images[0].get_array()) > 100
    assert wires.collections


def test_without_matplotlib(monkeypatch, surface, normal_map):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    plots = (lambda: plot_error(surface, normal_map), lambda: plot_wireframe(surface), surface.plot)
    for plot in plots:
        with pytest.raises(NormalMeshError, match=r"pip install 'normalmesh\[plots\]'"):
            plot()


def test_without_pyvista(monkeypatch, surface):
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(NormalMeshError, match=r"pip install 'normalmesh\[view3d\]'"):
        surface.view()


def test_pyvista_shows_all_faces(surface):
    pytest.importorskip("pyvista")
    plotter = pyvista_view(surface, off_screen=True)
    assert plotter.mesh.n_cells == len(surface.all_faces) > len(surface.faces)
    np.testing.assert_allclose(plotter.mesh.points[: len(surface.vertices)], surface.vertices)
    plotter.close()
