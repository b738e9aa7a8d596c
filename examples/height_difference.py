"""Measure the height difference of two points of a normal map, with its standard deviation.

    python examples/height_difference.py normals.png --pixel-size 0.02 --units mm --from 40 52 --to 90 52
    python examples/height_difference.py                    # measure the relief of a coin that is made here

Points are columns and rows in pixels, from the upper left corner of the image. The standard deviation is that of the
noise of the normals, which is estimated, or given in degrees (--noise), for example from repeated measurements, and of
flat faces on a curved surface. Normals that are wrong as a whole are not included: measure something flat, too.
"""

import argparse
from pathlib import Path

import numpy as np

import normalmesh as nm

#: Width of the coin in mm, and height of its relief in mm.
WIDTH, RELIEF = 4.0, 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("normals", nargs="?", type=Path, help="default: make a coin")
    parser.add_argument("--mask", type=Path)
    parser.add_argument("--pixel-size", type=float, default=1.0, help="side of a pixel")
    parser.add_argument("--units", default="px", help="unit of the side of a pixel")
    parser.add_argument("--from", dest="lower", nargs=2, type=float, metavar=("U", "V"))
    parser.add_argument("--to", dest="upper", nargs=2, type=float, metavar=("U", "V"))
    parser.add_argument("--noise", type=float, help="degrees; default: estimated")
    parser.add_argument("--size", type=int, default=160, help="side in pixels of the coin")
    options = parser.parse_args()

    lower, upper, units = options.lower, options.upper, options.units
    if options.normals is None:
        normal_map, units = coin(options.size), "mm"
        lower, upper = (0.15 * options.size, 0.5 * options.size), (0.5 * options.size, 0.5 * options.size)
        print(f"true difference: {RELIEF} mm")
    else:
        if lower is None or upper is None:
            parser.error("give the two points: --from U V --to U V")
        camera = nm.Orthographic(options.pixel_size)
        normal_map = nm.read_normal_map(options.normals, mask=options.mask, camera=camera)
    surface = nm.reconstruct(normal_map, compression=0.9, noise=options.noise, units=units)
    found = surface.height_difference(upper, lower)
    print(f"measured: {found}")
    print(f"about 95 %: ± {2 * found.standard_deviation:.2g} {units}, for noise of {surface.integration.noise:.2f}°")


def coin(size: int) -> nm.NormalMap:
    """Return the normal map of a round relief on a round ground, with noise of one degree."""
    pixel = WIDTH / size
    v, u = np.mgrid[:size, :size] + 0.5
    radius = np.hypot(u - size / 2, v - size / 2) * pixel
    along = np.clip((radius - 0.7) / 0.5, 0, 1)
    slope = -RELIEF * 30 * along**2 * (1 - along) ** 2 / 0.5  # of a smooth step between the radii 0.7 and 1.2
    direction = np.stack([u - size / 2, size / 2 - v], axis=-1) * pixel / radius[..., None]
    normals = np.concatenate([-slope[..., None] * direction, np.ones((size, size, 1))], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    clean = nm.NormalMap(normals, radius < 0.48 * WIDTH, nm.Orthographic(pixel))
    return nm.add_noise(clean, degrees=1)


if __name__ == "__main__":
    main()
