"""Compare the default with the continuous surface of the same number of vertices, and with goals."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.cases import CASES, OCCLUSION_FREE, Case, case_names, load, measure
from normalmesh import (
    Evaluation,
    NormalMap,
    NormalMeshWarning,
    Surface,
    add_noise,
    integrate_pixels,
    read_normal_map,
    reconstruct,
)
from normalmesh.paper.tables import geometric_mean
from normalmesh.pictures.panels import jumps, normal_colours, shaded

OBJECTS = ("diligent_bear", "diligent_buddha", "diligent_cow", "diligent_pot2", "diligent_reading")
SCANS = ("mesh_armadillo_ortho_512", "mesh_bunny_ortho_1024", "mesh_nefertiti_persp_512", "blenderproc_bedroom")
SMOOTH = (*OCCLUSION_FREE, "queau_vase", "diligent_ball_ps")
WITHOUT_TRUTH = ("bini_plant", "real_figurine_center_866x1079", "psm_owl")

#: Goals: mean absolute depth errors of the objects in mm, and the same by degrees of noise.
MADE = {"c4": (0.06, 0.40, 0.11, 0.17, 0.27), "c1": (0.13, 0.65, 0.16, 0.27, 0.40)}
NOISY_MADE = {2.0: 0.25, 5.0: 0.40, 10.0: 0.65}
#: Goals: ratios to the authors' program; on smooth surfaces, the ratio to continuous.
SCAN_RMSE, BEDROOM_RMSE, SCAN_MAE = 0.65, 0.55, 0.80
SMOOTH_RMSE = 1.02
#: Number of draws of nearly the same map, and the goal for the largest error of an object over its least.
DRAWS, LARGEST_RATIO = 12, 1.2
#: Errors of bilateral normal integration on the objects (Cao et al. 2022) in mm.
BILATERAL = (0.33, 1.10, 0.06, 0.22, 0.26)

#: Factors of the number of vertices: figures are means over similar meshes, because single meshes vary.
SPREAD = (0.985, 0.993, 1.0, 1.008, 1.016)


def both_surfaces(normal_map: NormalMap, vertices: int) -> tuple[Surface, Surface]:
    """Return the surface of ``reconstruct`` and the continuous one."""
    cut = reconstruct(normal_map, vertices=vertices)
    return cut, reconstruct(normal_map, vertices=vertices, discontinuities=False)


def both_measures(
    case: Case, tag: str, share: float = 1.0, normal_map: NormalMap | None = None
) -> tuple[Evaluation, Evaluation]:
    """Evaluate both surfaces with a multiple of the reference's vertices, for the map of the case or another."""
    cut, continuous = both_surfaces(normal_map or case.normal_map, round(share * case.reference[tag]["vertices"]))
    return measure(cut, case, tag), measure(continuous, case, tag)


def against(value: float, goal: float) -> str:
    return f"{value:7.4f} {'≤' if value <= goal else '> MISSED'} {goal:g}"


def spread(values: list[float]) -> str:
    return f"{np.mean(values):6.3f} ({min(values):.3f}–{max(values):.3f})"


def diligent(options: argparse.Namespace) -> None:
    shares = (1.0,) if options.single else SPREAD
    print(f"MADE in mm: mean (minimum–maximum) over meshes with {', '.join(map(str, shares))} × the vertices")
    print(f"{'case':18} tag  {'default':22} {'continuous':22} mean and goal")
    for tag, goals in MADE.items():
        for name, goal in zip(OBJECTS, goals, strict=True):
            case = load(name)
            pairs = [both_measures(case, tag, share) for share in shares]
            cut, continuous = ([each.made for each in kind] for kind in zip(*pairs, strict=True))
            print(
                f"{name:18} {tag:4} {spread(cut):22} {spread(continuous):22} {against(float(np.mean(cut)), goal)}",
                flush=True,
            )


def draws(options: argparse.Namespace) -> None:
    print(f"MADE in mm at 4 % vertices over {DRAWS} draws that change normals by at most one 16-bit unit")
    print(f"{'case':18} {'mean (minimum–maximum)':22} largest ÷ least and goal")
    means = []
    for name in OBJECTS:
        case = load(name)
        found = [
            measure(reconstruct(_redrawn(case.normal_map, seed), compression=0.96), case).made for seed in range(DRAWS)
        ]
        means.append(np.mean(found))
        print(f"{name:18} {spread(found):22} {against(max(found) / min(found), LARGEST_RATIO)}", flush=True)
    print(f"mean of the objects {np.mean(means):.3f}")


def _redrawn(normal_map: NormalMap, seed: int) -> NormalMap:
    """Return a normal map whose components are changed at random, by at most one unit of 16-bit files."""
    change = np.random.default_rng(seed).integers(-1, 2, normal_map.normals.shape) * (2 / 65535)
    normals = normal_map.normals + change * normal_map.mask[..., None]
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-9)
    return NormalMap(normals, normal_map.mask, normal_map.camera)


def scans(options: argparse.Namespace) -> None:
    print("ratios to the authors' program at 4 % vertices")
    print(f"{'case':26} {'RMSE':>7} {'continuous':>10} | {'MAE':>7} {'continuous':>10}")
    rmse, mae = [], []
    for name in SCANS:
        case = load(name)
        reference = case.reference["c4"]
        found = both_measures(case, "c4")
        rmse.append([each.rmse / reference["rmse"] for each in found])
        mae.append([each.mae / reference["mae_deg"] for each in found])
        print(f"{name:26} {rmse[-1][0]:7.3f} {rmse[-1][1]:10.3f} | {mae[-1][0]:7.3f} {mae[-1][1]:10.3f}", flush=True)
    for text, rows, goal in (
        ("RMSE of mesh_*", rmse[:-1], SCAN_RMSE),
        ("RMSE of the bedroom", rmse[-1:], BEDROOM_RMSE),
        ("MAE of the four", mae, SCAN_MAE),
    ):
        cut, continuous = (geometric_mean(list(kind)) for kind in zip(*rows, strict=True))
        print(f"{text:20} geometric mean {against(cut, goal)}, continuous {continuous:.3f}")


def smooth(options: argparse.Namespace) -> None:
    print(f"{'case':26} tag  {'px of cuts and goal':24} {'RMSE':>9} {'continuous':>10}  ratio and goal")
    for name in (name for name in case_names() if name.startswith(SMOOTH)):
        case = load(name)
        for tag in ("c1", "c4"):
            surfaces = both_surfaces(case.normal_map, int(case.reference[tag]["vertices"]))
            cut, continuous = (measure(each, case, tag).rmse for each in surfaces)
            found = surfaces[0].discontinuities
            assert found is not None
            length = against(found.length, 0.0)
            ratio = against(cut / continuous, SMOOTH_RMSE)
            print(f"{name:26} {tag:4} {length:24} {cut:9.5f} {continuous:10.5f}  {ratio}", flush=True)


def noise(options: argparse.Namespace) -> None:
    print(f"MADE in mm at 4 % vertices under noise, means over {options.seeds} seeds")
    print(f"{'noise':5} {'case':18} {'default':>7} {'continuous':>10}")
    cases = [load(name) for name in OBJECTS]
    for angle, goal in NOISY_MADE.items():
        rows = []
        for case in cases:
            maps = [add_noise(case.normal_map, angle, seed) for seed in range(options.seeds)]
            found = [[each.made for each in both_measures(case, "c4", normal_map=noisy)] for noisy in maps]
            rows.append(np.mean(found, axis=0))
            print(f"{angle:4.0f}° {case.name:18} {rows[-1][0]:7.3f} {rows[-1][1]:10.3f}", flush=True)
        cut, continuous = np.mean(rows, axis=0)
        print(f"{angle:4.0f}° mean of the objects {against(cut, goal)}, continuous {continuous:.3f}", flush=True)


def pixels(options: argparse.Namespace) -> None:
    print("MADE in mm, one unknown per pixel")
    print(f"{'case':18} {'with jumps':>10} {'continuous':>10} {'bilateral, published':>20}")
    for name, bilateral in zip(OBJECTS, BILATERAL, strict=True):
        case = load(name)
        with_jumps, continuous = (
            measure(integrate_pixels(case.normal_map, discontinuities=on), case).made for on in (True, False)
        )
        print(f"{name:18} {with_jumps:10.3f} {continuous:10.3f} {bilateral:20.2f}", flush=True)


def seconds(options: argparse.Namespace) -> None:
    both_surfaces(load("queau_vase").normal_map, 254)  # compiles
    case = load("mesh_bunny_ortho_1024")
    surfaces = both_surfaces(case.normal_map, int(case.reference["c1"]["vertices"]))
    print(f"{case.name}, {case.normal_map.foreground / 1e6:.2f} MP of foreground, 1 % vertices")
    report = surfaces[0].decimation
    assert report is not None
    decimation = sum(report.seconds.values())
    print(f"{'decimation':11} {decimation:6.2f} s")
    for text, surface in zip(("default", "continuous"), surfaces, strict=True):
        made = surface.integration
        assert made is not None
        stages = ", ".join(f"{stage} {value:.2f}" for stage, value in made.seconds.items())
        total = sum(made.seconds.values())
        print(f"{text:11} {total:6.2f} s ({stages}), ÷ decimation {against(total / decimation, 1.0)}")


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "diligent": diligent,
    "draws": draws,
    "scans": scans,
    "smooth": smooth,
    "noise": noise,
    "pixels": pixels,
    "seconds": seconds,
}


def without_truth(name: str) -> NormalMap:
    """Read the map of a case without results of the authors' program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return read_normal_map(CASES / name / "normals.png", CASES / name / "mask.png")


def pictures(folder: Path) -> None:
    """Write a PNG per case with normals, shaded surface, and the cut edges over it; 4 % vertices."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*OBJECTS, *WITHOUT_TRUTH):
        normal_map = without_truth(name) if name in WITHOUT_TRUTH else load(name).normal_map
        surface = reconstruct(normal_map, vertices=round(0.04 * normal_map.foreground))
        rows, columns = np.nonzero(normal_map.mask)
        window = np.s_[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        panels = [normal_colours(normal_map.normals), shaded(surface.normal_map()), jumps(surface)]
        Image.fromarray(np.concatenate([panel[window] for panel in panels], axis=1)).save(folder / f"{name}.png")
        print(f"{name:30} {surface.discontinuities}; valid: {surface.mesh.check().ok}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="*", choices=PARTS, help="default: all, or none with --pictures")
    parser.add_argument("--single", action="store_true", help="DiLiGenT only at the exact number of vertices")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds of the noise")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="write normals, surface and cuts as PNG")
    options = parser.parse_args()
    if not case_names():
        print("the shared cases are not on this machine")
        return
    for name in options.part or ([] if options.pictures else PARTS):
        print(f"\n# {name}")
        PARTS[name](options)
    if options.pictures:
        pictures(options.pictures)


if __name__ == "__main__":
    main()
