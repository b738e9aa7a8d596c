"""Measure errors of the medallion at several compressions and thresholds, as in docs/resolution.md."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion

RULES: tuple[dict[str, float], ...] = (
    *({"compression": share} for share in (0.9, 0.95, 0.98, 0.99, 0.995, 0.998)),
    *({"threshold": cost} for cost in (2, 64, 2048)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=512, help="side in pixels")
    options = parser.parse_args()
    truth = Medallion(options.size)
    print("| rule | vertices | MAE | RMSE | GLB without texture |\n|---|---|---|---|---|")
    for rule in RULES:
        surface = nm.reconstruct(truth.normal_map, **rule)  # type: ignore[arg-type]
        found = nm.evaluate(surface, truth.normal_map, truth.height)
        name = ", ".join(f"`--{name} {value:g}`" for name, value in rule.items())
        print(f"| {name} | {found.vertices} | {found.mae:.2f}° | {found.rmse:.3f} px | {_kilobytes(surface)} kB |")


def _kilobytes(surface: nm.Surface) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "surface.glb"
        surface.save(path)
        return round(path.stat().st_size / 1000)


if __name__ == "__main__":
    main()
