"""Compare surfaces of scenes with true jumps: as they are found, with the true lines, continuous, and given back.

For each scene and perturbation: RMS errors in px of the default surface, of one with the true lines, of the continuous
one, and of one with the lines that were found given back as polylines. ``!`` marks a default that is worse than 1.1 ×
the continuous one, or in scenes in which normals decide than 1.1 × the one with true lines.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from normalmesh import NormalMeshWarning, find_jumps, reconstruct

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from jump_scenes import DECIDED, KINDS, RATIO, SCENES, SMALL, depth_rms, perturbed_scene, true_lines

#: Vertices of a scene.
VERTICES = 1500


class Errors(NamedTuple):
    """RMS errors in px of a scene, and the length of the lines that were found."""

    default: float
    true_lines: float
    continuous: float
    given_back: float
    length: int

    @property
    def agrees(self) -> bool:
        """Whether the default is at most as bad as the continuous surface."""
        return self.default <= RATIO * self.continuous + SMALL

    @property
    def is_complete(self) -> bool:
        """Whether the default is as good as the surface with true lines."""
        return self.default <= RATIO * self.true_lines + SMALL


def errors_of(name: str, kind: str, seed: int = 0) -> Errors:
    """Reconstruct a perturbed scene in all ways."""
    truth, normal_map = perturbed_scene(name, kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        jumps = find_jumps(normal_map)
        paths = [line.path for line in jumps.lines]
        ways = ({}, {"jumps": true_lines(truth)}, {"discontinuities": False}, {"jumps": paths} if paths else {})
        found = [depth_rms(reconstruct(normal_map, vertices=VERTICES, **way), truth) for way in ways]
    return Errors(*found, jumps.length)


def table(names: list[str], kinds: list[str], seed: int) -> Iterator[str]:
    """Yield the lines of the table, and at last how many scenes are as they should be."""
    agree = complete = decided = 0
    for name in names:
        yield f"{name:14} {'default':>9} {'true':>8} {'cont.':>8} {'back':>8} {'lines':>6}"
        for kind in kinds:
            found = errors_of(name, kind, seed)
            is_decided = name in DECIDED
            fails = not found.agrees or (is_decided and not found.is_complete)
            agree += found.agrees
            decided += is_decided
            complete += is_decided and found.is_complete
            yield (
                f"  {kind:12} {found.default:9.3f} {found.true_lines:8.3f} {found.continuous:8.3f} "
                f"{found.given_back:8.3f} {found.length:6}{' !' if fails else ''}"
            )
    count = len(names) * len(kinds)
    yield f"not worse than continuous: {agree} of {count}; as with true lines: {complete} of {decided}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", nargs="*", default=list(SCENES), choices=list(SCENES))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="perturbations, also JPEG of another quality")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    options = parser.parse_args()
    for line in table(options.scenes, options.kinds, options.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
