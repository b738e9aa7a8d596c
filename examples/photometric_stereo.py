"""From photographs under different lights to normals and a surface.

    python examples/photometric_stereo.py lights.txt photo*.png --mask mask.png -o surface.glb
    python examples/photometric_stereo.py                   # renders photographs of its own

Lights: one line for each photograph, in their order, with the direction x y z to the light: x right, y up, z towards
the viewer. Photographs must be linear, such as those made of raw files without a tone curve.
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
    parser.add_argument("--size", type=int, default=128, help="pixels of photographs of its own")
    options = parser.parse_args()

    if options.lights is None:
        photographs, lights, mask = rendered(options.size)
    else:
        photographs, lights, mask = options.photographs, nm.read_lights(options.lights), options.mask
    found = nm.photometric_stereo(photographs, lights, mask, darkest=0.2)
    print(found)
    surface = nm.reconstruct(found.normal_map, compression=0.95)
    surface.save(options.output, normals=found.normal_map if options.output.suffix == ".glb" else None)
    print(f"{surface} is in {options.output}")


def rendered(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matt ball under twelve lights, as arrays: photographs (12, H, W), directions (12, 3), mask (H, W)."""
    ball = sphere(size).normal_map
    turn = np.arange(12) * np.pi / 6
    slant = np.where(np.arange(12) % 2, 0.3, 0.7)
    lights = np.stack([np.sin(slant) * np.cos(turn), np.sin(slant) * np.sin(turn), np.cos(slant)], axis=1)
    photographs = np.maximum(np.einsum("hwc,kc->khw", ball.normals, lights), 0)
    return photographs, lights, ball.mask


if __name__ == "__main__":
    main()
