"""Make a displacement map and a mesh that repeat without a seam from the normal map of a tileable texture.

    python examples/tileable_texture.py bricks_normal.png --convention directx -o bricks
    python examples/tileable_texture.py                     # make a wall of bricks, and use it

Written are <output>_height.png, 16 bits from the lowest to the highest point, with its range in <output>_height.json;
<output>.glb, whose copies join without gap or crease; and <output>_shaded.png, 2 × 2 copies of the displacement map
under a light, for a look at the seams.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import normalmesh as nm
from normalmesh.pictures import panels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("normals", nargs="?", type=Path, help="default: make a wall of bricks")
    parser.add_argument("--convention", default="opengl")
    parser.add_argument("--compression", type=float, default=0.95)
    parser.add_argument("-o", "--output", type=Path, default=Path("bricks"))
    parser.add_argument("--size", type=int, default=256, help="side in pixels of the generated texture")
    options = parser.parse_args()
    name = options.output.name

    source = options.normals or made_bricks(options.output.with_name(f"{name}_normal.png"), options.size)
    normal_map = nm.read_normal_map(source, convention=options.convention)
    # A fine mesh for displacement, and a sparse one, with the normal map for shading.
    fine = nm.reconstruct(normal_map, compression=0.8, tileable=True, discontinuities=False)
    displacement = options.output.with_name(f"{name}_height.png")
    fine.save_depth(displacement)
    surface = nm.reconstruct(normal_map, compression=options.compression, tileable=True, discontinuities=False)
    surface.save(options.output.with_name(f"{name}.glb"), normals=normal_map)

    heights = fine.depth_map()
    copies = normals_of(np.tile(heights, (2, 2)))
    Image.fromarray(panels.shaded(copies)).save(options.output.with_name(f"{name}_shaded.png"))

    found = nm.read_height_range(displacement)
    print(f"displace by {found.white - found.black:.2f} {found.units} from black to white")
    print(f"{surface}, repeats {surface.repeats}")
    angles = np.degrees(np.arccos(np.clip((normals_of(heights) * normal_map.normals).sum(axis=2), -1, 1)))
    beside = np.concatenate([angles[[0, -1]].ravel(), angles[:, [0, -1]].ravel()])
    print(f"mean angle to the normals: {beside.mean():.2f}° beside the sides, {angles.mean():.2f}° everywhere")


def normals_of(heights: np.ndarray) -> np.ndarray:
    """Return the normals (H, W, 3) of heights (H, W) that repeat: beyond a side, they go on at the opposite one."""
    right, down = ((np.roll(heights, -1, axis) - np.roll(heights, 1, axis)) / 2 for axis in (1, 0))
    normals = np.stack([-right, down, np.ones_like(heights)], axis=2)
    return (normals / np.linalg.norm(normals, axis=2, keepdims=True)).astype(np.float32)


def made_bricks(path: Path, size: int) -> Path:
    """Write the normals of a wall of bricks, which repeats, as an 8-bit PNG, and return the path."""
    row, column = (np.indices((size, size)) + 0.5) / size
    course = np.floor(4 * row)
    across, along = 0.25 * (4 * row % 1), 0.5 * ((2 * column + 0.5 * (course % 2)) % 1)
    to_joint = np.minimum(np.minimum(across, 0.25 - across), np.minimum(along, 0.5 - along))
    face = 0.5 + 0.5 * np.cos(np.pi * np.clip((0.05 - to_joint) / 0.035, 0, 1))
    heights = size * face * (0.03 + 0.003 * np.cos(10 * np.pi * column) * np.cos(8 * np.pi * row))
    Image.fromarray(np.round(255 * (normals_of(heights) + 1) / 2).astype(np.uint8)).save(path)
    return path


if __name__ == "__main__":
    main()
