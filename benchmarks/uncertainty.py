"""Compare the standard deviations of heights with sampled ones, and with the errors against known heights.

Each draw has other noise and another mesh. Columns, all ideally 1: the standard deviation by noise alone, and by noise
and mesh, over the sampled one, as root mean squares over pixels and over differences between random pixels; and the
errors over their standard deviations, as root mean squares over pixels, inner vertices and differences. Heights and
truth are compared relative to their means.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from benchmarks.cases import Case, case_names, load
from normalmesh import NormalMap, Surface, reconstruct
from normalmesh.mesh.cut_mesh import boundary_vertices

Float = NDArray[np.float64]

#: Case, compression and noise in degrees.
RUNS = (
    ("relief_igea512", 0.98, 0.5),
    ("relief_igea512", 0.98, 2.0),
    ("relief_igea512", 0.9, 0.5),
    ("relief_igea512", 0.9, 2.0),
    ("relief_bunny512", 0.98, 0.5),
    ("relief_bunny512", 0.98, 2.0),
    ("diligent_bear", 0.98, 0.5),
    ("diligent_bear", 0.98, 2.0),
    ("diligent_bear", 0.9, 0.5),
    ("diligent_bear", 0.9, 2.0),
    ("sphere512", 0.98, 0.5),
    ("queau_vase", 0.98, 0.5),
    ("terrain_sthelens_327x466", 0.98, 0.5),
    ("terrain_sthelens_327x466", 0.98, 2.0),
    ("terrain_sthelens_327x466", 0.9, 0.5),
    ("ridges512", 0.98, 0.5),
)
#: Pairs of pixels between which differences are taken.
PAIRS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20, help="noisy maps for each run")
    parser.add_argument("--cases", nargs="+", help="only these cases")
    parser.add_argument("--continuous", action="store_true", help="without jumps, which differ between draws")
    given = parser.parse_args()
    if not case_names():
        print("the shared cases are not on this machine")
        return
    print("case                     compr.  noise | noise alone / sampled | with mesh / sampled | error / with mesh")
    print(f"{'':39}|   pixels  differences |  pixels differences | pixels vertices differences")
    for name, compression, degrees in RUNS:
        if given.cases is None or name in given.cases:
            jumps = False if given.continuous else "auto"
            figures = run(load(name), compression, degrees, given.draws, jumps)
            print(
                f"{name:24} {100 * compression:4.0f} %  {degrees:4.1f}° | {figures[0]:8.2f} {figures[1]:12.2f} | "
                f"{figures[2]:7.2f} {figures[3]:11.2f} | {figures[4]:6.2f} {figures[5]:8.2f} {figures[6]:11.2f}",
                flush=True,
            )


def run(case: Case, compression: float, degrees: float, count: int, jumps: bool | str) -> list[float]:
    """Return the figures of a row of the table."""
    random = np.random.default_rng(1)
    sign = -1.0 if case.normal_map.camera.is_central else 1.0
    truth = sign * np.asarray(case.depth, np.float64)
    options = {"compression": compression, "noise": degrees, "discontinuities": jumps, "distance": 1.0}
    if sign < 0:
        options["distance"] = -float(np.nanmean(truth))
    surfaces = [reconstruct(noisy(case.normal_map, degrees, random), **options) for _ in range(count)]
    heights = np.array([sign * surface.depth_map() for surface in surfaces])
    covered = np.isfinite(heights).all(axis=0) & np.isfinite(truth)
    heights -= (heights - truth)[:, covered].mean(axis=1)[:, None, None]
    errors = heights - truth
    by_noise, by_mesh = np.array([parts_of_pixels(surface, degrees) for surface in surfaces]).transpose(1, 0, 2, 3)
    both = by_noise + by_mesh
    row, column = random.permutation(np.argwhere(covered))[: 2 * PAIRS].T
    measured = [
        surfaces[0].height_difference((u, v), (other_u, other_v), noise=degrees)
        for (u, v), (other_u, other_v) in (np.stack([column, row], axis=1) + 0.5).reshape(PAIRS, 2, 2)
    ]
    between = np.subtract(*heights[:, row, column].reshape(count, PAIRS, 2).transpose(2, 0, 1))
    deviations = np.array([each.standard_deviation for each in measured])
    sampled = heights.var(axis=0, ddof=1)[covered], between.var(axis=0, ddof=1)
    true_between = np.subtract(*truth[row, column].reshape(PAIRS, 2).T)
    at_vertices = vertex_errors(surfaces[0], truth, heights[0], degrees)
    return [
        rms(by_noise[:, covered]) / rms(sampled[0]),
        rms(np.array([each.noise for each in measured]) ** 2) / rms(sampled[1]),
        rms(both[:, covered]) / rms(sampled[0]),
        rms(deviations**2) / rms(sampled[1]),
        rms(errors[:, covered] ** 2 / both[:, covered]),
        rms(at_vertices**2),
        rms(((between[0] - true_between) / deviations) ** 2),
    ]


def rms(squares: Float) -> float:
    return math.sqrt(float(np.mean(squares)))


def parts_of_pixels(surface: Surface, degrees: float) -> tuple[Float, Float]:
    """Return the variances (H, W) of heights by noise and by the mesh."""
    _, owners = surface.owners()
    corners = surface.faces[owners]
    by_noise = (surface.uncertainty(degrees, mesh=False)[corners] ** 2).mean(axis=2)
    depth = surface.camera.depth_per_unknown(surface.camera.depth(surface.vertices))
    return by_noise, (surface.integration.height_noise.face_deviations[owners] * depth[corners].mean(axis=2)) ** 2


def vertex_errors(surface: Surface, truth: Float, heights: Float, degrees: float) -> Float:
    """Return the errors of inner vertices where the truth is known, over their standard deviations."""
    sign = -1.0 if surface.camera.is_central else 1.0
    level = np.nanmean(heights - sign * surface.depth_map())
    known = np.isfinite(truth)
    places = surface.screen.T[::-1] - 0.5
    inside = map_coordinates(known.astype(np.float64), places, order=1) > 0.999
    inside &= ~boundary_vertices(surface.mesh)
    expected = map_coordinates(np.where(known, truth, 0.0), places, order=1)
    off = sign * surface.camera.depth(surface.vertices) + level - expected
    return (off / surface.uncertainty(degrees))[inside]


def noisy(normal_map: NormalMap, degrees: float, random: np.random.Generator) -> NormalMap:
    """Return a map with noise of this standard deviation in each direction."""
    normals = normal_map.normals.astype(np.float64)
    noise = math.radians(degrees) * random.normal(size=normals.shape)
    normals += noise - (noise * normals).sum(axis=-1, keepdims=True) * normals
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-12)
    return NormalMap(normals, normal_map.mask, normal_map.camera)


if __name__ == "__main__":
    main()
