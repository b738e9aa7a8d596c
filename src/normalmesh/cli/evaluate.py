"""``normalmesh evaluate``: how far a result is from the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console, compilation_announced
from normalmesh.cli.figure_lines import say, say_json
from normalmesh.cli.model_options import rendered
from normalmesh.cli.option_types import limiting
from normalmesh.cli.views import chosen_view, refuse_two_cameras, viewing
from normalmesh.errors import NormalMeshError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from normalmesh.evaluation.cases import Case
    from normalmesh.evaluation.metrics import Evaluation

#: Share of the foreground with a true depth below which truth and normals may not belong together.
MUCH = 0.9


@click.command()
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--normals", type=click.Path(path_type=Path), required=True, help="The normal map that it was made from.")
@click.option("--mask", type=click.Path(), help="Image of the foreground; default: the alpha channel.")
@viewing
@click.option("--convention", default="opengl", show_default=True, help="Of NORMALS, as for reconstruct.")
@click.option("--truth", type=click.Path(path_type=Path), help="True depth: NPY, NPZ, MAT, EXR, TIFF or PNG.")
@click.option("--away", is_flag=True, help="An orthographic --truth counts away from the viewer.")
@click.option("--truth-model", metavar="MODEL", help="Model that was rendered, by file or name (stone, vase, knot).")
@click.option("--placed", is_flag=True, help="MODEL is in the camera's frame; default: fitted, as render does.")
@click.option("--units", help="Unit of the depth, such as mm.")
@click.option(
    "--error-map", type=click.Path(path_type=Path), help="PNG of the depth error, or without truth the angle."
)
@click.option("--scale", type=click.FloatRange(0, min_open=True), help="Error at the end of the map's colours.")
@limiting
@click.option("--json", "as_json", is_flag=True, help="The figures as a JSON object.")
def evaluate(
    result: Path,
    normals: Path,
    mask: str | None,
    camera: str | None,
    focal_px: float | None,
    convention: str,
    truth: Path | None,
    away: bool,
    truth_model: str | None,
    placed: bool,
    units: str | None,
    error_map: Path | None,
    scale: float | None,
    as_json: bool,
) -> None:
    """Compare RESULT, a mesh file or a depth map, with the truth.

    RMSE and MADE of the depth need --truth or --truth-model; the angle is to the normals of the model, or to NORMALS.
    A mesh is seen through the camera of NORMALS, as reconstruct writes it. The height (orthographic) or scale
    (perspective) of each component, which normals leave open, is taken out first.
    """
    refuse_two_cameras(camera, focal_px)
    if truth is not None and truth_model is not None:
        raise click.UsageError("give only one of --truth, --truth-model")
    _refuse_idle("--away", away, "--truth", truth)
    _refuse_idle("--placed", placed, "--truth-model", truth_model)
    _refuse_idle("--scale", scale is not None, "--error-map", error_map)
    if error_map is not None:
        from normalmesh.files.atomic import check_targets
        from normalmesh.files.encoding import checked_suffix

        checked_suffix(error_map, (".png",), "pictures")
        check_targets([error_map], [result, normals, mask, camera, truth, truth_model])
    console = Console()
    with compilation_announced(console):
        from normalmesh.evaluation.metrics import evaluate as compare

        case = _case(normals, mask, (camera, focal_px), convention, units)
        case = _with_truth(case, truth, -1.0 if away else 1.0, truth_model, placed, console)
        found = compare(result, case)
    if found.covered == 0:
        raise NormalMeshError(f"{result}: covers no foreground pixel of {normals}; is it of this image and camera?")
    if truth is not None and _runs_backwards(found, case):
        console.notice(f"result and truth run in opposite directions: try it {'without' if away else 'with'} --away")
    if as_json:
        say_json(_figures(result, found))
    else:
        _report(found)
    if error_map is not None:
        _write_error_map(error_map, found, scale, console)


def _refuse_idle(flag: str, given: bool, about: str, other: object) -> None:
    """Refuse an option that says nothing without another one."""
    if given and other is None:
        raise click.UsageError(f"{flag} is about {about}: give that, too")


def _case(
    normals: Path, mask: str | None, view: tuple[str | None, float | None], convention: str, units: str | None
) -> Case:
    """The normal map, seen by its camera, as its own truth."""
    from normalmesh.evaluation.cases import Case
    from normalmesh.files.normal_maps import read_normal_map, read_stored

    # A camera by name depends on the size of the image.
    named = view[1] is not None or view[0] == "perspective"
    camera = chosen_view(*view, read_stored(normals).shape if named else (1, 1))
    normal_map = read_normal_map(normals, mask, camera, convention)
    return Case("truth", normal_map, units=units or camera.default_units)


def _with_truth(case: Case, truth: Path | None, sign: float, model: str | None, placed: bool, console: Console) -> Case:
    """The case with its true depth, and with true normals where there is a model."""
    from dataclasses import replace

    import numpy as np

    from normalmesh.files.depth_maps import read_depth_map

    if truth is not None:
        case = replace(case, depth=sign * read_depth_map(truth))
    elif model is not None:
        seen = rendered(model, case.normal_map.shape, case.normal_map.camera, placed=placed)
        case = replace(case, depth=seen.depth, normals=seen.normals)
    if case.depth is None:
        console.notice("no truth given: only the angle to the normals")
        return case
    known = np.count_nonzero(np.isfinite(case.depth) & case.normal_map.mask) / case.normal_map.foreground
    if known < MUCH:
        console.notice(
            f"the true depth is known for only {100 * known:.1f} % of the foreground; does it belong to these normals?"
        )
    return case


def _runs_backwards(found: Evaluation, case: Case) -> bool:
    """Whether the result goes down where the truth goes up, as where one counts towards, the other from the viewer."""
    import numpy as np

    both = np.isfinite(found.depth_error)
    if case.depth is None or not both.any():
        return False
    true = case.depth[both] - case.depth[both].mean()
    result = found.depth_error[both] + true
    return bool(true @ result < -0.5 * np.linalg.norm(true) * np.linalg.norm(result))


def _report(found: Evaluation) -> None:
    if found.rmse == found.rmse:  # NaN where no depth is known
        say("RMSE", f"{found.rmse:.4g} {found.units}")
        say("MADE", f"{found.made:.4g} {found.units}")
    say("MAE", f"{found.mae:.3f}°")
    say("vertices", f"{found.vertices} for {found.foreground} pixels")
    say("compression", f"{100 * found.compression:.2f} %")
    say("coverage", f"{100 * found.covered:.2f} % of the foreground, and {100 * found.spilled:.2f} % beside it")


def _figures(result: Path, found: Evaluation) -> dict[str, Any]:
    names = ("rmse", "made", "mae", "vertices", "foreground", "compression", "covered", "spilled", "units")
    return {"result": str(result), **{name: getattr(found, name) for name in names}}


def _write_error_map(path: Path, found: Evaluation, scale: float | None, console: Console) -> None:
    """A heat map of the depth error, or of the angle where no depth is known; its scale ends at the 99th percentile."""
    import numpy as np

    from normalmesh.files.atomic import write_atomically
    from normalmesh.files.encoding import encode_picture
    from normalmesh.pictures.panels import heat

    has_depth = bool(np.isfinite(found.depth_error).any())
    errors: NDArray[np.float64] = np.abs(found.depth_error) if has_depth else found.angles
    end = scale or float(np.nanquantile(errors, 0.99)) or 1.0
    write_atomically({path: encode_picture(path, heat(errors, end))})
    unit = f" {found.units}" if has_depth else "°"
    console.notice(f"wrote {path}: black is 0, pale yellow {end:.3g}{unit} and more, white is not covered")
