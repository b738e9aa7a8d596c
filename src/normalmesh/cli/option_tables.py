"""Tables of options that commands share, or that belong together, in the order of the help."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import click

from normalmesh.cli import option_types as types

#: What adds one or more options to a command.
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

#: Default side of a tile in pixels.
TILE = 4096
#: Directions of the options of maps that repeat.
DIRECTIONS = {"tile_both": "xy", "tile_x": "x", "tile_y": "y"}


def table(*rows: Decorator) -> Decorator:
    """Return what adds several options to a command."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for row in reversed(rows):
            command = row(command)
        return command

    return add


def _limit_pixels(context: click.Context, option: click.Parameter, value: float | None) -> None:
    if value is not None:
        from normalmesh.files.size_limits import limited_pixels

        context.with_resource(limited_pixels(value))


def _add_direction(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    """Add the directions of an option to those of the others."""
    if given:
        directions = (context.params.get("tile") or "") + DIRECTIONS[str(parameter.name)]
        context.params["tile"] = "".join(sorted(set(directions)))


#: Larger images are rejected before they are decoded.
max_pixels_option = click.option(
    "--max-pixels",
    type=types.POSITIVE,
    expose_value=False,
    callback=_limit_pixels,
    help="Reject larger images, such as 5e8; default: NORMALMESH_MAX_PIXELS, or 2e9.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the figures as a JSON object.")

#: At most one of them may be given.
camera_options = table(
    click.option(
        "--camera",
        metavar="FILE|NAME",
        help="File with the 3×3 camera matrix, or photograph with an EXIF focal length; orthographic (default), "
        "perspective (37° field of view), or exif (that of the map itself).",
    ),
    click.option(
        "--focal-px",
        type=types.POSITIVE,
        help="Focal length in pixels of a perspective camera centred on the image, instead of --camera.",
    ),
    click.option(
        "--fov",
        type=click.FloatRange(0, 180, min_open=True, max_open=True),
        metavar="DEGREES",
        help="Horizontal field of view, from left to right, of a perspective camera, instead of --camera.",
    ),
)

#: How a normal map is read: the fields of `MapReading`.
reading_options = table(
    click.option("--mask", type=click.Path(), help="Mask image of the foreground; default: see --alpha."),
    click.option(
        "--alpha",
        type=click.Choice(["auto", "mask", "ignore"]),
        default="auto",
        show_default=True,
        help="Whether an alpha channel is the mask: if it looks like one, always, or never.",
    ),
    camera_options,
    click.option(
        "--convention",
        default="opengl",
        show_default=True,
        help="Axes of the channels: opengl, directx, opencv, auto or e.g. +x-y+z.",
    ),
)

#: The resolution of a mesh; at most one of them may be given.
stopping_options = table(
    click.option(
        "--detail",
        type=click.Choice(["low", "medium", "high"]),
        help="As many vertices as the map needs on a screen; each level has four times those of the one below.  "
        "[default: medium]",
    ),
    click.option("--compression", type=types.compression, metavar="PERCENT", help="Vertices to remove: 98 or 0.98."),
    click.option("--vertices", type=click.IntRange(3), help="Number of vertices."),
    click.option("--threshold", type=types.POSITIVE, help="Largest cost of a collapse in px⁴, as in the paper."),
    click.option("--max-angle", type=types.POSITIVE, help="Largest mean angle between faces and normals, in degrees."),
    click.option(
        "--max-error",
        type=types.POSITIVE,
        help="Largest RMS deviation in height from a much finer mesh, in px, or mm with --pixel-size.",
    ),
    click.option(
        "--lod",
        type=types.levels,
        metavar="LEVELS",
        help="Levels of detail, such as 1%,0.3%,0.1%, written to OUT.lod0.glb, OUT.lod1.glb, …",
    ),
)

#: What is written, how GLB files place it, and the strength of the relief.
output_options = table(
    click.option(
        "--output",
        "-o",
        "outputs",
        type=click.Path(),
        multiple=True,
        help="Mesh (PLY, OBJ, GLB, STL), heights (TIFF, EXR, NPY, PNG), folder/ for 3D Tiles, or folder for "
        "several inputs; repeat for several outputs; default: GLB, or STL with --solid, next to NORMALS.",
    ),
    click.option(
        "--scale",
        type=types.glb_scale,
        metavar="auto|none|FACTOR",
        help="GLB: metres per unit. auto: as the unit says; px: longest side 1.  [default: auto]",
    ),
    click.option("--no-centre", is_flag=True, help="GLB: do not move the centre of the surface to the origin."),
    click.option(
        "--strength",
        type=types.relief_strength,
        metavar="FACTOR",
        help="Multiply the heights of an orthographic map: 0.5 flattens, 2 exaggerates, -1 inverts. "
        "The result is no measurement.",
    ),
)

#: What is made of a surface for 3D printing.
solid_options = table(
    click.option(
        "--flatten",
        type=click.Choice(["plane", "quadratic"]),
        help="Remove the tilt of the whole surface, or tilt and bend.",
    ),
    click.option(
        "--solid",
        type=types.length,
        metavar="LENGTH",
        help="Write a watertight solid for printing. LENGTH is the thickness of its base: 3mm, 12px. "
        "Formats: STL (default), 3MF, PLY, OBJ, GLB.",
    ),
    click.option("--width", type=types.length, metavar="LENGTH", help="Scale the solid to this width, such as 80mm."),
)

_direction: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _add_direction}
#: In which directions a map repeats, as ``tile``: None, ``"x"``, ``"y"`` or ``"xy"``.
repeat_options = table(
    click.option(
        "--tile",
        "--tileable",
        "tile_both",
        help="The map is a texture that repeats: so does the surface, without a seam. (--tiles is for large maps.)",
        **_direction,
    ),
    click.option("--tile-x", help="As --tile, but to the right and the left only.", **_direction),
    click.option("--tile-y", help="As --tile, but upwards and downwards only.", **_direction),
)

#: The arguments of `Tiling.of`.
tiling_options = table(
    click.option(
        "--tiles", is_flag=True, help="Work in tiles, on all cores or a cluster; the map may exceed the memory."
    ),
    click.option("--tile-size", type=int, metavar="PIXELS", help=f"Side of a tile of --tiles.  [default: {TILE}]"),
    click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler of a cluster for --tiles, tcp://host:8786."),
    click.option("--workers", type=click.IntRange(0), help="Processes for --tiles; 0: only this one."),
    click.option("--work", type=click.Path(), help="Work folder of --tiles; default: OUT.work next to the output."),
    click.option("--keep-work", is_flag=True, help="Keep the work folder of --tiles after success."),
)


class SectionedCommand(click.Command):
    """A command whose help has sections of options: headings, and the names of their parameters, in order.

    Options that no section names come last.
    """

    def __init__(self, *arguments: Any, sections: dict[str, tuple[str, ...]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; called by click."""
        records = {parameter.name: parameter.get_help_record(context) for parameter in self.get_params(context)}
        named = [(heading, [records.pop(name) for name in names]) for heading, names in self.sections.items()]
        for heading, rows in [*named, ("Other options", list(records.values()))]:
            with formatter.section(heading):
                # Arguments have no record.
                formatter.write_dl([row for row in rows if row is not None])


def reject_several(names: Collection[str]) -> None:
    """Raise a usage error if several of the options that exclude each other, by their parameters, are given."""
    if len(names) > 1:
        raise click.UsageError(f"give only one of {', '.join(map(option_name, names))}")


def require(option: str, is_given: bool, required: str, value: object) -> None:
    """Raise a usage error for an option that has no effect without another one."""
    if is_given and value is None:
        raise click.UsageError(f"{option} requires {required}")


def option_name(parameter: str) -> str:
    """Return the name of an option on the command line."""
    return f"--{parameter.replace('_', '-')}"
