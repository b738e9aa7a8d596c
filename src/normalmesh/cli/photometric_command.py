"""``normalmesh photometric``: a normal map from photographs under known lights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.option_tables import json_option, max_pixels_option, option
from normalmesh.cli.option_types import FILE, POSITIVE
from normalmesh.cli.printing import print_figures, size_text
from normalmesh.errors import path_text

if TYPE_CHECKING:
    from normalmesh.files.atomic import Files
    from normalmesh.photometric.photometric import PhotometricStereo

SHARE = click.FloatRange(0, 1, max_open=True)


@click.command(short_help="Estimate normals from photographs.")
@click.argument("photographs", nargs=-1, required=True)
@option("--lights", "Directions to the lights: one x y z per line, or an .lp file with names.", FILE, required=True)
@option("--mask", "Mask image of the foreground; default: all pixels.", FILE)
@option("--intensities", "Text file with 1 or 3 numbers per light.", FILE)
@option("--darkest", "Share of the values of a pixel to ignore as shadows, such as 0.3.", SHARE, default=0.0)
@option("--brightest", "Share of the values to ignore as highlights, such as 0.1.", SHARE, default=0.0)
@option("--saturation", "Value from which on photographs are clipped, as stored.", POSITIVE)
@option("--convention", "Axes of the lights, as of a normal map.", default="opengl", show_default=True)
@option(
    "--output -o",
    "Normals as PNG (16 bit, with alpha), EXR, TIFF or NPY.",
    FILE,
    default=Path("normals.png"),
    show_default=True,
)
@option("--albedo", "Also write the albedo: PNG for textures, or NPY.", FILE)
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
    from normalmesh.files.encoding import NORMALS_SUFFIXES, checked_suffix, encode_normals
    from normalmesh.photometric.matt_surface import ALBEDO_SUFFIXES, encode_albedo
    from normalmesh.photometric.photometric import photometric_stereo

    checked_suffix(output, NORMALS_SUFFIXES, "normals")
    if albedo is not None:
        checked_suffix(albedo, ALBEDO_SUFFIXES, "albedo")
    check_targets(filter(None, (output, albedo)), [*photographs, lights, mask, intensities])
    with Console().running():
        found = photometric_stereo(_in_order(photographs), lights, mask, intensities=intensities, **options)
    files: Files = {} if albedo is None else {albedo: encode_albedo(albedo, found.albedo)}
    files[output] = encode_normals(output, found.normal_map.normals, found.normal_map.mask)
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
