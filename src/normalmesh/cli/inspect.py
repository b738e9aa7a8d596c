"""``normalmesh inspect``: what is in a normal map."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console, compilation_announced
from normalmesh.cli.failures import failure_text, print_trace
from normalmesh.cli.figure_lines import count_text, say, say_json
from normalmesh.cli.needs import Needs
from normalmesh.cli.option_types import limiting, reading
from normalmesh.cli.settings import DEFAULT_COMPRESSION
from normalmesh.cli.views import camera_figures

if TYPE_CHECKING:
    from normalmesh.files.inspection import Inspection


@click.command()
@click.argument("normals", type=click.Path(path_type=Path), nargs=-1, required=True)
@reading
@limiting
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file, each on a line.")
def inspect(normals: tuple[Path, ...], mask: str | None, camera: str | None, convention: str, as_json: bool) -> None:
    """Say what is in the files NORMALS, which convention the data fit, and what to do.

    A file that cannot be read does not stop the others; the exit status is 1 then.
    """
    from normalmesh.files.inspection import inspect_file

    failed = False
    with compilation_announced(Console()):
        for position, path in enumerate(normals):
            try:
                found = inspect_file(path, mask, camera, convention)
            except Exception as error:
                failed = True
                print_trace(error)
                click.echo(f"normalmesh: {failure_text(error, path if len(normals) > 1 else None)}", err=True)
                if as_json:
                    say_json({"file": str(path), "error": str(error)})
                continue
            for warning in found.warnings:
                named = len(normals) == 1 or warning.startswith(str(path))
                click.echo(f"normalmesh: warning: {warning if named else f'{path}: {warning}'}", err=True)
            if as_json:
                say_json(_figures(found))
            else:
                click.echo("\n" * (position > 0) + str(path))
                _report(found)
    if failed:
        raise SystemExit(1)


def _report(found: Inspection) -> None:
    rows, columns = found.shape
    say("file", f"{found.format}, {columns} × {rows} pixels, {found.kind}")
    say("mask", _mask_text(found))
    say("normals", _normals_text(found))
    say("camera", found.camera.describe())
    say("noise", _noise_text(found))
    told, *reasons = str(found.diagnosis).splitlines()
    say("convention", "\n".join([told.removeprefix("convention: "), *reasons]))
    needs = _needs(found)
    say("needs", f"{needs}, for {needs.vertices} vertices (98 % saved)")
    say("recommended", found.recommendation)


def _mask_text(found: Inspection) -> str:
    mask = found.mask
    parts = [count_text(mask.components, "component")]
    if mask.components > 1:
        parts[0] += f", the largest {100 * mask.largest / mask.foreground:.1f} % of it"
    parts.append(count_text(mask.holes, "hole"))
    parts.append(f"{mask.border} pixels on the image's border" if mask.border else "clear of the image's border")
    share = 100 * mask.foreground / mask.pixels
    return f"{share:.1f} % foreground ({mask.foreground}), from {found.mask_source}\n{', '.join(parts)}"


def _normals_text(found: Inspection) -> str:
    repairs, total = found.repairs, found.mask.foreground
    counted = {
        "invalid, left out": repairs.invalid,
        "rescaled": repairs.rescaled,
        "back-facing, clamped to 85°": repairs.back_facing,
        "grazing, clamped to 85°": repairs.grazing,
    }
    parts = [f"{number} ({100 * number / total:.2g} %) {what}" for what, number in counted.items() if number]
    return f"read as {found.read_as.name}: {'; '.join(parts) or 'all usable as they are'}"


def _noise_text(found: Inspection) -> str:
    from normalmesh.normals.noise import LOOP, NEGLIGIBLE

    treated = "normals are taken as they are" if found.noise < NEGLIGIBLE else "which is averaged away"
    gap = f"heights miss themselves by {found.closure_error:.3f} px around {LOOP} × {LOOP} pixels"
    return f"{found.noise:.2f}°, {treated}; {gap}"


def _figures(found: Inspection) -> dict[str, Any]:
    diagnosis = found.diagnosis
    needs = _needs(found)
    return {
        "file": str(found.path),
        "format": found.format,
        "rows": found.shape[0],
        "columns": found.shape[1],
        "stored": found.kind,
        "mask": {"source": found.mask_source, **dataclasses.asdict(found.mask)},
        "repairs": dataclasses.asdict(found.repairs),
        "camera": camera_figures(found.camera),
        "noise_degrees": found.noise,
        "closure_error_px": found.closure_error,
        "convention": {
            "stated": None if found.stated is None else found.stated.axes,
            "read_as": found.read_as.axes,
            "found": diagnosis.axes,
            "candidates": diagnosis.candidates,
            "confidence": diagnosis.confidence,
            "contradicted": found.stated is not None and diagnosis.strongly_excludes(found.stated),
            "srgb": diagnosis.srgb,
            "world_space": diagnosis.world_space,
        },
        "needs": {"vertices": needs.vertices, "memory_bytes": needs.memory, "seconds": needs.seconds},
        "recommendation": found.recommendation,
        "warnings": found.warnings,
    }


def _needs(found: Inspection) -> Needs:
    """Of a reconstruction at the usual compression."""
    from normalmesh.decimation.stopping import StoppingRule

    vertices = StoppingRule(compression=DEFAULT_COMPRESSION).expected_vertices(found.mask.foreground)
    return Needs.of(found.mask.pixels, found.mask.foreground, vertices)
