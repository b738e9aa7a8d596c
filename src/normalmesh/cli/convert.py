"""``normalmesh convert``: convert between mesh formats, and render a mesh to a depth map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import CameraChoice, camera_as_dict
from normalmesh.cli.option_tables import camera_options, json_option, max_pixels_option, option, reject_several
from normalmesh.cli.option_types import FILE, POSITIVE, image_size
from normalmesh.cli.printing import print_figures
from normalmesh.errors import NormalMeshError, count_text, path_text, warn_caller

if TYPE_CHECKING:
    from normalmesh.array_types import Float
    from normalmesh.normals.camera import Camera

#: Share of the vertices that may lie outside the image without a warning.
MAX_OUTSIDE = 0.01
#: Number of faces per pixel above which a warning questions the scale: a reconstruction has at most two.
MAX_FACES = 4


@click.command(short_help="Convert meshes and depth maps.")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@option("--normals", "Normal map whose size the depth map gets.", FILE)
@option("--size SIZE", "Size of the depth map, such as 512 or 640x480, instead of --normals.", image_size)
@camera_options
@option("--pixel-size MM", "Size of an orthographic pixel in the unit of the mesh.", POSITIVE)
@max_pixels_option
@json_option
def convert(
    source: Path, target: Path, normals: Path | None, size: tuple[int, int] | None, as_json: bool, **camera: Any
) -> None:
    """Convert the mesh or depth map IN to OUT.

    Meshes: PLY, OBJ, GLB and STL into each other, and from glTF, OFF, 3MF. Depth maps: NPY, NPZ, MAT, EXR, TIFF or PNG
    to EXR, TIFF, NPY (float32, or float64 where needed; NaN outside) or PNG (16 bit, with its range). To convert a
    mesh to a depth map, give --normals or --size; the mesh is rendered in the camera frame in which reconstruct writes
    it.
    """
    from normalmesh.files.atomic import check_targets
    from normalmesh.files.height_png import depth_companions
    from normalmesh.output.mesh_formats import companions_of
    from normalmesh.output.mesh_writing import convert_mesh

    choice = CameraChoice(**camera)
    from_mesh, to_mesh = _kinds(source, target)
    if (normals is not None or size is not None or choice.has_camera) and (to_mesh or not from_mesh):
        raise click.UsageError(
            "--normals, --size, --pixel-size and the options of the camera require a mesh as IN and a depth map as OUT"
        )
    reject_several(normals=normals, size=size)
    beside = companions_of(target, textured=False) if to_mesh else depth_companions(target)
    check_targets([target, *beside], [source, normals, choice.camera])
    view = _view(normals, size, choice) if from_mesh and not to_mesh else None
    console = Console()
    with console.running("converting"):
        if to_mesh:
            mesh = convert_mesh(source, target)
            figures: dict[str, Any] = {"vertices": len(mesh.vertices), "faces": len(mesh.faces)}
        else:
            figures = _convert_depth(source, target, view)
    print_figures({**figures, "files": [str(target)]}, lambda: _fields(figures, target), as_json)


def _kinds(source: Path, target: Path) -> tuple[bool, bool]:
    """Return whether the source is a mesh and whether the target is one; raise if the target cannot be written."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES
    from normalmesh.output.mesh_formats import MESH_SUFFIXES, WRITTEN_SUFFIXES

    from_mesh, suffix = source.suffix.lower() in MESH_SUFFIXES, target.suffix.lower()
    if suffix not in (*WRITTEN_SUFFIXES, *DEPTH_SUFFIXES):
        known = ", ".join((*WRITTEN_SUFFIXES, *DEPTH_SUFFIXES))
        raise click.UsageError(f"cannot write {path_text(target)}: the suffix must be one of {known}")
    if suffix in WRITTEN_SUFFIXES and not from_mesh:
        raise click.UsageError(
            f"{path_text(source)} is not a mesh: to make {path_text(target)} from normals, use normalmesh reconstruct"
        )
    return from_mesh, suffix in WRITTEN_SUFFIXES


def _view(normals: Path | None, size: tuple[int, int] | None, choice: CameraChoice) -> tuple[Camera, tuple[int, int]]:
    """Return the camera, and the rows and columns of the depth map."""
    from normalmesh.maps.cameras import held_camera
    from normalmesh.maps.stored_normals import read_size

    if normals is not None:
        size = read_size(normals)
        if not choice.has_camera and (own := held_camera(normals)) is not None:
            return own, size
    if size is None:
        raise click.UsageError("the size of the depth map is missing: add --normals FILE or --size COLUMNSxROWS")
    return choice.questioned_camera(size, normals), size


def _convert_depth(source: Path, target: Path, view: tuple[Camera, tuple[int, int]] | None) -> dict[str, Any]:
    """Write the depth of a mesh seen by a camera, or of a depth map if ``view`` is None; return the figures."""
    import numpy as np

    from normalmesh.files.atomic import write_atomically
    from normalmesh.files.height_png import depth_files, range_of_camera, read_height_range
    from normalmesh.output.heights import read_depth_map

    depth = read_depth_map(source) if view is None else _rendered_depth(source, *view)
    about = read_height_range(source) if view is None else range_of_camera(view[0], None)
    known = np.isfinite(depth)
    if not known.any():
        raise NormalMeshError(f"{path_text(source)}: no depth is known")
    write_atomically(depth_files(target, depth, about))
    return {
        "rows": depth.shape[0],
        "columns": depth.shape[1],
        "known": int(np.count_nonzero(known)),
        "depth_range": [float(depth[known].min()), float(depth[known].max())],
        "camera": None if view is None else camera_as_dict(view[0]),
    }


def _fields(figures: dict[str, Any], target: Path) -> dict[str, str]:
    if "faces" in figures:
        vertices = count_text(figures["vertices"], "vertex", "vertices")
        about = {"mesh": f"{vertices}, {count_text(figures['faces'], 'face')}"}
    else:
        rows, columns, (low, high) = figures["rows"], figures["columns"], figures["depth_range"]
        share = 100 * figures["known"] / (rows * columns)
        about = {"depth": f"{columns} × {rows} pixels, {share:.1f} % known, from {low:.4g} to {high:.4g}"}
    return {**about, "wrote": path_text(target)}


def _rendered_depth(source: Path, camera: Camera, shape: tuple[int, int]) -> Float:
    import numpy as np

    from normalmesh.evaluation.rendering.rendering import cast, share_outside
    from normalmesh.evaluation.rendering.triangle_model import TriangleModel

    model = TriangleModel.of(source)
    depth = cast(model.vertices, model.faces, camera, shape)[1]
    known = int(np.count_nonzero(np.isfinite(depth)))
    if known == 0:
        low, high = model.vertices.min(axis=0), model.vertices.max(axis=0)
        span = ", ".join(f"{axis} {a:.4g} … {b:.4g}" for axis, a, b in zip("xyz", low, high, strict=True))
        raise NormalMeshError(
            f"{path_text(source)}: the mesh is outside the image of {shape[1]} × {shape[0]} pixels; it covers {span}; "
            "check --size, --camera and --pixel-size"
        )
    outside = share_outside(model.vertices, camera, shape)
    if outside > MAX_OUTSIDE:
        _warn(source, f"{100 * outside:.0f} % of the vertices lie outside the image of {shape[1]} × {shape[0]} pixels")
    elif len(model.faces) > MAX_FACES * known:
        _warn(source, f"there are {len(model.faces)} faces, but they cover only {count_text(known, 'pixel')}")
    return depth


def _warn(source: Path, what: str) -> None:
    warn_caller(f"{path_text(source)}: {what}; check --size, --camera and --pixel-size")
