"""``normalmesh evaluate``: measure the error of a result against ground truth."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import MapReading
from normalmesh.cli.option_tables import (
    flag,
    json_option,
    max_pixels_option,
    option,
    reading_options,
    reject_several,
    require,
)
from normalmesh.cli.option_types import FILE, POSITIVE
from normalmesh.cli.printing import print_figures
from normalmesh.cli.render import rendered
from normalmesh.errors import NormalMeshError, count_text, path_text

if TYPE_CHECKING:
    from normalmesh.array_types import Float
    from normalmesh.evaluation.cases import Case
    from normalmesh.evaluation.looks import Looks
    from normalmesh.evaluation.metrics import Evaluation

#: What was aligned, for people.
ALIGNED_BY = {
    "offset": "an offset of the depth of each component",
    "scale": "a scale of each component",
    "similarity": "a rotation, a translation and a scale of each component",
    "rigid": "a rotation and a translation of each component",
}
#: Fraction of the foreground with a true depth, below which a notice questions whether truth and normals match.
MIN_TRUTH_COVERAGE = 0.9


@click.command(short_help="Measure errors against ground truth.")
@click.argument("result", type=FILE)
@option("--normals", "Normal map that RESULT was reconstructed from.", FILE, required=True)
@reading_options
@option("--truth", "True depth: NPY, NPZ, MAT, EXR, TIFF or PNG.", FILE)
@flag("--away", "Orthographic --truth increases away from the viewer.")
@option("--truth-model MODEL", "Model that NORMALS was rendered from: file or name (stone, vase, knot).")
@flag("--placed", "MODEL is in the camera frame already; default: fitted to the image.")
@option(
    "--align",
    "What to align before errors are computed; default: offset (orthographic) or scale (perspective). "
    "rigid also forgives a tilt, similarity a tilt and a scale.",
    click.Choice(("offset", "scale", "similarity", "rigid")),
)
@option("--pixel-size MM", "Size of a pixel, for an orthographic RESULT in mm.", POSITIVE)
@option("--units", "Unit of the depth, such as mm.")
@option("--error-map", "Write a PNG of the depth error, or of the angular error.", FILE)
@option("--scale", "Error at the end of the colour scale.", click.FloatRange(0, min_open=True))
@max_pixels_option
@json_option
def evaluate(
    result: Path,
    normals: Path,
    truth: Path | None,
    away: bool,
    truth_model: str | None,
    placed: bool,
    align: str | None,
    units: str | None,
    error_map: Path | None,
    scale: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare RESULT, a mesh file or a depth map, with ground truth.

    RMSE and MADE of the depth require --truth or --truth-model. MAE is the mean angle to the normals of the model, or
    to NORMALS. A mesh must be in the camera frame of NORMALS, as reconstruct writes it. The height (orthographic) or
    scale (perspective) of each component, which normals do not determine, is aligned first; see --align.
    """
    reading = MapReading(**options)
    units = units or (None if reading.pixel_size is None else "mm")
    reading = reading.or_stored(result)
    reject_several(truth=truth, truth_model=truth_model)
    require("--away", away, "--truth", truth)
    require("--placed", placed, "--truth-model", truth_model)
    if align is not None and truth is None and truth_model is None:
        raise click.UsageError("--align requires --truth or --truth-model")
    require("--scale", scale is not None, "--error-map", error_map)
    if error_map is not None:
        from normalmesh.files.atomic import check_targets
        from normalmesh.files.encoding import checked_suffix

        checked_suffix(error_map, (".png",), "pictures")
        check_targets([error_map], [result, normals, reading.mask, reading.camera, truth, truth_model])
    console = Console()
    with console.running():
        from normalmesh.evaluation.cases import Case
        from normalmesh.evaluation.metrics import evaluate as compare

        with console.working("reading"):
            normal_map = reading.normal_map(normals)
            case = Case("truth", normal_map, units=units or normal_map.camera.default_units)
            case = _with_truth(case, truth, -1.0 if away else 1.0, truth_model, placed, console)
        with console.working("comparing"):
            found = compare(result, case, align=align)
    if found.covered == 0:
        raise NormalMeshError(
            f"{path_text(result)}: covers no foreground pixel of {path_text(normals)}; "
            "check that image, camera and --pixel-size match"
        )
    print_figures(_figures(result, found), lambda: _fields(found, align is not None), as_json)
    if error_map is not None:
        _write_error_map(error_map, found, scale, console)


def _with_truth(case: Case, truth: Path | None, sign: float, model: str | None, placed: bool, console: Console) -> Case:
    """Return the case with its true depth, and with true normals if a model is given."""
    from dataclasses import replace

    import numpy as np

    from normalmesh.output.heights import read_depth_map

    if truth is not None:
        case = replace(case, depth=sign * read_depth_map(truth))
    elif model is not None:
        seen = rendered(model, case.normal_map.shape, case.normal_map.camera, placed=placed)
        case = replace(case, depth=seen.depth, normals=seen.normals)
    if case.depth is None:
        console.notice("no truth given: only the angle to the normals is measured")
        return case
    known = np.count_nonzero(np.isfinite(case.depth) & case.normal_map.mask) / case.normal_map.foreground
    if known < MIN_TRUTH_COVERAGE:
        console.notice(
            f"the true depth is known for only {100 * known:.1f} % of the foreground: check that it matches the normals"
        )
    return case


def _fields(found: Evaluation, is_align_chosen: bool) -> dict[str, str]:
    fields = {}
    if found.rmse == found.rmse:  # NaN if no depth is known
        fields["RMSE"] = f"{found.rmse:.4g} {found.units} at {count_text(found.depths_compared, 'pixel')}"
        fields["MADE"] = f"{found.made:.4g} {found.units}"
        if is_align_chosen:
            fields["aligned by"] = ALIGNED_BY[found.align]
    fields |= {
        "MAE": f"{found.mae:.3f}° at {count_text(found.normals_compared, 'pixel')}",
        "vertices": f"{found.vertices} for {count_text(found.foreground, 'pixel')}",
        "compression": f"{100 * found.compression:.2f} %",
        "coverage": f"{100 * found.covered:.2f} % of the foreground, and {100 * found.spilled:.2f} % outside it",
    }
    return fields if found.looks is None else fields | _looks_fields(found.looks)


def _looks_fields(looks: Looks) -> dict[str, str]:
    teeth = f", which turn by {looks.teeth:.1f}° at a vertex, {looks.turning:.1f}° per px"
    aspect = f"largest aspect {looks.largest_aspect:.0f}"
    return {
        "cuts": f"{looks.cut_length:.0f} px" + teeth * math.isfinite(looks.teeth),
        "bad area": f"{looks.bad_area:.2f} % off their pixels by more than 45°, or without any "
        f"({looks.off_30:.2f} % by more than 30°, {looks.off_60:.2f} % by more than 60°)",
        "ghosts": f"{looks.ghosts:.2f} % off by more than 30° where the map is smooth",
        "gaps": f"{looks.gaps:.2f} % seen from 30° beside the view",
        "rim": f"rough by {looks.rim:.2f} px",
        "needles": f"{looks.needles}, {aspect}; {count_text(looks.inverted, 'inverted face')}",
    }


def _figures(result: Path, found: Evaluation) -> dict[str, Any]:
    errors = ("rmse", "made", "depths_compared", "mae", "normals_compared")
    names = (*errors, "vertices", "foreground", "compression", "covered", "spilled", "units", "align")
    looks = None if found.looks is None else asdict(found.looks)
    return {"result": str(result), **{name: getattr(found, name) for name in names}, "looks": looks}


def _write_error_map(path: Path, found: Evaluation, scale: float | None, console: Console) -> None:
    """Write a heat map of the depth error, or of the angular error if no depth is known.

    The colour scale ends at ``scale``, or at the 99th percentile.
    """
    import numpy as np

    from normalmesh.pictures.panels import heat, write_picture

    has_depth = bool(np.isfinite(found.depth_error).any())
    errors: Float = np.abs(found.depth_error) if has_depth else found.angles
    end = scale or float(np.nanquantile(errors, 0.99)) or 1.0
    write_picture(path, heat(errors, end))
    unit = f" {found.units}" if has_depth else "°"
    console.notice(
        f"wrote {path_text(path)}: black is 0, pale yellow is at least {end:.3g}{unit}, white is not covered"
    )
