"""Common style of the plots: legible at the width of a page, with one colour per method."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.files.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Method → colour and marker.
STYLES = {
    "pixels": ("#555555", ""),
    "isotropic": ("#d95f02", "s"),
    "older integrator": ("#e6ab02", "v"),
    "paper": ("#1f78b4", "o"),
    "ours": ("#1b9e77", "D"),
}

#: Colour map of errors.
ERRORS = "magma"
#: Colour map of vertex densities.
DENSITIES = "viridis"

#: Width of a figure in inches.
WIDTH = 10.0
STYLE: Any = {"font.size": 9, "axes.titlesize": 9, "axes.grid": True, "grid.alpha": 0.3, "figure.dpi": 110}


def new_figure(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, NDArray[Any]]:
    """Return a new figure and its axes (rows, columns)."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NormalMeshError("plots require matplotlib; pip install 'normalmesh[plots]'") from error
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_atomically({path: image.getvalue()})


def plain_ticks(axes: Axes, along: str) -> None:
    """Use plain numbers on a logarithmic axis, ``"x"`` or ``"y"``, even if it spans less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis = axes.xaxis if along == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    steps = (1, 1.5, 2, 3, 5, 7) if high < 5 * low else (1, 2, 5) if high < 50 * low else (1,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def legend_below(figure: Figure, axes: Axes) -> None:
    """Add one legend for the whole figure below the plots."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8)


def picture(axes: Axes, image: NDArray[Any], title: str = "", caption: str = "", **options: Any) -> Any:
    """Show an image without ticks, with a title above and a caption below."""
    shown = axes.imshow(image, interpolation="antialiased", **options)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(title)
    axes.set_xlabel(caption)
    return shown


def scale_end(maps: list[Float], share: float = 0.98) -> float:
    """Return the end of a common colour scale: a high quantile of the absolute values of all maps."""
    sizes = np.concatenate([np.abs(values[np.isfinite(values)]).ravel() for values in maps])
    return float(np.quantile(sizes, share)) if len(sizes) else 1.0
