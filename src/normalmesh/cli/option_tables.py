"""Tables of options that commands share, or that belong together, in the order of the help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import click

from normalmesh.cli import option_types as types

#: What adds one or more options to a command.
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

#: Default side of a tile in pixels.
TILE = 4096
#: Directions of the options of maps that repeat.
DIRECTIONS = {"tile_both": "xy", "tile_x": "x", "tile_y": "y"}


def option(words: str, text: str, kind: Any = None, **more: Any) -> Decorator:
    """Return what adds an option to a command.

    ``words`` are its names, and the metavar of its value, or the name of its parameter if that is in lower case.
    """
    *names, last = words.split()
    if last.startswith("-") or last.islower():
        return click.option(*names, last, type=kind, help=text, **more)
    return click.option(*names, type=kind, metavar=last, help=text, **more)


def flag(words: str, text: str, **more: Any) -> Decorator:
    """Return what adds an option without a value to a command."""
    return option(words, text, is_flag=True, **more)


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
max_pixels_option = option(
    "--max-pixels",
    "Reject larger images, such as 5e8; default: NORMALMESH_MAX_PIXELS, or 2e9.",
    types.POSITIVE,
    expose_value=False,
    callback=_limit_pixels,
)
json_option = flag("--json as_json", "Print the figures as a JSON object.")

#: At most one of them may be given.
camera_options = table(
    option(
        "--camera FILE|NAME",
        "File with the 3×3 camera matrix, or photograph with an EXIF focal length; orthographic (default), "
        "perspective (37° field of view), or exif (that of the map itself).",
    ),
    option(
        "--focal-px",
        "Focal length in pixels of a perspective camera centred on the image, instead of --camera.",
        types.POSITIVE,
    ),
    option(
        "--fov DEGREES",
        "Horizontal field of view, from left to right, of a perspective camera, instead of --camera.",
        click.FloatRange(0, 180, min_open=True, max_open=True),
    ),
)

#: How a normal map is read: the fields of `MapReading`.
reading_options = table(
    option("--mask", "Mask image of the foreground; default: see --alpha.", click.Path()),
    option(
        "--alpha",
        "Whether an alpha channel is the mask: if it looks like one, always, or never.",
        click.Choice(["auto", "mask", "ignore"]),
        default="auto",
        show_default=True,
    ),
    camera_options,
    option(
        "--convention",
        "Axes of the channels: opengl, directx, opencv, auto or e.g. +x-y+z.",
        default="opengl",
        show_default=True,
    ),
)

#: The resolution of a mesh; at most one of them may be given.
stopping_options = table(
    option("--compression PERCENT", "Vertices to remove: 98 or 0.98.  [default: 98]", types.compression),
    option("--vertices", "Number of vertices.", click.IntRange(3)),
    option("--threshold", "Largest cost of a collapse in px⁴, as in the paper.", types.POSITIVE),
    option("--max-angle", "Largest mean angle between faces and normals, in degrees.", types.POSITIVE),
    option(
        "--max-error",
        "Largest RMS deviation in height from a much finer mesh, in px, or mm with --pixel-size.",
        types.POSITIVE,
    ),
    option(
        "--lod LEVELS", "Levels of detail, such as 1%,0.3%,0.1%, written to OUT.lod0.glb, OUT.lod1.glb, …", types.levels
    ),
)

#: What is written, how GLB files place it, and the strength of the relief.
output_options = table(
    option(
        "--output -o outputs",
        "Mesh (PLY, OBJ, GLB, STL), heights (TIFF, EXR, NPY, PNG), folder/ for 3D Tiles, or folder for "
        "several inputs; repeat for several outputs; default: GLB, or STL with --solid, next to NORMALS.",
        click.Path(),
        multiple=True,
    ),
    option(
        "--scale auto|none|FACTOR",
        "GLB: metres per unit. auto: as the unit says; px: longest side 1.  [default: auto]",
        types.glb_scale,
    ),
    flag("--no-centre", "GLB: do not move the centre of the surface to the origin."),
    option(
        "--strength FACTOR",
        "Multiply the heights of an orthographic map: 0.5 flattens, 2 exaggerates, -1 inverts. "
        "The result is no measurement.",
        types.relief_strength,
    ),
)

#: What is made of a surface for 3D printing.
solid_options = table(
    option(
        "--flatten", "Remove the tilt of the whole surface, or tilt and bend.", click.Choice(["plane", "quadratic"])
    ),
    option(
        "--solid LENGTH",
        "Write a watertight solid for printing. LENGTH is the thickness of its base: 3mm, 12px. "
        "Formats: STL (default), 3MF, PLY, OBJ, GLB.",
        types.length,
    ),
    option("--width LENGTH", "Scale the solid to this width, such as 80mm.", types.length),
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

#: How large maps are reconstructed.
tiling_options = table(
    flag("--tiles", "Work in tiles, on all cores or a cluster; the map may exceed the memory."),
    option("--tile-size PIXELS", f"Side of a tile of --tiles.  [default: {TILE}]", int),
    option("--scheduler ADDRESS", "Dask scheduler of a cluster for --tiles, tcp://host:8786."),
    option("--workers", "Processes for --tiles; 0: only this one.", click.IntRange(0)),
    option("--work", "Work folder of --tiles; default: OUT.work next to the output.", click.Path()),
    flag("--keep-work", "Keep the work folder of --tiles after success."),
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


def reject_several(**values: object) -> None:
    """Raise a usage error if several of the options that exclude each other, by their parameters, are given."""
    names = [option_name(name) for name, value in values.items() if value is not None and value is not False]
    if len(names) > 1:
        raise click.UsageError(f"give only one of {', '.join(names)}")


def require(option: str, is_given: bool, required: str, value: object) -> None:
    """Raise a usage error for an option that has no effect without another one."""
    if is_given and value is None:
        raise click.UsageError(f"{option} requires {required}")


def option_name(parameter: str) -> str:
    """Return the name of an option on the command line."""
    return f"--{parameter.replace('_', '-')}"
