"""What seconds buy: MAE and RMSE against processor time over rounds, passes and rounds of refinement, at 1 % vertices.

Each figure is the geometric mean over the cases of its ratio to the default's. Rows are stored as they come: call it
again to go on where it was interrupted.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import case_names
from benchmarks.cases import load as load_shared
from normalmesh import Surface, decimate, evaluate, integrate
from normalmesh.evaluation.benches.bench import Bench, Row, Task, run_bench
from normalmesh.evaluation.benches.plots import new_figure, plain_ticks, save
from normalmesh.evaluation.benches.sources import Source, own_sources
from normalmesh.evaluation.benches.tables import Table, figure, geometric_mean
from normalmesh.noise import estimate_noise, without_noise
from normalmesh.reconstruction import PRESETS

OWN = ("medallion", "terrain", "knot")
SHARED = ("relief_igea512", "terrain_sthelens_327x466", "mesh_armadillo_ortho_512", "diligent_bear")

#: Options of decimate(): one line for each mesh to be tried.
MESHES: list[dict[str, Any]] = [
    *({"rounds": rounds, "passes": passes} for rounds in (1, 2, 3, 5) for passes in (0, 1, 3, 10)),
]
#: Rounds of refinement, each tried on each mesh.
REFINEMENTS = (0, 2, 3, 4, 6)

#: Rounds of refinement → colour, from light to dark.
COLOURS = ("#fdbb84", "#fc8d59", "#e34a33", "#b30000", "#5a0000", "#000000")
#: Passes → marker.
MARKERS = {0: "o", 1: "^", 3: "s", 10: "D"}
PAPER = "paper"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512, help="side in pixels of the project's own cases")
    parser.add_argument("--compression", type=float, default=0.99, help="share of vertices to save")
    parser.add_argument("--cases", nargs="*", help=f"default: {', '.join((*OWN, *SHARED))}")
    parser.add_argument("--output", type=Path, default=Path("results/front"), help="folder; default: %(default)s")
    parser.add_argument("--restart", action="store_true", help="throw away what is there")
    options = parser.parse_args()
    names = options.cases or [*OWN, *SHARED]
    own = [source for source in own_sources(options.size, ["orthographic"]) if source.name in names]
    shared = [Source(name, name, "its own", partial(load_shared, name)) for name in case_names() if name in names]
    settings = {"size": str(options.size), "compression": f"{options.compression:g}"}
    bench = Bench(
        "front",
        __doc__.partition("\n")[0].rstrip("."),
        options.size,
        ("case", "mesh"),
        lambda size: own,
        partial(tasks, compression=options.compression),
        tables,
        draw,
    )
    print(run_bench(bench, [*own, *shared], options.output, settings, restart=options.restart, say=print))


def default_mesh() -> dict[str, Any]:
    """The options of :data:`MESHES` as reconstruct() has them unless others are asked for."""
    defaults = {name: each.default for name, each in inspect.signature(decimate).parameters.items()}
    used = {name for mesh in MESHES for name in mesh}
    return {**{name: defaults[name] for name in sorted(used, reverse=True)}, **PRESETS["default"][0]}


def default_refinement() -> int:
    return PRESETS["default"][1].get("refine", inspect.signature(integrate).parameters["refine"].default)


def name_of(mesh: dict[str, Any]) -> str:
    """Such as ``5 × 3``: rounds and passes; other options are added where they differ from the default."""
    defaults = default_mesh()
    mesh = {**defaults, **mesh}
    shape = f"{mesh.pop('rounds')} × {mesh.pop('passes')}"
    return ", ".join([shape, *(f"{name} {value}" for name, value in mesh.items() if value != defaults.get(name))])


def tasks(sources: Sequence[Source], folder: Path, compression: float) -> list[Task]:
    """One for each case and mesh: refinements share it."""
    meshes = {name_of(mesh): mesh for mesh in [*MESHES, default_mesh()]}
    refinements = sorted({*REFINEMENTS, default_refinement()})
    variants: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
        name: (mesh, [{**PRESETS["default"][1], "refine": count} for count in refinements])
        for name, mesh in meshes.items()
    }
    variants[PAPER] = PRESETS["paper"][0], [PRESETS["paper"][1]]
    return [
        Task((source.name, name), partial(run, source, compression, mesh, integrations))
        for source in sources
        for name, (mesh, integrations) in variants.items()
    ]


def run(source: Source, compression: float, mesh: dict[str, Any], integrations: list[dict[str, Any]]) -> list[Row]:
    """A row for each way to integrate one mesh, with the processor seconds of decimation and integration together."""
    case = source.load()
    _compile(mesh, integrations[-1])

    def made() -> Any:
        noise = integrations[0].get("noise")
        noise = estimate_noise(case.normal_map) if noise is None else noise
        return noise, decimate(without_noise(case.normal_map, noise), compression=compression, **mesh)

    (noise, decimated), meshing = timed(made)
    rows: list[Row] = []
    for options in integrations:
        surface, seconds = timed(partial(integrate, decimated, case.normal_map, **{**options, "noise": noise}))
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


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its processor seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def _compile(mesh: dict[str, Any], options: dict[str, Any]) -> None:
    """Load what is compiled, so that it does not count."""
    small = own_sources(64, ["orthographic"])[0].make().normal_map
    integrate(decimate(small, compression=0.9, **mesh), small, **options)


def means(rows: list[Row]) -> dict[tuple[str, int], tuple[float, float, float]]:
    """(mesh, rounds of refinement) → seconds per megapixel, MAE and RMSE, these two relative to the default."""
    default = name_of(default_mesh()), default_refinement()
    found: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((str(row["mesh"]), int(row["refine"])), {})[str(row["case"])] = row
    base = found.get(default, {})
    result = {}
    for key, of_case in found.items():
        # A setting that was interrupted is compared over the cases that it has.
        both = [name for name in of_case if name in base]
        if both:
            ratios = [
                geometric_mean([float(of_case[name][column]) / float(base[name][column]) for name in both])
                for column in ("seconds", "mae", "rmse")
            ]
            seconds = geometric_mean([float(row["seconds"]) for row in base.values()])
            result[key] = (ratios[0] * seconds, ratios[1], ratios[2])
    return result


def front(points: dict[tuple[str, int], tuple[float, float, float]], which: int) -> list[tuple[str, int]]:
    """Settings that no other beats in both seconds and the error (1: MAE, 2: RMSE), fastest first."""
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
    """front.png: MAE and RMSE against seconds, the front as a line."""
    points = means(rows)
    if not points:
        return
    chart, axes = new_figure(1, 2, 5.2)
    for place, which, error in ((axes[0, 0], 1, "MAE"), (axes[0, 1], 2, "RMSE")):
        _draw_error(place, points, rows, which)
        place.set(xlabel="processor seconds per megapixel", ylabel=f"{error} ÷ default's", title=error)
        place.set(xscale="log", yscale="log")
        for along in "xy":
            plain_ticks(place, along)
    _legend(chart, rows)
    save(chart, folder / "front.png")


def _draw_error(
    place: Any, points: dict[tuple[str, int], tuple[float, float, float]], rows: list[Row], which: int
) -> None:
    colours = _colours(rows)
    passes = {str(row["mesh"]): int(row["passes"]) for row in rows}
    for (mesh, refine), point in points.items():
        if mesh != PAPER:
            place.plot(
                point[0],
                point[which],
                MARKERS.get(passes[mesh], "X"),
                color=colours[refine],
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.4,
            )
    kept = front(points, which)
    place.plot(
        [points[key][0] for key in kept], [points[key][which] for key in kept], color="#1b9e77", linewidth=2, zorder=1
    )
    for mesh, refine in _spread([points[key] for key in kept], kept, which):
        point = points[mesh, refine]
        text = f"{mesh}, refine {refine}"
        place.annotate(
            text, (point[0], point[which]), (-3, -5), textcoords="offset points", fontsize=7, color="#0b6b4f",
            ha="right", va="top",
        )  # fmt: skip
    default = name_of(default_mesh()), default_refinement()
    for key, name, colour in ((default, "default", "#1f78b4"), ((PAPER, 0), "paper", "#6a3d9a")):
        if key in points:
            point = points[key]
            place.plot(point[0], point[which], "*", markersize=15, color=colour, markeredgecolor="white", zorder=5)
            place.annotate(
                name, (point[0], point[which]), (0, 9), textcoords="offset points", color=colour, weight="bold",
                ha="center",
            )  # fmt: skip


def _spread(where: list[tuple[float, float, float]], keys: list[tuple[str, int]], which: int) -> list[tuple[str, int]]:
    """Those of the front that stand apart enough to be named."""
    kept: list[int] = []
    for k, point in enumerate(where):
        if all(abs(np.log(point[which] / where[other][which])) > 0.03 for other in kept):
            kept.append(k)
    return [keys[k] for k in kept]


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
    handles.append(Line2D([], [], color="#1b9e77", linewidth=2, label="front"))
    chart.legend(handles=handles, loc="outside lower center", ncols=10, fontsize=8)
    chart.suptitle("Names: rounds × passes of alignment, rounds of refinement", fontsize=8)


if __name__ == "__main__":
    main()
