"""Plots of surfaces with matplotlib: u right and v down, in pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normalmesh.arguments import checked_instance
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.fields import angular_errors, density_range, refuse_other_image, vertex_density
from normalmesh.pictures.framing import Frame
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import CUT, EDGE, cut_edges, edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Pixels at which fields are looked at; columns and rows within which densities are counted.
MOST_SAMPLES, LARGEST = 4e6, (1000, 1000)


def plot_wireframe(surface: Surface, ax: Axes | None = None) -> Axes:
    """Plot the edges of a surface as the camera sees them, those along which it is cut in red.

    Parameters
    ----------
    ax
        Axes to draw on; default: a new figure. Needs matplotlib: ``pip install normalmesh[plots]``.

    Returns
    -------
    matplotlib.axes.Axes
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
    """Plot how dense the vertices of a surface are, smoothed, on a logarithmic scale.

    Parameters
    ----------
    ax
        Axes to draw on; default: a new figure. Needs matplotlib: ``pip install normalmesh[plots]``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _axes(surface, ax)
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator

    frame = _whole(surface)
    density = vertex_density(surface, frame, frame.size_within(*LARGEST), frame.samples(MOST_SAMPLES).owners(surface))
    bar = _show(ax, surface, density, "vertices per 100 px", norm=LogNorm(*density_range(density)), cmap="viridis")
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.minorticks_off()
    ax.set_title("density of vertices")
    return ax


def plot_error(surface: Surface, normal_map: NormalMap, ax: Axes | None = None) -> Axes:
    """Plot the angle between the normals of a surface's faces and those of the pixels.

    Maps above 4 megapixels are looked at in evenly spread pixels.

    Parameters
    ----------
    normal_map
        What the surface was made of, or another map of the same pixels.
    ax
        Axes to draw on; default: a new figure. Needs matplotlib: ``pip install normalmesh[plots]``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    checked_instance(surface, Surface, "surface")
    refuse_other_image(surface, checked_instance(normal_map, NormalMap, "normal_map"))
    ax = _axes(surface, ax)
    samples = _whole(surface).samples(MOST_SAMPLES)
    angles = angular_errors(surface, normal_map, samples, samples.owners(surface))
    known = angles[np.isfinite(angles)]
    end = float(np.quantile(known, 0.99)) if len(known) else 1.0
    _show(ax, surface, angles, "degrees", vmin=0, vmax=max(end, 0.01), cmap="magma")
    mean = f", mean {known.mean(dtype=np.float64):.2f}°" if len(known) else ""
    ax.set_title(f"angle between faces and pixel normals{mean}")
    return ax


def plot_surface(surface: Surface) -> tuple[Axes, Axes]:
    """A new figure of the shaded surface, seen from the side, and its wireframe; returns the axes of both."""
    figure = _pyplot().figure(figsize=(12, 5.5), layout="constrained")
    shaded, wires = figure.subplots(1, 2)
    shaded.imshow(oblique(surface, (1100, 1000)))
    shaded.set_axis_off()
    shaded.set_title("surface from the left")
    return shaded, plot_wireframe(surface, wires)


def _whole(surface: Surface) -> Frame:
    rows, columns = surface.shape
    return Frame(0, 0, columns, rows)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise NormalMeshError("plots need matplotlib; pip install 'normalmesh[plots]'") from error
    return pyplot


def _axes(surface: Surface, ax: Axes | None) -> Axes:
    """The axes given, or new ones, for the image of a surface."""
    checked_instance(surface, Surface, "surface")
    pyplot = _pyplot()
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 6), layout="constrained")
    if not isinstance(ax, pyplot.Axes):
        raise NormalMeshError(f"ax must be axes of matplotlib, not {repr_for_error(ax)}")
    rows, columns = surface.shape
    ax.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal", xlabel="u (px)", ylabel="v (px)")
    return ax


def _show(ax: Axes, surface: Surface, values: np.ndarray, label: str, **options: Any) -> Any:
    """Values (H, W) over the whole image, with a colour bar, which it returns."""
    rows, columns = surface.shape
    image = ax.imshow(np.ma.masked_invalid(values), extent=(0, columns, rows, 0), **options)
    return ax.figure.colorbar(image, ax=ax, label=label, extend="max", fraction=0.046, pad=0.03)


def _rgb(colour: tuple[int, int, int]) -> tuple[float, ...]:
    return tuple(channel / 255 for channel in colour)
