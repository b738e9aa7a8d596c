"""``normalmesh inspect``: describe a normal map and diagnose its convention."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import MapReading, camera_as_dict
from normalmesh.cli.option_tables import flag, max_pixels_option, reading_options
from normalmesh.cli.option_types import FILE
from normalmesh.cli.printing import json_text, print_figures, print_text
from normalmesh.errors import NormalMeshError, count_text, path_text

if TYPE_CHECKING:
    from normalmesh.maps.inspection import Inspection
    from normalmesh.reconstruction.estimates import Estimate


@click.command(short_help="Describe a file, and recommend how to read it.")
@click.argument("normals", type=FILE, nargs=-1, required=True)
@reading_options
@max_pixels_option
@flag("--json as_json", "Print one JSON object per file and line.")
def inspect(normals: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Describe the files NORMALS, and recommend the convention to read them with.

    A file that cannot be read does not stop the others, but the exit status is then 1.
    """
    from normalmesh.maps.inspection import inspect_file

    failed = False
    reading, console = MapReading(**options), Console()
    with console.running():
        for position, path in enumerate(normals):
            try:
                with console.working(f"inspecting {path_text(path.name)}"):
                    camera = reading.camera_argument(path)
                    found = inspect_file(path, reading.mask, camera, reading.convention, alpha=reading.alpha)
            except Exception as error:
                failed = True
                console.failure(error, path if len(normals) > 1 else None)
                if as_json:
                    click.echo(json_text({"file": str(path), "error": str(error)}))
                continue
            for warning in found.warnings:
                named = len(normals) == 1 or warning.startswith(path_text(path))
                text = warning if named else f"{path_text(path)}: {warning}"
                console.alert(f"normalmesh: warning: {text}")
            if not as_json:
                print_text("\n" * (position > 0) + path_text(path))
            print_figures(_figures(found), partial(_fields, found), as_json)
    if failed:
        raise SystemExit(1)


def _fields(found: Inspection) -> dict[str, str]:
    from normalmesh.cli.settings import needs_text

    rows, columns = found.shape
    verdict, *reasons = str(found.diagnosis).splitlines()
    estimate = _estimate(found)
    return {
        "file": f"{found.format}, {columns} × {rows} pixels, {found.kind}",
        "mask": _mask_text(found),
        "normals": _normals_text(found),
        "camera": _camera_text(found),
        "noise": _noise_text(found),
        "convention": "\n".join([verdict.removeprefix("convention: "), *reasons]),
        "needs": f"{needs_text(estimate)}, for {estimate.vertices} vertices (98 % compression)",
        "recommended": found.recommendation,
    }


def _camera_text(found: Inspection) -> str:
    """Return the camera, and on a second line what the EXIF data of the file tell about it."""
    text, lens = found.camera.describe(), found.exif_lens
    if lens is None:
        return text
    try:
        return f"{text}\nEXIF: {lens}; --camera exif takes it as a focal length of {lens.focal_px(found.shape):.0f} px"
    except NormalMeshError as error:
        return f"{text}\nEXIF: {lens}; {error}"


def _mask_text(found: Inspection) -> str:
    mask = found.mask
    parts = [count_text(mask.components, "component")]
    if mask.components > 1:
        parts[0] += f" (the largest has {100 * mask.largest / mask.foreground:.1f} % of the pixels)"
    parts.append(count_text(mask.holes, "hole"))
    parts.append(
        f"{count_text(mask.border, 'pixel')} on the image border" if mask.border else "no pixel on the image border"
    )
    share = 100 * mask.foreground / mask.pixels
    return f"{share:.1f} % foreground ({mask.foreground}), from {found.mask_source}\n{', '.join(parts)}"


def _normals_text(found: Inspection) -> str:
    repairs, total = found.repairs, found.mask.foreground
    counted = {
        "rescaled": repairs.rescaled,
        "grazing, clamped to 85°": repairs.grazing,
        "invalid": repairs.invalid,
        "back-facing": repairs.back_facing,
        "without a measurement, extended from neighbours": repairs.extended,
        "too far from any measurement, excluded": repairs.excluded,
    }
    parts = [f"{number} ({100 * number / total:.2g} %) {what}" for what, number in counted.items() if number]
    return f"read as {found.read_as.name}: {'; '.join(parts) or 'no repair needed'}"


def _noise_text(found: Inspection) -> str:
    from normalmesh.normals.noise import LOOP, NEGLIGIBLE, is_inconsistency

    cause = ""
    if is_inconsistency(found.noise, found.repairs, found.mask.foreground):
        cause = " of inconsistency: no surface has these normals (averaged or compressed)"
    treatment = "not filtered" if found.noise < NEGLIGIBLE else "filtered"
    if found.noise < NEGLIGIBLE <= found.largest_noise:
        treatment += f", but up to {found.largest_noise:.2f}° in components that are filtered"
    closure = f"closure error: {found.closure_error:.3f} px around {LOOP} × {LOOP} pixel loops"
    heights = f"heights: about ± {found.height_deviation:.2g} px or more by noise and rounding (standard deviation)"
    return f"{found.noise:.2f}°{cause}, {treatment}; {closure}\n{heights}"


def _figures(found: Inspection) -> dict[str, Any]:
    diagnosis, estimate = found.diagnosis, _estimate(found)
    return {
        "file": str(found.path),
        "format": found.format,
        "rows": found.shape[0],
        "columns": found.shape[1],
        "stored": found.kind,
        "mask": {"source": found.mask_source, **dataclasses.asdict(found.mask)},
        "repairs": dataclasses.asdict(found.repairs),
        "camera": camera_as_dict(found.camera),
        "exif_lens": None if found.exif_lens is None else dataclasses.asdict(found.exif_lens),
        "noise_degrees": found.noise,
        "largest_noise_degrees": found.largest_noise,
        "closure_error_px": found.closure_error,
        "height_deviation_px": found.height_deviation,
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
        "needs": {"vertices": estimate.vertices, "memory_bytes": estimate.memory, "seconds": estimate.seconds},
        "recommendation": found.recommendation,
        "warnings": found.warnings,
    }


def _estimate(found: Inspection) -> Estimate:
    """Return the resources of a reconstruction at the default compression."""
    from normalmesh.decimation.stopping import StoppingRule
    from normalmesh.reconstruction.estimates import Estimate

    return Estimate.of(found.counts, StoppingRule())
