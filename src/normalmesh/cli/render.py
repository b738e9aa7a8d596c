"""``normalmesh render``: render normals, mask and depth of a triangle model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import CameraChoice, camera_as_dict
from normalmesh.cli.option_tables import camera_options, flag, json_option, option
from normalmesh.cli.option_types import FILE, image_size
from normalmesh.cli.printing import print_figures, size_text
from normalmesh.errors import NormalMeshError, path_text

if TYPE_CHECKING:
    from normalmesh.evaluation.cases import Case
    from normalmesh.files.atomic import Files
    from normalmesh.normals.camera import Camera

#: Models that can be given by name; see :mod:`normalmesh.evaluation.synthetic.models`.
NAMED_MODELS = ("knot", "stone", "vase")


@click.command(short_help="Render the normals of a triangle model.")
@click.argument("model")
@option("--size SIZE", "Image size, such as 512 or 640x480.", image_size, default="512", show_default=True)
@camera_options
@option(
    "--output -o",
    "Normals as PNG (16 bit, with alpha), EXR, TIFF or NPY; default: MODEL_normals.png in the current folder.",
    FILE,
)
@option("--depth", "Also write the depth: EXR, TIFF, NPY or PNG.", FILE)
@option("--mask", "Also write the mask: PNG.", FILE)
@option("--matrix", "Also write the matrix of a perspective camera.", FILE)
@flag("--flat", "Use face normals; default: interpolate vertex normals.")
@flag("--placed", "MODEL is in the camera frame already; default: fitted to the image.")
@json_option
def render(
    model: str,
    size: tuple[int, int],
    output: Path | None,
    depth: Path | None,
    mask: Path | None,
    matrix: Path | None,
    flat: bool,
    placed: bool,
    as_json: bool,
    **camera: Any,
) -> None:
    """Render normals, and optionally depth and mask, of the triangle model MODEL.

    MODEL is a PLY, OBJ, STL, GLB, glTF or OFF file, or the name of a built-in model: stone, vase or knot. Normals are
    written with x right, y up, z towards the viewer (convention opengl). Depth is height towards the viewer
    (orthographic) or distance along the optical axis (perspective), as in evaluate and reconstruct.
    """
    from normalmesh.evaluation.datasets.case_assembly import repair_warnings_ignored
    from normalmesh.files.atomic import check_targets, write_atomically
    from normalmesh.files.encoding import DEPTH_SUFFIXES, NORMALS_SUFFIXES, checked_suffix
    from normalmesh.files.height_png import depth_companions

    choice = CameraChoice(**camera)
    output = output or Path(f"{Path(model).stem}_normals.png")
    checked_suffix(output, NORMALS_SUFFIXES, "normals")
    if depth is not None:
        checked_suffix(depth, DEPTH_SUFFIXES, "depths")
    if mask is not None:
        checked_suffix(mask, (".png",), "masks")
    if matrix is not None:
        checked_suffix(matrix, (".txt",), "camera matrices")
    beside = [] if depth is None else depth_companions(depth)
    check_targets([*filter(None, (output, depth, mask, matrix)), *beside], [model, choice.camera])
    view = choice.questioned_camera(size)
    if matrix is not None and view.matrix() is None:
        raise click.UsageError("--matrix needs a perspective camera: add --focal-px, --fov, or --camera perspective")
    console = Console()
    with console.running("rendering"):
        # The files hold the exact normals, which are not clamped.
        with repair_warnings_ignored():
            case = rendered(model, size, view, placed=placed, smooth=not flat)
        files = _files(case, output, depth, mask, matrix)
        write_atomically(files)
    figures = {**_figures(case), "files": list(map(str, files))}
    print_figures(figures, lambda: _fields(case, ", ".join(map(path_text, files))), as_json)


def rendered(model: str, shape: tuple[int, int], camera: Camera, *, placed: bool = False, smooth: bool = True) -> Case:
    """Return the rendering of a model, which is fitted to the image unless it is in the camera frame already."""
    import numpy as np

    from normalmesh.evaluation.rendering.rendering import render_normal_map
    from normalmesh.evaluation.synthetic import models

    if not Path(model).exists():
        if model not in NAMED_MODELS:
            raise NormalMeshError(
                f"{path_text(model)}: there is no such file, nor a model of that name; "
                f"known models: {', '.join(NAMED_MODELS)}"
            )
        if placed:
            raise NormalMeshError(f"{path_text(model)} has no position in a camera frame; omit --placed")
        return render_normal_map(getattr(models, model)(), shape, camera, smooth=smooth, name=model)
    return render_normal_map(model, shape, camera, smooth=smooth, pose=np.eye(4) if placed else None)


def _files(case: Case, output: Path, depth: Path | None, mask: Path | None, matrix: Path | None) -> Files:
    """Return the content of each output file, the normals last."""
    from normalmesh.files.encoding import encode_mask, encode_normals
    from normalmesh.files.height_png import depth_files, range_of_camera
    from normalmesh.output.normal_map_writing import matrix_text

    files: Files = {}
    if matrix is not None:
        files[matrix] = matrix_text(case.normal_map.camera)
    if mask is not None:
        files[mask] = encode_mask(mask, case.normal_map.mask)
    if depth is not None and case.depth is not None:
        files |= depth_files(depth, case.depth, range_of_camera(case.normal_map.camera, case.units))
    files[output] = encode_normals(output, case.normals, case.normal_map.mask)
    return files


def _fields(case: Case, written: str) -> dict[str, str]:
    low, high = _figures(case)["depth_range"]
    return {
        "model": path_text(case.name),
        "size": size_text(case.normal_map.shape, case.normal_map.foreground),
        "camera": case.normal_map.camera.describe(),
        "depth": f"{low:.4g} to {high:.4g} {case.units}",
        "wrote": written,
    }


def _figures(case: Case) -> dict[str, Any]:
    import numpy as np

    rows, columns = case.normal_map.shape
    depth_range = [float(np.nanmin(case.depth)), float(np.nanmax(case.depth))]  # type: ignore[arg-type]
    return {
        "model": case.name,
        "rows": rows,
        "columns": columns,
        "foreground": case.normal_map.foreground,
        "camera": camera_as_dict(case.normal_map.camera),
        "depth_range": depth_range,
        "units": case.units,
    }
