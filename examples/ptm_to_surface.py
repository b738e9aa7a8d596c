"""Reconstruct a textured surface from a relightable image of a museum: a .ptm file, or an .rti file (HSH).

    python examples/ptm_to_surface.py tablet.ptm --mask mask.png -o tablet.glb
    python examples/ptm_to_surface.py                       # make a PTM of a medallion, and use it

Normals are estimated from the light that the file's polynomial predicts; the albedo becomes the texture. Steep slopes
and shadows are less certain: compare `residual` with the albedo.
"""

import argparse
from pathlib import Path

import numpy as np

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", nargs="?", type=Path, help="default: make a PTM of a medallion")
    parser.add_argument("--mask", type=Path)
    parser.add_argument("--compression", type=float, default=0.95)
    parser.add_argument("-o", "--output", type=Path, default=Path("relief.glb"))
    parser.add_argument("--size", type=int, default=128, help="side in pixels of the PTM that is made")
    options = parser.parse_args()

    source = options.image or made_ptm(options.output.with_name("medallion.ptm"), options.size)
    found = nm.read_rti(source)
    lit = found.normals.any(axis=2)
    share = np.median(found.residual[lit] / found.albedo[lit].mean(axis=1))
    print(f"{found}: differs from a matt surface by {100 * share:.1f} %")
    normal_map = nm.read_normal_map(source, mask=options.mask)
    surface = nm.reconstruct(normal_map, compression=options.compression)
    surface.save(options.output, texture=found.texture(), normals=normal_map)
    print(f"wrote {surface} to {options.output}")


def made_ptm(path: Path, size: int) -> Path:
    """Fit a polynomial to photographs of a medallion under 48 lights, write it as PTM_FORMAT_LRGB, return the path."""
    place = np.arange(48) + 0.5
    height, turn = 1 - 0.75 * place / 48, place * 2.4
    u, v = np.sqrt(1 - height**2) * [np.cos(turn), np.sin(turn)]
    photographs = np.maximum(Medallion(size).normal_map.normals @ np.stack([u, v, height]), 0)
    terms = np.linalg.pinv(np.stack([u * u, v * v, u * v, u, v, np.ones(48)], axis=1))
    coefficients = 200 * photographs[::-1] @ terms.T  # (H, W, 6), rows from the bottom to the top
    low = np.minimum(coefficients.min(axis=(0, 1)), 0)
    scale = np.maximum(coefficients.max(axis=(0, 1)) - low, 1e-6) / 254
    bias = np.round(-low / scale)
    stored = np.clip(np.round(coefficients / scale + bias), 0, 255).astype(np.uint8)
    colours = np.broadcast_to(np.array([235, 190, 110], np.uint8), (size, size, 3))
    numbers = [" ".join(f"{each:.7g}" for each in row) for row in (scale, bias)]
    header = "\n".join(["PTM_1.2", "PTM_FORMAT_LRGB", f"{size}", f"{size}", *numbers, ""])
    path.write_bytes(header.encode("ascii") + stored.tobytes() + colours.tobytes())
    return path


if __name__ == "__main__":
    main()
