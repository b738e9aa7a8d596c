"""``normalmesh edit``: change the format, convention, size or orientation of a normal map."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.camera_options import camera_as_dict, image_size
from normalmesh.cli.console import Console, compilation_announced
from normalmesh.cli.map_reading import MapReading
from normalmesh.cli.number_types import number_or_percentage
from normalmesh.cli.printing import print_field, print_json
from normalmesh.cli.shared_options import max_pixels_option, reading_options
from normalmesh.errors import NormalMeshError, path_text

if TYPE_CHECKING:
    from normalmesh.normals.normal_map import NormalMap


def factor_or_size(value: str) -> float | tuple[int, int]:
    """Parse a new size: a factor such as 0.5 or 50%, or columns × rows such as 640x480, returned as (rows, columns)."""
    text = value.strip().lower()
    if "x" in text or "×" in text:
        return image_size(text)
    factor = number_or_percentage(text)
    if not 0 < factor < 1e6:
        raise click.BadParameter(f"{value!r} is neither a factor such as 0.5 or 50% nor a size such as 640x480")
    return factor


def rectangle(value: str) -> tuple[int, int, int, int] | None:
    """Parse a rectangle COLUMNSxROWS+LEFT+TOP, returned as (top, left, height, width); ``mask`` is None."""
    if value.strip().lower() == "mask":
        return None
    parts = re.fullmatch(r"(\d+)[x×](\d+)\+(\d+)\+(\d+)", value.strip().lower())
    if parts is None:
        raise click.BadParameter(f"{value!r} is neither mask nor a rectangle such as 640x480+20+10")
    width, height, left, top = map(int, parts.groups())
    return top, left, height, width


@click.command(short_help="Crop, resize, rotate or convert a normal map.")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@reading_options
@click.option("--to", default="opengl", show_default=True, help="Convention of OUT.")
@click.option("--fill", is_flag=True, help="Continue the normals into holes of the foreground.")
@click.option(
    "--crop",
    metavar="RECTANGLE",
    help="Keep a rectangle, such as 640x480+20+10 (columns x rows + left + top), or the foreground: mask.",
)
@click.option("--margin", type=click.IntRange(0), default=0, help="Pixels to keep around --crop.")
@click.option("--rotate", type=click.Choice(["90", "180", "270"]), help="Turn image and normals anticlockwise.")
@click.option("--resize", type=factor_or_size, metavar="SIZE", help="A factor, such as 0.5 or 50%, or 640x480.")
@click.option("--bits", type=click.Choice(["8", "16", "32"]), help="Bits of a channel; default: 16 (PNG), 32 (others).")
@click.option("--matrix", type=click.Path(path_type=Path), help="Write the matrix of the perspective camera of OUT.")
@max_pixels_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as a JSON object.")
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
    view = reading.view()
    if margin and crop is None:
        raise click.UsageError("--margin requires --crop")
    kept = None if crop is None else rectangle(crop)
    check_targets([target] if matrix is None else [matrix, target], [source, reading.mask, reading.camera])
    with compilation_announced(Console()):
        found = reading.normal_map(source, view)
        found = found.filled() if fill else found
        if kept is not None:
            _check_inside(kept, found.shape, str(crop))
        found = found if crop is None else found.crop(kept, margin=margin)
        found = found if rotate is None else found.rotated(int(rotate))
        found = found if resize is None else found.resize(resize)
        found.save(target, convention=to, bits=None if bits is None else int(bits), matrix=matrix)
    _report(found, [target] if matrix is None else [matrix, target], as_json)


def _check_inside(kept: tuple[int, int, int, int], shape: tuple[int, int], given: str) -> None:
    """Raise an error if a rectangle (top, left, height, width) is not inside an image of rows and columns."""
    top, left, height, width = kept
    if not (0 < height <= shape[0] - top and 0 < width <= shape[1] - left):
        raise NormalMeshError(
            f"the rectangle {given} (columns x rows + left + top) is not inside the image of {shape[1]}x{shape[0]}"
        )


def _report(found: NormalMap, files: list[Path], as_json: bool) -> None:
    rows, columns = found.shape
    if as_json:
        figures = {"rows": rows, "columns": columns, "foreground": found.foreground}
        print_json({**figures, "camera": camera_as_dict(found.camera), "files": list(map(str, files))})
        return
    share = 100 * found.foreground / (rows * columns)
    print_field("size", f"{columns} × {rows} pixels, {share:.1f} % foreground ({found.foreground})")
    print_field("camera", found.camera.describe())
    print_field("wrote", ", ".join(map(path_text, files)))
