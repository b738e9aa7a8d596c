"""The command line. Commands import their dependencies when they run, so that ``--help`` is fast."""

from __future__ import annotations

import logging
import warnings

import click

from normalmesh import NormalMeshWarning, __version__
from normalmesh.cli.bench import bench
from normalmesh.cli.completion import completion
from normalmesh.cli.console import allow_any_file_name
from normalmesh.cli.convert import convert
from normalmesh.cli.demo import demo
from normalmesh.cli.edit import edit
from normalmesh.cli.error_handling import Commands, debug_option
from normalmesh.cli.evaluate import evaluate
from normalmesh.cli.inspect import inspect
from normalmesh.cli.photometric_command import photometric
from normalmesh.cli.printing import print_text
from normalmesh.cli.reconstruct import reconstruct
from normalmesh.cli.render import render
from normalmesh.cli.report import report
from normalmesh.cli.view import view


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="normalmesh")
@debug_option
def normalmesh() -> None:
    """Turn normal maps into 3D surfaces."""


for command in (
    *(inspect, reconstruct, evaluate, convert, edit, render),
    *(photometric, view, report, bench, demo, completion),
):
    normalmesh.add_command(command)


def main() -> None:
    """Run the command line. Errors take one line; the exit status is 2 for bad usage and 1 for other failures."""
    allow_any_file_name()
    # Messages that decoders log about a damaged file are repeated in the error.
    logging.basicConfig(handlers=[logging.NullHandler()])
    show_other = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: object) -> None:
        if issubclass(category, NormalMeshWarning):
            print_text(f"normalmesh: warning: {message}", err=True)
        else:
            show_other(message, category, *place)  # type: ignore[arg-type]

    warnings.showwarning = show  # type: ignore[assignment]
    normalmesh(prog_name="normalmesh")
