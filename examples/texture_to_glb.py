"""Reconstruct a GLB from the normal map of a texture, as texture programs export it.

    python examples/texture_to_glb.py wall_normal.png --colour wall_basecolor.png -o wall.glb
    python examples/texture_to_glb.py                       # make a texture, and use it

Substance, Unreal and many texture libraries write the DirectX convention: green points down. Blender, Unity and glTF
use OpenGL, green up: --convention opengl. The wrong convention gives a twisted surface, and a warning if the data
clearly contradict it.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import normalmesh as nm
from normalmesh.evaluation.synthetic.analytic import waves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("normals", nargs="?", type=Path, help="default: make a texture")
    parser.add_argument("--colour", type=Path, help="colour image with the same crop")
    parser.add_argument("--convention", default="directx")
    parser.add_argument("--compression", type=float, default=0.95)
    parser.add_argument("-o", "--output", type=Path, default=Path("texture.glb"))
    parser.add_argument("--size", type=int, default=128, help="side in pixels of the generated texture")
    options = parser.parse_args()

    source = options.normals or made_texture(options.output.with_name("texture_normal.png"), options.size)
    normal_map = nm.read_normal_map(source, convention=options.convention)
    # A texture is continuous: apparent discontinuities are painted detail.
    surface = nm.reconstruct(normal_map, compression=options.compression, discontinuities=False)
    surface.save(options.output, texture=options.colour, normals=normal_map)
    print(f"wrote {surface} to {options.output}")


def made_texture(path: Path, size: int) -> Path:
    """Write waves as an 8-bit PNG in the DirectX convention, and return the path."""
    channels = nm.Convention.parse("directx").from_project(waves(size).normal_map.normals)
    Image.fromarray(np.round(255 * (channels + 1) / 2).astype(np.uint8)).save(path)
    return path


if __name__ == "__main__":
    main()
