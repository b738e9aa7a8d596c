"""Estimate normals and reconstruct a surface from a folder with the layout of DiLiGenT.

    python examples/diligent_folder.py pmsData/bearPNG --output bear
    python examples/diligent_folder.py                      # make a small folder with this layout, and use it

The folder contains filenames.txt (one image per line), light_directions.txt and light_intensities.txt (one light per
line), mask.png, and optionally Normal_gt.mat for comparison.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.pictures import panels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="default: make a small folder")
    parser.add_argument("--output", type=Path, default=Path("diligent"))
    parser.add_argument("--size", type=int, default=128, help="side in pixels of the small folder")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    folder = options.folder or made_folder(options.output / "made", options.size)

    names = (folder / "filenames.txt").read_text().split()
    found = nm.photometric_stereo(
        [folder / name for name in names],
        folder / "light_directions.txt",
        folder / "mask.png",
        intensities=folder / "light_intensities.txt",
        darkest=0.2,
        brightest=0.1,
    )
    print(found)
    truth = folder / "Normal_gt.mat"
    if truth.is_file():
        print(f"median angle to {truth.name}: {median_angle(found.normal_map, truth, folder / 'mask.png'):.2f}°")

    surface = nm.reconstruct(found.normal_map, compression=0.95)
    surface.save(options.output / "surface.glb", normals=found.normal_map)
    pictures = {
        "normals": panels.normal_colours(found.normal_map.normals),
        "albedo": np.round(255 * np.clip(found.albedo / np.percentile(found.albedo, 99), 0, 1)).astype(np.uint8),
        "wireframe": panels.wireframe(surface),
        "shaded": panels.shaded(surface.normal_map()),
    }
    for name, picture in pictures.items():
        Image.fromarray(picture).save(options.output / f"{name}.png")
    print(f"wrote {surface} and {len(pictures)} pictures to {options.output}")


def median_angle(normal_map: nm.NormalMap, truth: Path, mask: Path) -> float:
    """Return the median angle in degrees between the normals and those of a file, over their common pixels."""
    true = nm.read_normal_map(truth, mask=mask, variable="Normal_gt")
    both = normal_map.mask & true.mask
    cosines = (normal_map.normals[both] * true.normals[both]).sum(axis=1)
    return float(np.degrees(np.median(np.arccos(np.clip(cosines, -1, 1)))))


def made_folder(folder: Path, size: int, lights: int = 24) -> Path:
    """Write photographs of the medallion in two colours under lights around the viewer, in the layout of DiLiGenT."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = Medallion(size).normal_map
    turn, slant = np.linspace(0, 6 * np.pi, lights), np.linspace(0.2, 0.8, lights)
    directions = np.stack([np.sin(slant) * np.cos(turn), np.sin(slant) * np.sin(turn), np.cos(slant)], axis=1)
    intensities = np.random.default_rng(0).uniform(0.5, 0.9, (lights, 3))
    colours = np.where(np.arange(size)[:, None] < size // 2, [0.9, 0.7, 0.4], [0.5, 0.6, 0.9])
    names = [f"{number:03d}.png" for number in range(1, lights + 1)]
    for name, direction, intensity in zip(names, directions, intensities, strict=True):
        light = np.maximum(truth.normals @ direction, 0)[..., None] * colours * intensity
        Image.fromarray(np.round(255 * light).astype(np.uint8)).save(folder / name)
    (folder / "filenames.txt").write_text("\n".join(names) + "\n")
    np.savetxt(folder / "light_directions.txt", directions, "%.7f")
    np.savetxt(folder / "light_intensities.txt", intensities, "%.7f")
    Image.fromarray(255 * truth.mask.astype(np.uint8)).save(folder / "mask.png")
    savemat(folder / "Normal_gt.mat", {"Normal_gt": truth.normals.astype(np.float64)})
    return folder


if __name__ == "__main__":
    main()
