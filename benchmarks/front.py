"""Measure MAE and RMSE against processor time over rounds, passes and rounds of refinement, at 1 % vertices.

Each figure is the geometric mean over the cases of its ratio to that of the default. Rows are stored as they are
measured: run it again to resume after an interruption.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.cases import case_names
from benchmarks.cases import load as load_shared
from normalmesh import Surface, decimate, evaluate, integrate
from normalmesh.normals.noise import component_noise, without_noise
from normalmesh.paper.benchmark import Benchmark, Row, Task, run_benchmark
from normalmesh.paper.plot_style import new_figure, save
from normalmesh.paper.sources import Source, own_sources
from normalmesh.paper.tables import Table, geometric_mean
from normalmesh.reconstruction.presets import PRESETS

OWN = ("medallion", "terrain", "knot")
SHARED = ("relief_igea512", "terrain_sthelens_327x466", "mesh_armadillo_ortho_512", "diligent_bear")

#: Options of decimate(), one line per mesh.
MESHES: list[dict[str, Any]] = [
    *({"rounds": rounds, "passes": passes} for rounds in (1, 3, 5) for passes in (0, 1, 2, 4)),
    {"rounds": 5, "passes": 2, "align": "each"},
    {"rounds": 5, "passes": 3, "align": "each", "start": "pixels"},
]
#: Rounds of refinement, measured on each mesh.
REFINEMENTS = (0, 2, 4, 6)

#: Rounds of refinement → colour, from light to dark.
COLOURS = ("#fdbb84", "#fc8d59", "#e34a33", "#b30000", "#5a0000", "#000000")
#: Passes → marker.
MARKERS = {0: "o", 1: "^", 2: "s", 3: "P", 4: "D"}
FRONT = "#0b6b4f"
PAPER = "paper"

#: (mesh, rounds of refinement) → seconds per megapixel, MAE and RMSE, the latter two relative to the default.
Points: TypeAlias = dict[tuple[str, int], tuple[float, float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512, help="side in pixels of the project's own cases")
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / foreground pixels")
    parser.add_argument("--repeats", type=int, default=1, help="number of runs; the fastest counts")
    parser.add_argument("--cases", nargs="*", help=f"default: {', '.join((*OWN, *SHARED))}")
    parser.add_argument("--output", type=Path, default=Path("results/front"), help="folder; default: %(default)s")
    parser.add_argument("--restart", action="store_true", help="discard earlier results")
    options = parser.parse_args()
    names = options.cases or [*OWN, *SHARED]
    own = [source for source in own_sources(options.size, ["orthographic"]) if source.name in names]
    shared = [Source(name, name, "its own", partial(load_shared, name)) for name in case_names() if name in names]
    settings = {"size": str(options.size), "compression": f"{options.compression:g}", "repeats": str(options.repeats)}
    benchmark = Benchmark(
        "front",
        "errors against processor seconds",
        options.size,
        ("case", "mesh"),
        lambda size: own,
        partial(tasks, compression=options.compression, repeats=options.repeats),
        tables,
        draw,
    )
    print(run_benchmark(benchmark, [*own, *shared], options.output, settings, restart=options.restart, report=print))


def default_mesh() -> dict[str, Any]:
    """Return the defaults of reconstruct() for the options in :data:`MESHES`."""
    used = {name for mesh in MESHES for name in mesh}
    return {name: getattr(PRESETS["default"].decimation, name) for name in sorted(used, reverse=True)}


def default_refinement() -> int:
    return PRESETS["default"].integration.refine


def name_of(mesh: dict[str, Any]) -> str:
    """Return rounds and passes, such as ``5 × 3``, followed by the other options that differ from the default."""
    defaults = default_mesh()
    mesh = {**defaults, **mesh}
    shape = f"{mesh.pop('rounds')} × {mesh.pop('passes')}"
    return ", ".join([shape, *(f"{name} {value}" for name, value in mesh.items() if value != defaults.get(name))])


def tasks(sources: Sequence[Source], folder: Path, compression: float, repeats: int) -> list[Task]:
    """Return one task per case and mesh, which all refinements share."""
    meshes = {name_of(mesh): mesh for mesh in [*MESHES, default_mesh()]}
    refinements = sorted({*REFINEMENTS, default_refinement()})
    variants: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
        name: (mesh, [{"refine": count} for count in refinements]) for name, mesh in meshes.items()
    }
    paper = PRESETS["paper"]
    variants[PAPER] = vars(paper.decimation), [vars(paper.integration)]
    return [
        Task((source.name, name), partial(run, source, compression, repeats, mesh, integrations))
        for source in sources
        for name, (mesh, integrations) in variants.items()
    ]


def run(
    source: Source, compression: float, repeats: int, mesh: dict[str, Any], integrations: list[dict[str, Any]]
) -> list[Row]:
    """Return a row per integration of one mesh, with the processor seconds of decimation and integration together."""
    case = source.load()
    _compile(mesh, integrations[-1])

    def made() -> Any:
        noise = integrations[0].get("noise")
        noise = component_noise(case.normal_map).usual if noise is None else noise
        return noise, decimate(without_noise(case.normal_map, noise), compression=compression, **mesh)

    (noise, decimated), meshing = timed(made, repeats)
    rows: list[Row] = []
    for options in integrations:
        surface, seconds = timed(partial(integrate, decimated, case.normal_map, **{**options, "noise": noise}), repeats)
        assert isinstance(surface, Surface)
        found = evaluate(surface, case, each_component=False)
        rows.append(
            {
                "refine": options["refine"],
                "rounds": mesh.get("rounds", default_mesh()["rounds"]),
                "passes": mesh.get("passes", default_mesh()["passes"]),
                "seconds": (meshing + seconds) / (case.normal_map.foreground / 1e6),
                "mae": found.mae,
                "rmse": found.rmse,
            }
        )
    return rows


def timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return the result of the work, and its smallest processor seconds, because other load only adds to them."""
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return result, least


def _compile(mesh: dict[str, Any], options: dict[str, Any]) -> None:
    """Compile or load the kernels before measuring."""
    small = own_sources(64, ["orthographic"])[0].make().normal_map
    integrate(decimate(small, compression=0.9, **mesh), small, **options)


def means(rows: list[Row]) -> Points:
    """Return the geometric means over the cases."""
    default = name_of(default_mesh()), default_refinement()
    found: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((str(row["mesh"]), int(row["refine"])), {})[str(row["case"])] = row
    base = found.get(default, {})
    result = {}
    for key, of_case in found.items():
        # Compare an interrupted setting over the cases that it has.
        both = [name for name in of_case if name in base]
        if both:
            ratios = [
                geometric_mean([float(of_case[name][column]) / float(base[name][column]) for name in both])
                for column in ("seconds", "mae", "rmse")
            ]
            seconds = geometric_mean([float(row["seconds"]) for row in base.values()])
            result[key] = (ratios[0] * seconds, ratios[1], ratios[2])
    return result


def front(points: Points, which: int) -> list[tuple[str, int]]:
    """Return the Pareto-optimal settings in seconds and error (1: MAE, 2: RMSE), fastest first."""
    best, kept = np.inf, []
    for key in sorted(points, key=lambda key: (points[key][0], points[key][which])):
        if points[key][which] < best:
            best = points[key][which]
            kept.append(key)
    return kept


def tables(rows: list[Row]) -> list[Table]:
    points = means(rows)
    fronts = [set(front(points, which)) for which in (1, 2)]
    default = name_of(default_mesh()), default_refinement()
    lines = []
    for key in sorted(points, key=lambda key: points[key][0]):
        on = [name for name, kept in zip(("MAE", "RMSE"), fronts, strict=True) if key in kept]
        named = "default" if key == default else ""
        lines.append([key[0], str(key[1]), *points[key], ", ".join(on), named])
    cases = list(dict.fromkeys(str(row["case"]) for row in rows))
    head = ["rounds × passes", "refine", "s/MP", "MAE", "RMSE", "on the front of", ""]
    remarks = [
        f"cases: {', '.join(cases)}",
        "s/MP: processor seconds per megapixel of foreground; MAE and RMSE: relative to the default",
    ]
    return [Table("Seconds against errors", head, lines, remarks)]


def draw(rows: list[Row], folder: Path) -> None:
    """Draw MAE and RMSE against seconds, with the Pareto front as a line, to front.png."""
    points = means(rows)
    if not points:
        return
    chart, axes = new_figure(1, 2, 5.6)
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for place, which, error in ((axes[0, 0], 1, "MAE"), (axes[0, 1], 2, "RMSE")):
        place.set(xlabel="processor seconds per megapixel", ylabel=f"{error}, the default's = 1", title=error)
        _draw_points(place, points, rows, which)
        _draw_names(place, points, which)
        seconds, errors = ([point[k] for point in points.values()] for k in (0, which))
        span = max(errors) / min(errors)
        # Names of settings on the front are to the left of their points, and below.
        place.set(xscale="log", xlim=(0.62 * min(seconds), 1.1 * max(seconds)))
        place.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        place.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        place.xaxis.set_minor_locator(NullLocator())
        place.set(yscale="log", ylim=(min(errors) / span**0.1, max(errors) * span**0.08))
        place.yaxis.set_major_locator(LogLocator(subs=(0.9, 1, 1.1, 1.2, 1.3, 1.5, 2, 2.5, 3, 4)))
        place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        place.yaxis.set_minor_locator(NullLocator())
    _legend(chart, rows)
    save(chart, folder / "front.png")


def _draw_points(place: Any, points: Points, rows: list[Row], which: int) -> None:
    """Draw all settings as points, and the front as a step function of the seconds."""
    colours = _colours(rows)
    passes = {str(row["mesh"]): int(row["passes"]) for row in rows}
    for (mesh, refine), point in points.items():
        if mesh != PAPER:
            marker = MARKERS.get(passes[mesh], "X")
            style = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.4}
            place.plot(point[0], point[which], marker, color=colours[refine], **style)
    place.axhline(1.0, color="#1f78b4", linewidth=0.8, linestyle=":", zorder=0)
    kept = [points[key] for key in front(points, which)]
    end = max(point[0] for point in points.values()), kept[-1][which]
    stairs = [*((point[0], point[which]) for point in kept), end]
    place.step(*zip(*stairs, strict=True), where="post", color=FRONT, linewidth=1.8, zorder=1)


def _draw_names(place: Any, points: Points, which: int) -> None:
    """Draw the names of the settings on the front, of the default and of the paper."""

    def name(key: tuple[str, int], text: str, offset: tuple[int, int], **style: Any) -> None:
        where = points[key][0], points[key][which]
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
        place.annotate(text, where, offset, textcoords="offset points", bbox=box, zorder=6, **style)

    for key in _apart(points, front(points, which), which):
        name(key, f"{key[0]}, refine {key[1]}", (-6, -4), fontsize=7, color=FRONT, ha="right", va="top")
    default = name_of(default_mesh()), default_refinement()
    for key, text, colour in ((default, "default", "#1f78b4"), ((PAPER, 0), PAPER, "#6a3d9a")):
        if key in points:
            where = points[key][0], points[key][which]
            place.plot(*where, "*", markersize=15, color=colour, markeredgecolor="white", zorder=5)
            name(key, text, (0, -26 if key == default else 9), color=colour, weight="bold", fontsize=8, ha="center")


def _apart(points: Points, kept: list[tuple[str, int]], which: int) -> list[tuple[str, int]]:
    """Return the settings of the front that are far enough apart for legible names, and the last one."""
    errors = [point[which] for point in points.values()]
    least = 0.045 * (max(errors) - min(errors))
    named: list[tuple[str, int]] = []
    for key in reversed(kept):
        if all(points[key][which] - points[other][which] > least for other in named):
            named.append(key)
    return named


def _colours(rows: list[Row]) -> dict[int, str]:
    counts = sorted({int(row["refine"]) for row in rows})
    return {count: COLOURS[min(place, len(COLOURS) - 1)] for place, count in enumerate(counts)}


def _legend(chart: Any, rows: list[Row]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=f"refine {count}")
        for count, colour in _colours(rows).items()
    ]
    passes = sorted({int(row["passes"]) for row in rows if row["mesh"] != PAPER})
    handles += [
        Line2D([], [], marker=MARKERS.get(count, "X"), linestyle="", color="#777777", label=f"{count} passes")
        for count in passes
    ]
    handles.append(Line2D([], [], color=FRONT, linewidth=2, label="front"))
    chart.legend(handles=handles, loc="outside lower center", ncols=10, fontsize=8)
    default = f"{name_of(default_mesh())}, refine {default_refinement()}"
    chart.suptitle(f"Names: rounds × passes of alignment, rounds of refinement. Default: {default}.", fontsize=8)


if __name__ == "__main__":
    main()
