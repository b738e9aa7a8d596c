"""``normalmesh edit``: change the format, convention, size or orientation of a normal map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import MapReading, camera_as_dict
from normalmesh.cli.option_tables import flag, json_option, max_pixels_option, option, reading_options, require
from normalmesh.cli.option_types import FILE, factor_or_size, rectangle
from normalmesh.cli.printing import print_figures, size_text
from normalmesh.errors import NormalMeshError, path_text

if TYPE_CHECKING:
    from normalmesh.normals.normal_map import NormalMap


@click.command(short_help="Crop, resize, rotate or convert a normal map.")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@reading_options
@option("--to", "Convention of OUT.", default="opengl", show_default=True)
@flag("--fill", "Continue the normals into holes of the foreground.")
@option(
    "--crop RECTANGLE",
    "Keep a rectangle, such as 640x480+20+10 (columns x rows + left + top), or the foreground: mask.",
)
@option("--margin", "Pixels to keep around --crop.", click.IntRange(0), default=0)
@option("--rotate", "Turn image and normals anticlockwise.", click.Choice(["90", "180", "270"]))
@option("--resize SIZE", "A factor, such as 0.5 or 50%, or 640x480.", factor_or_size)
@option("--bits", "Bits of a channel; default: 16 (PNG), 32 (others).", click.Choice(["8", "16", "32"]))
@option("--matrix", "Write the matrix of the perspective camera of OUT.", FILE)
@max_pixels_option
@json_option
def edit(
    source: Path,
    target: Path,
    to: str,
    fill: bool,
    crop: str | None,
    margin: int,
    rotate: str | None,
    resize: float | tuple[int, int] | None,
    bits: str | None,
    matrix: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write the normal map IN to OUT in another format or convention; fill, crop, rotate and resize it, in this order.

    OUT is PNG, TIFF, EXR, NPY or NPZ. The camera follows the pixels: NPZ and --matrix hold it.
    """
    from normalmesh.files.atomic import check_targets

    reading = MapReading(**options)
    require("--margin", margin > 0, "--crop", crop)
    kept = None if crop is None else rectangle(crop)
    files = [target] if matrix is None else [matrix, target]
    check_targets(files, [source, reading.mask, reading.camera])
    with Console().running():
        found = reading.normal_map(source)
        found = found.filled() if fill else found
        if kept is not None:
            (top, left, height, width), (rows, columns) = kept, found.shape
            if not (0 < height <= rows - top and 0 < width <= columns - left):
                where = f"not inside the image of {columns}x{rows}"
                raise NormalMeshError(f"the rectangle {crop} (columns x rows + left + top) is {where}")
        found = found if crop is None else found.crop(kept, margin=margin)
        found = found if rotate is None else found.rotated(int(rotate))
        found = found if resize is None else found.resize(resize)
        found.save(target, convention=to, bits=None if bits is None else int(bits), matrix=matrix)
    rows, columns = found.shape
    figures: dict[str, Any] = {"rows": rows, "columns": columns, "foreground": found.foreground}
    figures |= {"camera": camera_as_dict(found.camera), "files": list(map(str, files))}
    print_figures(figures, lambda: _fields(found, files), as_json)


def _fields(found: NormalMap, files: list[Path]) -> dict[str, str]:
    return {
        "size": size_text(found.shape, found.foreground),
        "camera": found.camera.describe(),
        "wrote": ", ".join(map(path_text, files)),
    }
