"""Plots of surfaces with matplotlib, whose axes are u (right) and v (down) in pixels, and their view in PyVista."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_instance
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.evaluation.metrics import evaluate
from normalmesh.mesh.surface import Surface
from normalmesh.mesh.walls import with_walls
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.output.mesh_libraries import pyvista_of
from normalmesh.pictures.frame import Frame, angular_errors, check_same_shape, density_range, vertex_density
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import CUT, EDGE, cut_edges, edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyvista import Plotter

#: Largest number of pixels at which fields are sampled, and largest columns and rows of a density plot.
MAX_SAMPLES, MAX_SIZE = 4e6, (1000, 1000)


def plot_wireframe(surface: Surface, ax: Axes | None = None) -> Axes:
    """Plot the edges of a surface from the camera's point of view, with cut edges in red.

    Parameters
    ----------
    surface
        The surface to draw.
    ax
        Axes to draw on; default: a new figure. Needs matplotlib: ``pip install normalmesh[plots]``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.
    """
    ax = _axes(surface, ax)
    from matplotlib.collections import LineCollection

    lines, (cuts, _) = surface.screen[edges(surface)], cut_edges(surface)
    ax.add_collection(LineCollection(list(lines), colors=[_rgb(EDGE)], linewidths=0.4), autolim=False)
    if len(cuts):
        red = LineCollection(list(cuts), colors=[_rgb(CUT)], linewidths=1.4, label="cut: depth jumps")
        ax.add_collection(red, autolim=False)
        ax.legend(loc="upper right")
    ax.set_title(f"wireframe: {len(surface.vertices)} vertices, {len(lines)} edges")
    return ax


def plot_density(surface: Surface, ax: Axes | None = None) -> Axes:
    """Plot the smoothed vertex density of a surface on a logarithmic scale.

    Parameters
    ----------
    surface
        The surface to draw.
    ax
        Axes to draw on; default: a new figure. Needs matplotlib: ``pip install normalmesh[plots]``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.
    """
    ax = _axes(surface, ax)
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator

    frame = Frame.whole(surface.shape)
    density = vertex_density(surface, frame, frame.size_within(*MAX_SIZE), frame.samples(MAX_SAMPLES).owners(surface))
    bar = _show(ax, surface, density, "vertices per 100 px", norm=LogNorm(*density_range(density)), cmap="viridis")
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.minorticks_off()
    ax.set_title("vertex density")
    return ax


def plot_error(
    surface: Surface,
    normal_map: NormalMapLike,
    ax: Axes | None = None,
    *,
    depth: ArrayLike | None = None,
    align: str | None = None,
) -> Axes:
    """Plot the angle between face normals and pixel normals, or the error of the depth.

    Angles of maps above 4 megapixels are sampled on a regular grid.

    Parameters
    ----------
    surface
        The surface to draw.
    normal_map
        The map that the surface was reconstructed from, or another map of the same shape.
    ax
        Axes to draw on; default: a new figure. Needs matplotlib: ``pip install normalmesh[plots]``.
    depth
        True depth (H, W), as for :func:`evaluate`: the absolute difference from it is plotted instead of the angle.
    align
        What of the depth is aligned first, as for :func:`evaluate`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.
    """
    checked_instance(surface, Surface, "surface")
    if align is not None and depth is None:
        raise NormalMeshError("align is for the error of the depth: give the true depth, too")
    normal_map = as_normal_map(normal_map)
    check_same_shape(surface, normal_map)
    if depth is None:
        samples = Frame.whole(surface.shape).samples(MAX_SAMPLES)
        errors, unit, least = angular_errors(surface, normal_map, samples, samples.owners(surface)), "degrees", 0.01
        known = errors[np.isfinite(errors)]
        mean = f", mean {known.mean(dtype=np.float64):.2f}°" if len(known) else ""
        title = f"angle between faces and pixel normals{mean}"
    else:
        found = evaluate(surface, normal_map, depth, align=align)
        errors, unit, least = np.abs(found.depth_error), surface.units, 0.0
        known = errors[np.isfinite(errors)]
        title = f"error of the depth ({found.align} aligned), RMSE {found.rmse:.3g} {unit}"
    ax = _axes(surface, ax)
    end = float(np.quantile(known, 0.99)) if len(known) else 1.0
    _show(ax, surface, errors, unit, vmin=0, vmax=max(end, least) or 1.0, cmap="magma")
    ax.set_title(title)
    return ax


def plot_surface(surface: Surface) -> tuple[Axes, Axes]:
    """Plot the shaded surface from the side and its wireframe in a new figure, and return both axes."""
    figure = _pyplot().figure(figsize=(12, 5.5), layout="constrained")
    shaded, wires = figure.subplots(1, 2)
    shaded.imshow(oblique(surface, (1100, 1000)))
    shaded.set_axis_off()
    shaded.set_title("surface from the left")
    return shaded, plot_wireframe(surface, wires)


def pyvista_view(surface: Surface, **options: Any) -> Plotter:
    """Return a PyVista plotter with the surface, from the camera's point of view; ``show()`` opens its window.

    The options are those of :class:`pyvista.Plotter`, such as ``off_screen=True``.
    """
    mesh = pyvista_of(with_walls(surface))
    import pyvista

    plotter = pyvista.Plotter(**options)
    plotter.add_mesh(mesh, color="#e8e2d6", smooth_shading=True, backface_params={"color": "#8fa6cc"})
    plotter.view_xy()
    return plotter


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise NormalMeshError("plots require matplotlib; pip install 'normalmesh[plots]'") from error
    return pyplot


def _axes(surface: Surface, ax: Axes | None) -> Axes:
    """Return the given or new axes, set up for the image of a surface."""
    checked_instance(surface, Surface, "surface")
    pyplot = _pyplot()
    axes: Axes = pyplot.subplots(figsize=(7, 6), layout="constrained")[1] if ax is None else ax
    is_axes: bool = isinstance(axes, pyplot.Axes)
    if not is_axes:
        raise NormalMeshError(f"ax must be matplotlib axes, not {repr_for_error(ax)}")
    rows, columns = surface.shape
    axes.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal", xlabel="u (px)", ylabel="v (px)")
    return axes


def _show(ax: Axes, surface: Surface, values: np.ndarray, label: str, **options: Any) -> Any:
    """Show values (H, W) over the whole image with a colour bar, and return the bar."""
    rows, columns = surface.shape
    image = ax.imshow(np.ma.masked_invalid(values), extent=(0, columns, rows, 0), **options)
    return ax.figure.colorbar(image, ax=ax, label=label, extend="max", fraction=0.046, pad=0.03)


def _rgb(colour: tuple[int, int, int]) -> tuple[float, ...]:
    return tuple(channel / 255 for channel in colour)
