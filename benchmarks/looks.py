"""Measure how surfaces look on all shared cases, and draw them beside pixel integration with jumps.

Teeth, turning, cuts, bad area, faces off their pixels and needles are those of ``normalmesh.Looks``; height is relative
to pixel integration. Errors are RMSE in px, or MADE behind a perspective camera, where ground truth is known.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from scipy.spatial import cKDTree

from benchmarks.cases import OCCLUSION_FREE, Case, load, map_names, measure
from normalmesh import (
    Looks,
    NormalMap,
    NormalMeshWarning,
    ScreenMesh,
    Surface,
    find_jumps,
    integrate_pixels,
    measure_looks,
    reconstruct,
)
from normalmesh.evaluation.metrics import normals_of_depth
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import shaded
from normalmesh.pictures.sheet import PALE_INK, Sheet

Float = NDArray[np.float64]

#: Prefixes of the cases without jumps: every cut is a crack there.
WITHOUT_JUMPS = (*OCCLUSION_FREE, "queau_vase", "diligent_ball_ps")
#: Teeth are averaged over the cases whose cuts are longer, px.
LONG_CUTS = 50.0
#: Standard deviation of the filter that correlates noise, px.
CORRELATION = 2.0
#: Perturbations: white and correlated noise in degrees, rounding to 8 bit, JPEG of a quality, units of 8 bit.
KINDS = ("w3", "w10", "c3", "c10", "b8", "j90", "j75", "u1")
#: Lines are found again if they are at most this far away, px.
FOUND_AGAIN = 3.0

#: Side of a panel, distance between panels, and height of the captions of a picture, px.
BOX, GAP, CAPTION = 900, 20, 60
#: Colour behind surfaces that are seen from the side, which shows in gaps.
BACKDROP = (196, 206, 220)
#: Distance of neighbouring pixels along their mean normal from which a picture of the pixel grid shows a gap, px.
TORN = 1.0

HEAD = (
    f"{'case':30} {'vertices':>8} {'MAE °':>7} {'error':>9} {'teeth °':>7} {'°/px':>5} {'cut px':>6} {'bad %':>6} "
    f"{'>30°':>6} {'>60°':>6} {'ghosts':>6} {'gaps %':>6} {'needles':>7} {'height':>6} {'uncov. %':>8} {'s':>5}"
)


@dataclass(frozen=True, eq=False)
class Looked:
    """A case, its surface, and the figures of that."""

    case: Case
    surface: Surface
    looks: Looks
    mae: float
    error: float
    seconds: float

    def __str__(self) -> str:
        looks, height = self.looks, self.looks.height
        return (
            f"{self.case.name:30} {len(self.surface.vertices):8} {self.mae:7.3f} {number(self.error, '9.4f')} "
            f"{number(looks.teeth, '7.1f')} {number(looks.turning, '5.1f')} {looks.cut_length:6.0f} "
            f"{looks.bad_area:6.2f} {looks.off_30:6.2f} {looks.off_60:6.2f} "
            f"{looks.ghosts:6.3f} {looks.gaps:6.2f} {looks.needles:7} "
            f"{number(height, '6.3f')} {looks.uncovered:8.2f} {self.seconds:5.1f}"
        )


def number(value: float | None, form: str) -> str:
    """Format a number that may be unknown."""
    known = value is not None and np.isfinite(value)
    return format(value, form) if known else format("–", ">" + form.split(".")[0])


def case_of(name: str) -> Case:
    """Load a shared case, with the known heights of the tent and the stripes."""
    case = load(name)
    known = {"bini_tent": tent, "bini_stripes": stripes}.get(name)
    return case if known is None else replace(case, depth=known())


def tent() -> Float:
    """Return the heights (128, 128) of a roof over a square."""
    rows, columns = np.indices((128, 128))
    inside = (rows >= 26) & (rows <= 101) & (columns >= 26) & (columns <= 101)
    return np.where(inside, np.maximum(0.0, 38 - np.abs(rows + 0.5 - 64)), 0.0)


def stripes() -> Float:
    """Return the heights (128, 128) of planes that rise and fall in turn."""
    rows, columns = np.indices((128, 128))
    return np.where(rows < 64, np.where(columns // 8 % 2, -1.0, 1.0) * (64 - rows - 0.5), 0.0)


def looked(case: Case, compression: float, pixels: Float | None = None, normal_map: NormalMap | None = None) -> Looked:
    """Reconstruct a case, or another map of it, and measure the surface against the case."""
    normal_map = case.normal_map if normal_map is None else normal_map
    start = time.perf_counter()
    surface = reconstruct(normal_map, compression=compression)
    seconds = time.perf_counter() - start
    found = measure(surface, case)
    error = found.made if surface.camera.is_central else found.rmse
    return Looked(case, surface, measure_looks(surface, normal_map, pixels), found.mae, error, seconds)


def summary(rows: Sequence[Looked]) -> str:
    """Return the means of all cases; of teeth, over those with long cuts."""
    looks = [row.looks for row in rows]
    cut = [each for each in looks if each.cut_length > LONG_CUTS]
    bad, over_30, over_60, ghosts, gaps, uncovered = (
        np.mean([getattr(each, name) for each in looks])
        for name in ("bad_area", "off_30", "off_60", "ghosts", "gaps", "uncovered")
    )
    heights = [each.height for each in looks if each.height is not None]
    teeth, turning = (np.mean([getattr(each, name) for each in cut]) if cut else None for name in ("teeth", "turning"))
    lines = [
        f"{'mean':30} {'':8} {np.mean([row.mae for row in rows]):7.3f} {'':9} {number(teeth, '7.1f')} "
        f"{number(turning, '5.1f')} {np.mean([each.cut_length for each in looks]):6.0f} {bad:6.2f} {over_30:6.2f} "
        f"{over_60:6.2f} {ghosts:6.3f} {gaps:6.2f} {np.mean([each.needles for each in looks]):7.1f} "
        f"{number(np.mean(heights) if heights else None, '6.3f')} {uncovered:8.2f}"
    ]
    ghostly = max(rows, key=lambda row: row.looks.ghosts)
    lines.append(f"worst ghosts {ghostly.looks.ghosts:.3f} % ({ghostly.case.name})")
    worst = max(rows, key=lambda row: row.looks.bad_area)
    lines.append(f"worst bad area {worst.looks.bad_area:.2f} % ({worst.case.name})")
    lines.append(f"cuts on maps without jumps {cracks(rows):.0f} px")
    return "\n".join(lines)


def cracks(rows: Sequence[Looked]) -> float:
    """Return the length in px of the cuts on maps without jumps."""
    return sum(row.looks.cracks for row in rows if row.case.name.startswith(WITHOUT_JUMPS))


def perturbed(normal_map: NormalMap, kind: str, seed: int = 0) -> NormalMap:
    """Return a map with noise in degrees (w3: white, c3: correlated), in 8 bit (b8), or as JPEG of a quality (j90).

    Each number of the 8 bits may be changed by up to a unit (u1).
    """
    normals, mask, amount = normal_map.normals.astype(np.float64), normal_map.mask, int(kind[1:])
    if kind[0] in "wc":
        noise = np.random.default_rng(seed).normal(size=normals.shape)
        if kind[0] == "c":
            noise = ndimage.gaussian_filter(noise, (CORRELATION, CORRELATION, 0), mode="mirror")
            noise /= noise.std()
        noise *= np.radians(amount)
        normals += noise - (noise * normals).sum(axis=-1, keepdims=True) * normals
    else:
        image = np.rint((np.where(mask[..., None], normals, 0) + 1) / 2 * 255).astype(np.uint8)
        if kind[0] == "u":
            units = np.random.default_rng(seed).integers(-amount, amount, image.shape, endpoint=True)
            image = np.clip(image + units, 0, 255).astype(np.uint8)
        if kind[0] == "j":
            image = imagecodecs.jpeg_decode(imagecodecs.jpeg_encode(image, level=amount, subsampling="420"))
        normals = image / 255 * 2 - 1
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return NormalMap(normals.astype(np.float32), mask, normal_map.camera)


def flicker(normal_map: NormalMap, kind: str = "u1") -> tuple[float, float]:
    """Return the length in px of the lines found in an 8-bit map, and the share found again in one that is perturbed.

    Lines of either map count that have one of the other within 3 px; the share is 1 if neither has a line.
    """
    found = [
        np.concatenate([np.empty((0, 2)), *(line.path for line in find_jumps(perturbed(normal_map, each)).lines)])
        for each in ("b8", kind)
    ]
    if min(len(points) for points in found) == 0:
        return float(len(found[0])), float(max(len(points) for points in found) == 0)
    distances = [cKDTree(found[1 - k]).query(found[k])[0] for k in (0, 1)]
    return float(len(found[0])), float(np.mean(np.concatenate(distances) <= FOUND_AGAIN))


def print_perturbed(cases: Sequence[Case], kinds: Sequence[str], compression: float) -> None:
    """Print the length of the cuts and the error of each case as it is and for each perturbation."""
    print("px of cuts / error")
    print(f"{'case':30} " + " ".join(f"{kind:>17}" for kind in ("clean", *kinds)))
    for case in cases:
        cells = []
        for kind in ("", *kinds):
            found = looked(case, compression, None, perturbed(case.normal_map, kind) if kind else None)
            cells.append(f"{found.looks.cut_length:7.0f} /{number(found.error, '8.3f')}")
        print(f"{case.name:30} " + " ".join(f"{cell:>17}" for cell in cells), flush=True)


@dataclass(frozen=True, eq=False)
class Picture:
    """A surface and the pixel grid, from the side above and from the front below."""

    found: Looked
    pixels: Float

    @property
    def normal_map(self) -> NormalMap:
        return self.found.case.normal_map

    @cached_property
    def grid(self) -> Surface:
        """The surface through the pixels, without the faces across jumps."""
        mask, camera = self.normal_map.mask, self.normal_map.camera
        blocks = mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:] & mask[1:, 1:]
        mesh = ScreenMesh.from_mask(blocks)
        columns, rows = mesh.vertices.astype(np.int64).T
        depth, normals = self.pixels[rows, columns], self.normal_map.normals[rows, columns].astype(np.float64)
        unknown = camera.unknown_of_depth(depth)
        points = camera.points(mesh.vertices + 0.5, unknown)
        limit = 2 * TORN * camera.pixel_length * camera.depth_per_unknown(depth)
        torn = np.zeros(len(mesh.faces), np.bool_)
        for k in range(3):
            one, other = mesh.faces[:, k], mesh.faces[:, k - 1]
            torn |= np.abs(((normals[one] + normals[other]) * (points[one] - points[other])).sum(axis=1)) > limit[one]
        return Surface.from_unknown(ScreenMesh(mesh.vertices + 0.5, mesh.faces[~torn]), unknown, camera, mask.shape)

    def drawn(self) -> NDArray[np.uint8]:
        looks, mesh = self.found.looks, self.found.surface
        sheet = Sheet(2 * BOX + 3 * GAP, 2 * BOX + 3 * GAP + CAPTION)
        teeth = f", teeth {looks.teeth:.0f}°" if np.isfinite(looks.teeth) else ""
        text = f"bad area {looks.bad_area:.2f} %, cuts {looks.cut_length:.0f} px{teeth}"
        captions = (f"{self.found.case.name}: {len(mesh.vertices)} vertices, {text}", "pixel integration with jumps")
        for k, (surface, caption) in enumerate(zip((mesh, self.grid), captions, strict=True)):
            left = GAP + k * (BOX + GAP)
            sheet.write(caption, left, GAP, 24, PALE_INK)
            sheet.put(oblique(surface, (BOX, BOX), background=BACKDROP), left, CAPTION)
        for k, front in enumerate((self._front_of_mesh(), self._front_of_pixels())):
            sheet.put(front, GAP + k * (BOX + GAP), CAPTION + BOX + GAP)
        return sheet.image

    @cached_property
    def frame(self) -> Frame:
        return Frame.around(self.normal_map.mask)

    def _enlarged(self, image: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
        """Return the foreground of an image, whose pixels are ``scale`` times smaller than the map's, in a panel."""
        frame, size = self.frame, self.frame.size_within(BOX, BOX)
        rows = slice(scale * frame.top, scale * (frame.top + frame.rows))
        part = image[rows, scale * frame.left : scale * (frame.left + frame.columns)]
        method = Image.Resampling.NEAREST if size[0] > part.shape[1] else Image.Resampling.BOX
        return np.asarray(Image.fromarray(part).resize(size, method))

    def _front_of_mesh(self) -> NDArray[np.uint8]:
        scale = max(2 * BOX // max(self.frame.columns, self.frame.rows), 1)
        rows, columns = self.normal_map.shape
        return self._enlarged(shaded(self.found.surface.normal_map((scale * rows, scale * columns))), scale)

    def _front_of_pixels(self) -> NDArray[np.uint8]:
        return self._enlarged(shaded(normals_of_depth(self.pixels, self.normal_map.camera).astype(np.float32)), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", help="names or their beginnings; default: all")
    parser.add_argument("--compression", type=float, default=0.97, help="1 − vertices / foreground pixels")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="write a PNG for each case")
    parser.add_argument("--quick", action="store_true", help="no pixel integration, so no heights")
    parser.add_argument(
        "--flicker",
        nargs="?",
        const="u1",
        metavar="KIND",
        help="lines found again after one 8-bit unit, or j90, instead",
    )
    parser.add_argument(
        "--perturb", metavar="KINDS", help=f"cuts and errors of perturbed maps instead, such as {','.join(KINDS)}"
    )
    options = parser.parse_args()
    names = [name for name in map_names() if not options.cases or name.startswith(tuple(options.cases))]
    if not names:
        print("the shared cases are not on this machine")
        return
    if options.perturb:
        print_perturbed([case_of(name) for name in names], options.perturb.split(","), options.compression)
        return
    if options.flicker:
        for name in names:
            print(
                "{:30} {:6.0f} px, {:.2f} found again".format(
                    name, *flicker(case_of(name).normal_map, options.flicker)
                ),
                flush=True,
            )
        return
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    print(HEAD)
    rows = []
    for case in map(case_of, names):
        need_pixels = options.pictures or not options.quick
        pixels = integrate_pixels(case.normal_map, discontinuities=True) if need_pixels else None
        rows.append(looked(case, options.compression, pixels))
        print(rows[-1], flush=True)
        if options.pictures:
            Image.fromarray(Picture(rows[-1], pixels).drawn()).save(options.pictures / f"{case.name}.png")
    print(summary(rows))


if __name__ == "__main__":
    main()
