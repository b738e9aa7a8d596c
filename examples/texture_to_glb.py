"""From a texture's normal map, as texture programs export it, to a GLB that any viewer shows.

    python examples/texture_to_glb.py wall_normal.png --colour wall_basecolor.png -o wall.glb
    python examples/texture_to_glb.py                       # makes a texture of its own

Substance, Unreal and many texture libraries write the DirectX convention: green points down. Blender, Unity and glTF
take OpenGL, green up: --convention opengl. The wrong one of the two gives a twisted surface, and a warning where the
data plainly contradict it.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import normalmesh as nm
from normalmesh.evaluation.synthetic.analytic import waves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("normals", nargs="?", type=Path)
    parser.add_argument("--colour", type=Path, help="image of the colours, of the same part")
    parser.add_argument("--convention", default="directx")
    parser.add_argument("--compression", type=float, default=0.95)
    parser.add_argument("-o", "--output", type=Path, default=Path("texture.glb"))
    parser.add_argument("--size", type=int, default=128, help="pixels of a texture of its own")
    options = parser.parse_args()

    source = options.normals or made_texture(options.output.with_name("texture_normal.png"), options.size)
    normal_map = nm.read_normal_map(source, convention=options.convention)
    # A texture is one sheet: what looks like a jump in it is painted detail.
    surface = nm.reconstruct(normal_map, compression=options.compression, discontinuities=False)
    surface.save(options.output, texture=options.colour, normals=normal_map)
    print(f"{surface} is in {options.output}")


def made_texture(path: Path, size: int) -> Path:
    """Waves, as an 8-bit PNG in the DirectX convention."""
    channels = nm.Convention.parse("directx").from_project(waves(size).normal_map.normals)
    Image.fromarray(np.round(255 * (channels + 1) / 2).astype(np.uint8)).save(path)
    return path


if __name__ == "__main__":
    main()
