"""Vertex density and error maps of isotropic remeshing and of our method, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy import ndimage

from normalmesh.array_types import Bool, Float
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.metrics import Evaluation, evaluate
from normalmesh.mesh.surface import Surface
from normalmesh.paper.benchmark import Benchmark, Task
from normalmesh.paper.methods import METHODS, row_of, vertex_count
from normalmesh.paper.plot_style import DENSITIES, ERRORS, new_figure, picture, save, scale_end
from normalmesh.paper.sources import Source, own_sources
from normalmesh.paper.tables import Row, Table, figure, lines_by
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.panels import wireframe

#: Vertices as a fraction of the foreground pixels.
SHARE = 0.02
COMPARED = ("isotropic", "paper", "ours")
#: Standard deviation of the Gaussian window for densities, as a fraction of the longest side of the image.
WINDOW = 1 / 64


def vertex_density(surface: Surface, mask: Bool) -> Float:
    """Return the vertices per 100 pixels (H, W) in a Gaussian window over the foreground; NaN outside."""
    rows, columns = mask.shape
    u, v = np.clip(surface.screen.T, 0, [[columns - 1], [rows - 1]]).astype(np.intp)
    counts = np.zeros(mask.shape)
    np.add.at(counts, (v, u), 1.0)
    radius = max(WINDOW * max(mask.shape), 1.0)
    smooth = [ndimage.gaussian_filter(values, radius, mode="constant") for values in (counts, mask.astype(np.float64))]
    return np.where(mask, 100 * smooth[0] / np.maximum(smooth[1], 1e-9), np.nan)


def _tasks(sources: Sequence[Source], folder: Path) -> Iterator[Task]:
    for source in sources:
        name = source.name.replace("/", "_")
        path = folder / f"density_{name}_{source.camera}.png"
        yield Task((source.camera, source.group, source.name), partial(_compared, source, path))


def _compared(source: Source, path: Path) -> list[Row]:
    case = source.load()
    count = vertex_count(case, SHARE)
    surfaces: dict[str, Surface] = {}
    for method in COMPARED:
        surfaces[method] = METHODS[method](case, count)
        count = len(surfaces["isotropic"].vertices)
    found = {method: evaluate(surface, case) for method, surface in surfaces.items()}
    _panels(case, surfaces, found, path)
    return [row_of(method, found[method]) for method in COMPARED]


def _panels(case: Case, surfaces: dict[str, Surface], found: dict[str, Evaluation], path: Path) -> None:
    """Draw wireframe, density, angular error and depth error in one row per method, with one scale per column."""
    densities = {method: vertex_density(surface, case.normal_map.mask) for method, surface in surfaces.items()}
    columns = {
        "vertices per 100 px": (densities, DENSITIES),
        "angular error in °": ({method: each.angles for method, each in found.items()}, ERRORS),
    }
    if case.depth is not None:
        depths = {method: np.abs(each.depth_error) for method, each in found.items()}
        columns[f"depth error in {case.units}"] = (depths, ERRORS)
    window = Frame.around(case.normal_map.mask).window
    shown, axes = new_figure(len(surfaces), 1 + len(columns), 2.5 * len(surfaces) + 0.6)
    for line, (method, surface) in enumerate(surfaces.items()):
        each = found[method]
        errors = f"RMSE {figure(each.rmse)} {each.units}, MAE {each.mae:.2f}°"
        picture(axes[line, 0], wireframe(surface)[window], f"{method}, {len(surface.vertices)} vertices", errors)
    for column, (title, (maps, colours)) in enumerate(columns.items(), 1):
        end = scale_end(list(maps.values()))
        for line, values in enumerate(maps.values()):
            image = picture(
                axes[line, column], values[window], title if line == 0 else "", vmin=0, vmax=end, cmap=colours
            )
        shown.colorbar(image, ax=axes[:, column], location="bottom", shrink=0.8, extend="max", label=title)
    shown.suptitle(f"{case.name}, {100 * SHARE:g} % vertices")
    save(shown, path)


def _tables(rows: list[Row]) -> list[Table]:
    columns = [{"method": method} for method in COMPARED]
    return [
        Table(
            f"{title} at {100 * SHARE:g} % vertices", ["", "unit", *COMPARED], lines_by("name", rows, measure, columns)
        )
        for measure, title in (("rmse", "RMSE"), ("mae", "MAE in degrees"))
    ]


BENCHMARK = Benchmark(
    "density",
    "vertex density and error maps",
    320,
    ("camera", "group", "name"),
    partial(own_sources, cameras=("orthographic",)),
    _tasks,
    _tables,
)
