"""Estimate normals from photographs under different lights, and reconstruct a surface.

    python examples/photometric_stereo.py lights.txt photo*.png --mask mask.png -o surface.glb
    python examples/photometric_stereo.py                   # render photographs, and use them

Lights: one line per photograph, in the same order, with the direction x y z to the light: x right, y up, z towards the
viewer. Photographs must be linear, for example converted from raw files without a tone curve.
"""

import argparse
from pathlib import Path

import numpy as np

import normalmesh as nm
from normalmesh.evaluation.synthetic.analytic import sphere


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lights", nargs="?", type=Path)
    parser.add_argument("photographs", nargs="*", type=Path)
    parser.add_argument("--mask", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("photometric.glb"))
    parser.add_argument("--size", type=int, default=128, help="side in pixels of rendered photographs")
    options = parser.parse_args()

    if options.lights is None:
        photographs, lights, mask = rendered(options.size)
    else:
        photographs, lights, mask = options.photographs, nm.read_lights(options.lights), options.mask
    found = nm.photometric_stereo(photographs, lights, mask, darkest=0.2)
    print(found)
    surface = nm.reconstruct(found.normal_map, compression=0.95)
    surface.save(options.output, normals=found.normal_map if options.output.suffix == ".glb" else None)
    print(f"wrote {surface} to {options.output}")


def rendered(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Render a diffuse ball under twelve lights: photographs (12, H, W), directions (12, 3), mask (H, W)."""
    ball = sphere(size).normal_map
    turn = np.arange(12) * np.pi / 6
    slant = np.where(np.arange(12) % 2, 0.3, 0.7)
    lights = np.stack([np.sin(slant) * np.cos(turn), np.sin(slant) * np.sin(turn), np.cos(slant)], axis=1)
    photographs = np.maximum(np.einsum("hwc,kc->khw", ball.normals, lights), 0)
    return photographs, lights, ball.mask


if __name__ == "__main__":
    main()
