"""``normalmesh convert``: between mesh formats, and from a surface to a depth map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.figure_lines import count_text, say, say_json
from normalmesh.cli.option_types import limiting
from normalmesh.cli.views import ImageSize, camera_figures, chosen_view, refuse_two_cameras, viewing
from normalmesh.errors import NormalMeshError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from normalmesh.normals.camera import Camera


@click.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--normals", type=click.Path(path_type=Path), help="Normal map whose size a depth map gets.")
@click.option("--size", type=ImageSize(), help="Size of a depth map, such as 512 or 640x480, instead of --normals.")
@viewing
@limiting
@click.option("--json", "as_json", is_flag=True, help="The figures as a JSON object.")
def convert(
    source: Path,
    target: Path,
    normals: Path | None,
    size: tuple[int, int] | None,
    camera: str | None,
    focal_px: float | None,
    as_json: bool,
) -> None:
    """Convert the mesh or depth map IN to OUT.

    Meshes: PLY, OBJ, GLB and STL into each other. Depth maps: NPY, NPZ, MAT, EXR, TIFF or PNG to EXR, TIFF or NPY
    (float32, NaN outside). A mesh becomes a depth map when a camera looks at it as reconstruct has written it, which
    needs --normals or --size.
    """
    from normalmesh.files.atomic import check_targets

    refuse_two_cameras(camera, focal_px)
    from_mesh, to_mesh = _kinds(source, target)
    looks = any(option is not None for option in (normals, size, camera, focal_px))
    if looks and (to_mesh or not from_mesh):
        raise click.UsageError("--normals, --size, --camera and --focal-px are for a mesh that becomes a depth map")
    if normals is not None and size is not None:
        raise click.UsageError("give only one of --normals, --size")
    check_targets([target], [normals, camera])
    if to_mesh:
        figures = _convert_mesh(source, target)
    else:
        view = _view(normals, size, (camera, focal_px)) if from_mesh else None
        figures = _convert_depth(source, target, view)
    if as_json:
        say_json({**figures, "files": [str(target)]})
    else:
        _report(figures, target)


def _kinds(source: Path, target: Path) -> tuple[bool, bool]:
    """Whether the source is a mesh, and whether the target is one, or an error."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES
    from normalmesh.files.mesh_formats import MESH_SUFFIXES, WRITTEN_SUFFIXES

    from_mesh, suffix = source.suffix.lower() in MESH_SUFFIXES, target.suffix.lower()
    if suffix not in (*WRITTEN_SUFFIXES, *DEPTH_SUFFIXES):
        known = ", ".join((*WRITTEN_SUFFIXES, *DEPTH_SUFFIXES))
        raise click.UsageError(f"cannot write {target}: the suffix must be one of {known}")
    if suffix in WRITTEN_SUFFIXES and not from_mesh:
        raise click.UsageError(f"{source} is no mesh, and {target} would be: reconstruct makes meshes, from normals")
    return from_mesh, suffix in WRITTEN_SUFFIXES


def _convert_mesh(source: Path, target: Path) -> dict[str, Any]:
    from normalmesh.files.mesh_conversion import convert_mesh

    mesh = convert_mesh(source, target)
    return {"vertices": len(mesh.vertices), "faces": len(mesh.faces)}


def _view(
    normals: Path | None, size: tuple[int, int] | None, view: tuple[str | None, float | None]
) -> tuple[Camera, tuple[int, int]]:
    """Camera and rows and columns of the image to be made."""
    from normalmesh.files.normal_maps import read_stored

    if normals is not None:
        size = read_stored(normals).shape
    if size is None:
        raise click.UsageError("a depth map of a mesh needs its size: add --normals FILE or --size COLUMNSxROWS")
    return chosen_view(*view, size), size


def _convert_depth(source: Path, target: Path, view: tuple[Camera, tuple[int, int]] | None) -> dict[str, Any]:
    """Write the depth of a mesh that is looked at, or of a depth map."""
    import numpy as np

    from normalmesh.files.atomic import write_atomically
    from normalmesh.files.depth_maps import read_depth_map
    from normalmesh.files.encoding import encode_depth

    depth = read_depth_map(source) if view is None else _seen_depth(source, *view)
    known = np.isfinite(depth)
    if not known.any():
        raise NormalMeshError(f"{source}: no depth is known")
    write_atomically({target: encode_depth(target, depth)})
    return {
        "rows": depth.shape[0],
        "columns": depth.shape[1],
        "known": int(np.count_nonzero(known)),
        "depth_range": [float(depth[known].min()), float(depth[known].max())],
        "camera": None if view is None else camera_figures(view[0]),
    }


def _report(figures: dict[str, Any], target: Path) -> None:
    if "faces" in figures:
        vertices = count_text(figures["vertices"], "vertex", "vertices")
        say("mesh", f"{vertices}, {count_text(figures['faces'], 'face')}")
    else:
        rows, columns, (low, high) = figures["rows"], figures["columns"], figures["depth_range"]
        share = 100 * figures["known"] / (rows * columns)
        say("depth", f"{columns} × {rows} pixels, {share:.1f} % known, from {low:.4g} to {high:.4g}")
    say("wrote", str(target))


def _seen_depth(source: Path, camera: Camera, shape: tuple[int, int]) -> NDArray[np.float64]:
    import numpy as np

    from normalmesh.evaluation.rendering.rendering import cast
    from normalmesh.evaluation.rendering.triangle_model import TriangleModel

    model = TriangleModel.of(source)
    depth = cast(model.vertices, model.faces, camera, shape)[1]
    if not np.isfinite(depth).any():
        low, high = model.vertices.min(axis=0), model.vertices.max(axis=0)
        span = ", ".join(f"{axis} {a:.4g} … {b:.4g}" for axis, a, b in zip("xyz", low, high, strict=True))
        raise NormalMeshError(
            f"{source}: nothing of it is seen in {shape[1]} × {shape[0]} pixels, for it covers {span}; "
            "check --size and --camera"
        )
    return depth
