"""Compare the default with the paper's settings on the same noisy maps, at 1 % vertices."""

from __future__ import annotations

from benchmarks.cases import case_names, load, measure
from normalmesh import add_noise, reconstruct
from normalmesh.paper.tables import geometric_mean

CASES = ("sphere512", "relief_igea512", "relief_bunny512", "diligent_bear")


def main() -> None:
    if not case_names():
        print("the shared cases are not on this machine")
        return
    print("noise  case               estimate   RMSE/paper   unrefined/paper   MAE to the clean normals, unrefined")
    for angle in (3.0, 10.0):
        ratios = []
        for name in CASES:
            case = load(name)
            noisy = add_noise(case.normal_map, angle)
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
