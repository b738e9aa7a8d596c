"""Draw the pictures of jumps on results.md and how_it_works.md: ``python docs/make_jump_pictures.py [--before SRC]``.

SRC is the folder ``src`` of an earlier version, for the upper row of the picture on results.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from make_pictures import DOCS, write
from numpy.typing import NDArray
from PIL import Image as Canvas
from scipy import ndimage

import normalmesh as nm
from normalmesh.evaluation.synthetic import models
from normalmesh.pictures import panels
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.sheet import Sheet

#: Side of a panel of each picture, distance between panels, and height of a caption, px.
BOX, STEP_BOX, GAP, CAPTION = 420, 330, 10, 34
#: Colour behind surfaces, which shows in gaps.
BACKDROP = (196, 206, 220)
#: Rows and columns of the vase that show how jumps are found, and their magnification.
ROWS, COLUMNS, SCALE = slice(20, 130), slice(73, 183), 3


def of_slopes(slopes: NDArray[np.float64]) -> nm.NormalMap:
    """Return the normal map of heights that rise upwards with given slopes (H, W)."""
    normals = np.stack([0 * slopes, -slopes, np.ones_like(slopes)], axis=-1)
    return nm.NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def tent() -> nm.NormalMap:
    """Return a roof above a flat ground, whose gables are open: 128 px."""
    rows, columns = np.indices((128, 128))
    inside = (rows >= 26) & (rows <= 101) & (columns >= 26) & (columns <= 101)
    return of_slopes(np.where(inside, np.where(rows < 64, -1.0, 1.0), 0.0))


def stripes() -> nm.NormalMap:
    """Return strips that rise and fall in turn from a flat ground: 128 px."""
    rows, columns = np.indices((128, 128))
    return of_slopes(np.where(rows < 64, np.where(columns // 8 % 2, 1.0, -1.0), 0.0))


def vase() -> nm.NormalMap:
    """Return a vase whose mask is a pixel too large: the normals of that pixel point away from the viewer."""
    exact = nm.render_normal_map(models.vase(), 512).normal_map
    mask = ndimage.binary_dilation(exact.mask)
    nearest = ndimage.distance_transform_edt(~exact.mask, return_distances=False, return_indices=True)
    normals = exact.normals[tuple(nearest)]
    normals[mask & ~exact.mask, 2] *= -1
    return nm.NormalMap(normals, mask)


SCENES = {"tent": (tent, 492), "stripes": (stripes, 492), "vase, mask a pixel too large": (vase, 2078)}


def draw_panels(folder: Path) -> None:
    """Write a picture of each scene, reconstructed by the version of normalmesh that is imported."""
    for number, (scene, vertices) in enumerate(SCENES.values()):
        surface = nm.reconstruct(scene(), vertices=vertices)
        picture = oblique(surface, (BOX, BOX), background=BACKDROP)
        Canvas.fromarray(picture).save(folder / f"{number}.png")


def comparison(before: Path) -> None:
    """Draw the scenes as an earlier version and as this one reconstruct them."""
    sheet = Sheet(len(SCENES) * (BOX + GAP) - GAP, 2 * (BOX + GAP) + CAPTION)
    for row, source in enumerate((before, DOCS.parent / "src")):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(Path(__file__).resolve()), "--panels", folder]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(source.resolve())})
            for column in range(len(SCENES)):
                panel = np.asarray(Canvas.open(Path(folder) / f"{column}.png"))
                sheet.put(panel, column * (BOX + GAP), CAPTION + row * (BOX + GAP))
    for column, name in enumerate(SCENES):
        sheet.write(name, column * (BOX + GAP) + BOX / 2, 4, 22, anchor="ma")
    write(sheet.image, DOCS / "images" / "jumps_before_after.png")


def finding() -> None:
    """Draw the mouth of the vase: normals, lines on pixel sides, polylines in the mesh, and the surface."""
    normal_map = nm.render_normal_map(models.vase(), 256).normal_map
    jumps = nm.find_jumps(normal_map)
    mesh = nm.decimate(normal_map, compression=0.96, jumps=jumps)
    surface = nm.integrate(mesh, normal_map, jumps=jumps)
    seams = SCALE * mesh.vertices[mesh.seams]
    large = nm.Surface(
        np.column_stack([mesh.vertices, 0 * mesh.vertices[:, :1]]),
        mesh.faces,
        SCALE * mesh.vertices,
        normal_map.camera,
        (SCALE * normal_map.shape[0], SCALE * normal_map.shape[1]),
    )
    colours = panels.normal_colours(normal_map.normals)
    colours[~normal_map.mask] = 255
    colours = colours.repeat(SCALE, axis=0).repeat(SCALE, axis=1)
    faint = (255 - 0.4 * (255.0 - colours)).astype(np.uint8)
    white = np.full_like(colours, 255)
    paths = [SCALE * np.stack([line.path[:-1], line.path[1:]], axis=1).astype(np.float64) for line in jumps.lines]
    part = np.s_[SCALE * ROWS.start : SCALE * ROWS.stop, SCALE * COLUMNS.start : SCALE * COLUMNS.stop]
    pictures = [
        colours[part],
        panels.with_edges(faint, np.zeros((0, 2, 2)), np.concatenate(paths), 2)[part],
        panels.with_edges(white, large.screen[panels.edges(large)], seams, 2)[part],
        oblique(surface, (STEP_BOX, STEP_BOX), background=BACKDROP),
    ]
    sheet = Sheet(len(pictures) * (STEP_BOX + GAP) - GAP, STEP_BOX)
    for number, picture in enumerate(pictures):
        sheet.put(picture, number * (STEP_BOX + GAP), 0)
    write(sheet.image, DOCS / "images" / "jumps.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, metavar="SRC", help="sources of an earlier version to compare with")
    parser.add_argument("--panels", type=Path, metavar="FOLDER", help="only write one picture of each scene")
    options = parser.parse_args()
    warnings.simplefilter("ignore", nm.NormalMeshWarning)
    if options.panels:
        draw_panels(options.panels)
        return
    finding()
    if options.before:
        comparison(options.before)


if __name__ == "__main__":
    main()
