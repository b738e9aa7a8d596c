"""Noise on the normals: the default beside the paper's settings on the same noisy map, at 1 % vertices."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.cases import case_names, geometric_mean, load, measure
from normalmesh import NormalMap, NormalMeshWarning, reconstruct

CASES = ("sphere512", "relief_igea512", "relief_bunny512", "diligent_bear")


def with_noise(normal_map: NormalMap, angle: float, seed: int = 0) -> NormalMap:
    """The map with Gaussian noise of this deviation (degrees) in both directions across each normal."""
    if angle == 0:
        return normal_map
    rng = np.random.default_rng(seed)
    normals = normal_map.normals.astype(np.float64)
    across = np.cross(normals, [0.3, 0.5, 0.8])
    across /= np.maximum(np.linalg.norm(across, axis=-1, keepdims=True), 1e-9)
    along = np.cross(normals, across)
    turns = np.tan(np.radians(rng.normal(0, angle, (*normal_map.shape, 2))))
    noisy = normals + turns[..., :1] * across + turns[..., 1:] * along
    noisy /= np.maximum(np.linalg.norm(noisy, axis=-1, keepdims=True), 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return NormalMap(noisy, normal_map.mask, normal_map.camera)


def main() -> None:
    if not case_names():
        print("the shared cases are not on this machine")
        return
    print("noise  case               estimate   RMSE/paper   unrefined/paper   MAE to the clean normals, unrefined")
    for angle in (3.0, 10.0):
        ratios = []
        for name in CASES:
            case = load(name)
            noisy = with_noise(case.normal_map, angle)
            count = int(case.reference["c1"]["vertices"])
            paper = measure(reconstruct(noisy, vertices=count, preset="paper"), case, "c1")
            surface = reconstruct(noisy, vertices=count)
            ours = measure(surface, case, "c1")
            bare = measure(reconstruct(noisy, vertices=count, refine=0), case, "c1")
            ratios.append(ours.rmse / paper.rmse)
            estimate = surface.integration.noise if surface.integration else float("nan")
            print(
                f"{angle:4.0f}°  {name:18} {estimate:7.2f}° {ratios[-1]:10.3f} {bare.rmse / paper.rmse:15.3f}"
                f" {ours.mae:20.2f}° {bare.mae:8.2f}°",
                flush=True,
            )
        print(f"{angle:4.0f}°  geometric mean of RMSE/paper {geometric_mean(ratios):.3f}")


if __name__ == "__main__":
    main()
