"""Print hashes of meshes and surfaces: they must be the same for all releases of Numba, NumPy and SciPy."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from normalmesh import NormalMap, reconstruct
from normalmesh.evaluation.synthetic.analytic import medallion

SIZE = 300


def main() -> None:
    for camera in ("orthographic", "perspective"):
        exact = medallion(SIZE, camera).normal_map
        # NumPy's releases may differ in the last bit of the map itself.
        normal_map = NormalMap(np.round(exact.normals, 3), exact.mask, exact.camera)
        surface = reconstruct(normal_map, compression=0.98)
        print(camera, "map", hash_of(normal_map.normals))
        print(camera, "mesh", hash_of(surface.mesh.vertices, surface.mesh.faces))
        print(camera, "surface", hash_of(surface.vertices, surface.faces), flush=True)


def hash_of(*arrays: NDArray[np.generic]) -> str:
    content = hashlib.sha256()
    for array in arrays:
        content.update(np.ascontiguousarray(array, np.float64).tobytes())
    return content.hexdigest()[:16]


if __name__ == "__main__":
    main()
