"""Check that meshes are bit-identical, by hashes of the meshes and surfaces of all shared cases.

``--save FILE`` writes the hashes of this code, ``--compare FILE`` lists the cases that differ from them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import CASES
from normalmesh import NormalMeshWarning, read_normal_map, reconstruct

#: Cases that take one or two seconds each, for a check after each change.
QUICK = ("diligent_cow", "bini_stripes", "relief_bunny512")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    options = parser.parse_args()
    names = sorted(path.parent.name for path in CASES.glob("*/normals.png"))
    if not names:
        print("the shared cases are not on this machine")
        return 0
    found = {}
    for name in QUICK if options.quick else names:
        found[name] = hashes_of(CASES / name)
        print(f"{name:32} {found[name]['mesh'][:12]} {found[name]['surface'][:12]}", flush=True)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n")
    if options.compare is None:
        return 0
    known = json.loads(options.compare.read_text())
    differing = [name for name in found if found[name] != known.get(name)]
    print(f"{len(found) - len(differing)} of {len(found)} are identical", *differing)
    return bool(differing)


def hashes_of(folder: Path) -> dict[str, str]:
    """Return hashes of the screen mesh and of the surface of a case at 1 % vertices."""
    mask, intrinsics = folder / "mask.png", folder / "K.txt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        normal_map = read_normal_map(
            folder / "normals.png",
            mask=mask if mask.exists() else None,
            camera=intrinsics if intrinsics.exists() else None,
        )
        surface = reconstruct(normal_map, compression=0.99)
    return {
        "mesh": hash_of(surface.mesh.vertices, surface.mesh.faces),
        "surface": hash_of(surface.vertices, surface.faces),
    }


def hash_of(*arrays: NDArray[np.generic]) -> str:
    """Return a hash of types, shapes and numbers."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(f"{array.dtype}{array.shape}".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
