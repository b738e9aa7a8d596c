"""Process a surface with Open3D, and take the result back for depth maps, files and errors.

    python examples/open3d_round_trip.py normals.png -o smooth.ply
    python examples/open3d_round_trip.py                    # make a normal map, and use it

It needs the extra open3d: pip install 'normalmesh[open3d]'.
"""

import argparse
from pathlib import Path

import numpy as np

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("normals", nargs="?", type=Path, help="default: make a normal map")
    parser.add_argument("--smooth", type=int, default=5, help="rounds of Taubin's smoothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("smooth.ply"))
    parser.add_argument("--size", type=int, default=256, help="side in pixels of the generated normal map")
    options = parser.parse_args()

    surface = nm.reconstruct(options.normals or Medallion(options.size).normal_map)
    mesh = surface.to_open3d()  # an open3d.geometry.TriangleMesh
    print(mesh, "which is manifold" if mesh.is_edge_manifold() else "")
    smooth = mesh.filter_smooth_taubin(number_of_iterations=options.smooth)

    # Positions on the screen are found again from the camera.
    result = nm.Surface.from_mesh(smooth, surface.camera, surface.shape, surface.units)
    result.save(options.output)
    moved = np.nanmedian(np.abs(result.depth_map() - surface.depth_map()))
    print(f"wrote {result} to {options.output}; smoothing moved it by {moved:.3f} {result.units}")


if __name__ == "__main__":
    main()
