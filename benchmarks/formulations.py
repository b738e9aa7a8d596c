"""Compare integrations on the same meshes: formulations, parameters, metrics, clamps; clean and noisy."""

from __future__ import annotations

from benchmarks.cases import Case, cases_from_command_line, measure
from normalmesh import add_noise, decimate, integrate
from normalmesh.integration.cotangent import PAPER_CLAMP
from normalmesh.paper.tables import geometric_mean

CLEAN = {"noise": 0.0, "refine": 0}
FORMULATIONS = {
    "tight, surface, clamped (paper)": {"parameters": "tight", "metric": "surface", "clamp": PAPER_CLAMP},
    "tight, surface": {"parameters": "tight", "metric": "surface"},
    "tight, screen": {"parameters": "tight"},
    "constant, surface": {"parameters": "constant", "metric": "surface"},
    "constant, screen": {"parameters": "constant"},
    "gradient, screen": {"parameters": "gradient"},
    "gradient, screen, clamped": {"parameters": "gradient", "clamp": PAPER_CLAMP},
    "facets": {"formulation": "facets"},
}


def main() -> None:
    cases = cases_from_command_line(__doc__)
    if not cases:
        return
    groups = {
        "orthographic, no occlusion": [case for case in cases if case.occlusion_free],
        "perspective (DiLiGenT)": [case for case in cases if case.name.startswith("diligent")],
    }
    for title, group in groups.items():
        for noise in (0.0, 10.0):
            for tag in ("c0.25", "c4"):
                table(f"{title}, {noise:.0f}° noise, {tag[1:]} %", group, noise, tag)


def table(title: str, cases: list[Case], noise: float, tag: str) -> None:
    """Print RMSE and MAE of each formulation, as geometric means of ratios to the paper's on the same mesh."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in FORMULATIONS}
    for case in cases:
        noisy = add_noise(case.normal_map, noise)
        mesh = decimate(noisy, vertices=int(case.reference[tag]["vertices"]))
        for name, options in FORMULATIONS.items():
            settings = {"formulation": "vertices", **CLEAN, **options}
            result = measure(integrate(mesh, noisy, **settings), case, tag)
            found[name].append((result.rmse, result.mae))
    print(f"\n{title}\n{'':34} RMSE    MAE")
    paper = next(iter(found.values()))
    for name, results in found.items():
        rmse = geometric_mean([one[0] / base[0] for one, base in zip(results, paper, strict=True)])
        mae = geometric_mean([one[1] / base[1] for one, base in zip(results, paper, strict=True)])
        print(f"{name:34} {rmse:.3f}  {mae:.3f}", flush=True)


if __name__ == "__main__":
    main()
