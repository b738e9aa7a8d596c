"""``normalmesh bench``: reproduce the tables and figures of the paper."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path

import click

from normalmesh.cli.console import Console
from normalmesh.cli.option_tables import flag, option
from normalmesh.cli.option_types import FILE
from normalmesh.cli.printing import print_markdown
from normalmesh.errors import ShortfallWarning, path_text

#: Names of the benchmarks, and the modules of :mod:`normalmesh.paper` that define them.
BENCHMARKS = {
    "accuracy": "accuracy",
    "thresholds": "thresholds",
    "ablation": "ablation",
    "runtime": "run_times",
    "noise": "noise_robustness",
    "density": "density",
}


@click.command(short_help="Reproduce the tables of the paper.")
@click.argument("name", type=click.Choice(list(BENCHMARKS)))
@option("--data", "Folder of a data set; default: the project's own cases.", FILE)
@option("--only PATTERN", "Run only cases whose name matches, such as 'bear*'; repeatable.", multiple=True)
@option("--camera", "Run only cases of this camera; default: all.", click.Choice(["orthographic", "perspective"]))
@option("--size", "Side in pixels of the project's own cases.", click.IntRange(32, 8192))
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=Path("bench"), show_default=True
)
@flag("--restart", "Discard earlier results instead of resuming.")
def bench(
    name: str,
    data: Path | None,
    only: tuple[str, ...],
    camera: str | None,
    size: int | None,
    output: Path,
    restart: bool,
) -> None:
    """Run the benchmark NAME, print its table, and write it as CSV, Markdown and PNG.

    An interrupted benchmark resumes. The tables and figures are those of the paper "Feature-Preserving Mesh Decimation
    for Normal Integration": accuracy (table 1 and supplement), thresholds (table 2), ablation, runtime, noise, density.
    """
    from normalmesh.paper.benchmark import run_benchmark
    from normalmesh.paper.sources import chosen, dataset_sources

    benchmark = import_module(f"normalmesh.paper.{BENCHMARKS[name]}").BENCHMARK
    size = size or benchmark.size
    sources = benchmark.own_sources(size) if data is None else dataset_sources(data)
    if camera is not None:
        sources = [source for source in sources if source.camera == camera]
    settings = {"data": f"own cases of {size} px" if data is None else str(data), "cases": " ".join(only) or "all"}
    settings["camera"] = camera or "all"
    console = Console()
    with warnings.catch_warnings(), console.running():
        # The tables show coverage and vertices.
        warnings.simplefilter("ignore", ShortfallWarning)
        text = run_benchmark(
            benchmark,
            chosen(sources, only),
            output / name,
            settings,
            restart=restart,
            report=console.notice,
            progress=console.progress,
        )
    print_markdown(text)
    console.notice(f"wrote {path_text(output / name)}")
