"""Make a solid for 3D printing from the normal map of a coin.

    python examples/printable_coin.py coin_normals.png --width 40mm -o coin.stl
    python examples/printable_coin.py                       # make the normals of a medallion, and use them

The tilt of the coin, and the bend that photometric stereo adds, are taken away first. Then walls and a base close the
surface: the result is watertight, and its size is in millimetres. 3MF files hold the unit, STL files do not.
"""

import argparse
from pathlib import Path

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_normals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("normals", nargs="?", type=Path, help="default: make a medallion")
    parser.add_argument("--width", default="40mm", help="width of the print")
    parser.add_argument("--base", default="1.5mm", help="thickness of the base under the lowest point")
    parser.add_argument("--flatten", choices=["plane", "quadratic", "none"], default="plane")
    parser.add_argument("--compression", type=float, default=0.95)
    parser.add_argument("-o", "--output", type=Path, default=Path("coin.stl"))
    parser.add_argument("--size", type=int, default=512, help="side in pixels of the medallion")
    options = parser.parse_args()

    source = options.normals or made_normals(options.output.with_name("coin_normals.png"), options.size)
    surface = nm.reconstruct(nm.read_normal_map(source), compression=options.compression)
    if options.flatten != "none":
        surface = surface.flattened(options.flatten)
        print(f"flattened: {surface.flattening}")
    solid = surface.solid(options.base, options.width)
    solid.save(options.output)
    print(f"wrote {options.output}: {solid}")


def made_normals(path: Path, size: int) -> Path:
    """Write the normals of a medallion, with its mask as alpha channel, and return the path."""
    normal_map = Medallion(size).normal_map
    path.write_bytes(encode_normals(path, normal_map.normals, normal_map.mask))
    return path


if __name__ == "__main__":
    main()
