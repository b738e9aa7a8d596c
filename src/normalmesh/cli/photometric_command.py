"""``normalmesh photometric``: a normal map from photographs under known lights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.option_tables import json_option, max_pixels_option
from normalmesh.cli.option_types import POSITIVE
from normalmesh.cli.printing import print_figures, size_text
from normalmesh.errors import path_text

if TYPE_CHECKING:
    from normalmesh.files.atomic import Files
    from normalmesh.photometric.photometric import PhotometricStereo

SHARE = click.FloatRange(0, 1, max_open=True)


@click.command(short_help="Estimate normals from photographs.")
@click.argument("photographs", nargs=-1, required=True)
@click.option(
    "--lights",
    type=click.Path(path_type=Path),
    required=True,
    help="Directions to the lights: one x y z per line, or an .lp file with names.",
)
@click.option("--mask", type=click.Path(path_type=Path), help="Mask image of the foreground; default: all pixels.")
@click.option("--intensities", type=click.Path(path_type=Path), help="Text file with 1 or 3 numbers per light.")
@click.option(
    "--darkest", type=SHARE, default=0.0, help="Share of the values of a pixel to ignore as shadows, such as 0.3."
)
@click.option("--brightest", type=SHARE, default=0.0, help="Share of the values to ignore as highlights, such as 0.1.")
@click.option("--saturation", type=POSITIVE, help="Value from which on photographs are clipped, as stored.")
@click.option("--convention", default="opengl", show_default=True, help="Axes of the lights, as of a normal map.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("normals.png"),
    show_default=True,
    help="Normals as PNG (16 bit, with alpha), EXR, TIFF or NPY.",
)
@click.option("--albedo", type=click.Path(path_type=Path), help="Also write the albedo: PNG for textures, or NPY.")
@max_pixels_option
@json_option
def photometric(
    photographs: tuple[str, ...],
    lights: Path,
    mask: Path | None,
    intensities: Path | None,
    output: Path,
    albedo: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate a normal map from PHOTOGRAPHS of one view, each under another known light.

    PHOTOGRAPHS are files, a folder or a quoted pattern, in linear values. If --lights has names, as .lp files have,
    each photograph gets the light with its name. Otherwise lights are in the order of the photographs, which is natural
    order (1, 2, 10) for a folder, a pattern, and files in the order of the alphabet, as the shell gives them.
    """
    from normalmesh.files.atomic import check_targets, write_atomically
    from normalmesh.files.encoding import NORMALS_SUFFIXES, checked_suffix
    from normalmesh.photometric.albedo import ALBEDO_SUFFIXES
    from normalmesh.photometric.photometric import photometric_stereo

    checked_suffix(output, NORMALS_SUFFIXES, "normals")
    if albedo is not None:
        checked_suffix(albedo, ALBEDO_SUFFIXES, "albedo")
    check_targets(filter(None, (output, albedo)), [*photographs, lights, mask, intensities])
    with Console().running():
        found = photometric_stereo(_in_order(photographs), lights, mask, intensities=intensities, **options)
    files = _files(found, output, albedo)
    write_atomically(files)
    figures = {**_figures(found), "files": list(map(str, files))}
    print_figures(figures, lambda: _fields(found, output, albedo), as_json)


def _in_order(names: tuple[str, ...]) -> str | list[str]:
    """Return a folder or pattern as it is, and files in natural order if the shell has sorted them."""
    from normalmesh.photometric.photographs import natural_key

    if len(names) == 1:
        return names[0]
    as_sorted = any(list(names) == sorted(names, key=key) for key in (str, str.casefold))
    return sorted(names, key=natural_key) if as_sorted else list(names)


def _files(found: PhotometricStereo, output: Path, albedo: Path | None) -> Files:
    """Return the content of each output file, the normals last."""
    from normalmesh.files.encoding import encode_normals
    from normalmesh.photometric.albedo import encode_albedo

    files: Files = {} if albedo is None else {albedo: encode_albedo(albedo, found.albedo)}
    files[output] = encode_normals(output, found.normal_map.normals, found.normal_map.mask)
    return files


def _figures(found: PhotometricStereo) -> dict[str, Any]:
    import numpy as np

    rows, columns = found.normal_map.shape
    inside = found.normal_map.mask
    albedo = found.albedo[inside].reshape(found.normal_map.foreground, -1).mean(axis=1)
    return {
        "rows": rows,
        "columns": columns,
        "foreground": found.normal_map.foreground,
        "albedo": float(np.median(albedo)),
        "residual": float(np.median(found.residual[inside] / np.maximum(albedo, 1e-30))),
    }


def _fields(found: PhotometricStereo, output: Path, albedo: Path | None) -> dict[str, str]:
    texture = f" --texture {path_text(albedo)}" if albedo is not None and albedo.suffix.lower() == ".png" else ""
    return {
        "normals": size_text(found.normal_map.shape, found.normal_map.foreground, "of them"),
        "residual": f"{100 * _figures(found)['residual']:.2g} % of the albedo (median)",
        "wrote": ", ".join(path_text(file) for file in filter(None, (albedo, output))),
        "next": f"normalmesh reconstruct {path_text(output)}{texture}",
    }
