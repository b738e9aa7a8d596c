"""Estimate normals from photographs under different lights, and reconstruct a surface.

    python examples/photometric_stereo.py photographs.lp photographs/*.png --mask mask.png -o surface.glb
    python examples/photometric_stereo.py                   # render photographs, and use them

Lights: an .lp file, with the number of lights and then one line "name x y z" per photograph, in any order; or lines
"x y z" in the order of the photographs. x y z is the direction to the light: x right, y up, z towards the
viewer. Photographs must be linear, for example converted from raw files without a tone curve.
"""

import argparse
from pathlib import Path

import imagecodecs
import numpy as np

import normalmesh as nm
from normalmesh.evaluation.synthetic.analytic import sphere


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lights", nargs="?", type=Path, help="default: render photographs")
    parser.add_argument("photographs", nargs="*", type=Path)
    parser.add_argument("--mask", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("photometric.glb"))
    parser.add_argument("--size", type=int, default=128, help="side in pixels of rendered photographs")
    options = parser.parse_args()

    if options.lights is None:
        photographs, lights, mask = rendered(options.output.with_name("photographs"), options.size)
    else:
        photographs, lights, mask = options.photographs, options.lights, options.mask
    found = nm.photometric_stereo(photographs, lights, mask, darkest=0.2)
    print(found)
    surface = nm.reconstruct(found.normal_map, compression=0.95)
    surface.save(options.output, normals=found.normal_map if options.output.suffix == ".glb" else None)
    print(f"wrote {surface} to {options.output}")


def rendered(folder: Path, size: int) -> tuple[Path, Path, Path]:
    """Render a diffuse ball under twelve lights: a folder of photographs, their .lp file, and a mask."""
    folder.mkdir(exist_ok=True)
    ball = sphere(size).normal_map
    turn = np.arange(12) * np.pi / 6
    slant = np.where(np.arange(12) % 2, 0.3, 0.7)
    lights = np.stack([np.sin(slant) * np.cos(turn), np.sin(slant) * np.sin(turn), np.cos(slant)], axis=1)
    lines = [f"{len(lights)}"]
    for number, light in enumerate(lights, start=1):
        shading = np.maximum(ball.normals @ light, 0)
        imagecodecs.imwrite(folder / f"ball{number}.png", np.round(60000 * shading).astype(np.uint16))
        lines.append(f"ball{number}.CR2 {light[0]:.7f} {light[1]:.7f} {light[2]:.7f}")
    lights_file, mask_file = folder.with_suffix(".lp"), folder.with_name("ball_mask.png")
    lights_file.write_text("\n".join(lines) + "\n")
    imagecodecs.imwrite(mask_file, 255 * ball.mask.astype(np.uint8))
    return folder, lights_file, mask_file


if __name__ == "__main__":
    main()
