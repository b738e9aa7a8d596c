"""Compare the fast collapse with the strict order of cost: ratios of MAE at the same number of vertices; limit 1.01.

The strict order uses one queue over the mesh of all pixels. Surfaces are integrated as in the paper, because refinement
would hide differences between the meshes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.cases import case_names, load
from normalmesh import decimate, evaluate, integrate
from normalmesh.decimation import collapse
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.paper.sources import own_sources
from normalmesh.paper.tables import geometric_mean
from normalmesh.reconstruction.presets import PRESETS

OWN = ("medallion", "terrain", "knot")
SHARED = ("relief_igea512", "terrain_sthelens_327x466", "mesh_armadillo_ortho_512", "diligent_bear")

#: Options of decimate() to compare.
KINDS: dict[str, dict[str, Any]] = {"collapse only": {"rounds": 1, "passes": 0}, "default": {}}
#: Options of decimate() for a start from all pixels.
STRICT: dict[str, Any] = {"start": "pixels"}
#: Largest allowed geometric mean of the ratios.
LIMIT = 1.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512, help="side in pixels of the project's own cases")
    parser.add_argument("--compression", type=float, default=0.99, help="1 − vertices / foreground pixels")
    parser.add_argument("--cases", nargs="*", default=[*OWN, *SHARED], help="default: %(default)s")
    options = parser.parse_args()
    cases = [source.load() for source in own_sources(options.size, ["orthographic"]) if source.name in options.cases]
    cases += [load(name) for name in case_names() if name in options.cases]
    print(f"{'case':28} {'':14} {'vertices':>8} {'MAE strict':>10} {'fast':>7} {'ratio':>7} {'seconds':>8}")
    ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
    # Load the kernels before measuring.
    decimate(Medallion(128).normal_map, compression=options.compression)
    for case in cases:
        vertices = max(round((1 - options.compression) * case.normal_map.foreground), 3)
        for kind, asked in KINDS.items():
            with one_queue():
                strict, strict_seconds = measured(case, vertices, {**asked, **STRICT})
            fast, seconds = measured(case, vertices, asked)
            ratios[kind].append(fast / strict)
            print(
                f"{case.name:28} {kind:14} {vertices:8} {strict:10.3f} {fast:7.3f} {fast / strict:7.4f} "
                f"{seconds / strict_seconds:8.2f}",
                flush=True,
            )
    for kind, found in ratios.items():
        mean = geometric_mean(found)
        verdict = "ok" if mean <= LIMIT else "exceeded"
        print(f"{kind:14} geometric mean {mean:.4f}, worst {max(found):.4f}; limit {LIMIT}: {verdict}")


@contextmanager
def one_queue() -> Iterator[None]:
    """Use one queue over all vertices instead of tiles."""
    tile = collapse.TILE
    collapse.TILE = 2**62
    try:
        yield
    finally:
        collapse.TILE = tile


def measured(case: Case, vertices: int, options: dict[str, Any]) -> tuple[float, float]:
    """Return MAE in degrees, and the processor seconds of the decimation."""
    start = time.process_time()
    mesh = decimate(case.normal_map, vertices=vertices, **options)
    seconds = time.process_time() - start
    if len(mesh.vertices) != vertices:
        raise SystemExit(f"{case.name}: {len(mesh.vertices)} vertices instead of {vertices}: cannot compare")
    surface = integrate(mesh, case.normal_map, **vars(PRESETS["paper"].integration))
    return evaluate(surface, case, each_component=False).mae, seconds


if __name__ == "__main__":
    main()
