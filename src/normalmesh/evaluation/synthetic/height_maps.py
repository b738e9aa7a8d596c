"""Cases from height maps. Depth and normals come from the same spline, so that they agree exactly."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.interpolate import RectBivariateSpline

from normalmesh.array_types import Bool, Float
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.image_geometry import checked_shape
from normalmesh.evaluation.synthetic.relief_case import Relief, lift
from normalmesh.files.arrays import read_npy
from normalmesh.files.formats import file_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, IMAGES, read_image
from normalmesh.files.masks import reaches_half
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import checked_mask

#: Height of the full range of an integer image, as a fraction of the longer side.
IMAGE_HEIGHT = 1 / 8


def relief(
    heights: str | PathLike[str] | ArrayLike,
    camera: Camera | str = "orthographic",
    *,
    size: int | tuple[int, int] | None = None,
    height: float | None = None,
    smoothing: float = 0.0,
    mask: ArrayLike | None = None,
    name: str | None = None,
) -> Case:
    """Return the case of a height map, with exact depth and normals.

    A cubic spline interpolates the heights at the pixel centres; depth and slopes at any resolution are evaluated from
    it. Pixels without a height are filled from their nearest neighbours for the spline, but are background in the
    result.

    ``heights`` (H, W) towards the viewer, at least 3×3, are NaN where unknown; or a grey image, or an NPY file. The
    ``mask`` (H, W) is of them, by default all finite pixels that are not transparent. A Gaussian filter of the standard
    deviation ``smoothing`` (px) helps against quantisation steps of 8-bit images. If the map has more pixels than
    ``size``, it is smoothed first. ``height`` is from the lowest to the highest point in pixels of the result. By
    default heights are in pixels of the map, and scaled with it; the range of an integer image is an eighth of the
    longer side.
    """
    if isinstance(heights, str | PathLike):
        name = name or Path(heights).stem
        values, inside, is_scaled = _read(Path(heights))
    else:
        values, inside, is_scaled = _numbers(heights), None, True
    inside = _inside(values, inside, mask)
    rows, columns = values.shape
    shape = (rows, columns) if size is None else checked_shape(size)
    if height is None and not is_scaled:
        height = IMAGE_HEIGHT * max(shape)
    step = np.array([rows / shape[0], columns / shape[1]])
    values = _smoothed(_filled(values, inside), smoothing, step)
    scale = 1 / np.sqrt(step.prod()) if height is None else _scale(values[inside], height)
    return lift(name or "relief", _Spline(values, step, scale), shape, camera, _nearest(inside, shape, step))


class _Spline:
    """The relief of a spline through ``values`` at their pixel centres, evaluated at the centres of another pixel grid.

    ``step`` (2,) is the size of a pixel of the result in pixels of the values, downwards and to the right; ``scale``
    converts values to heights in pixels of the result.
    """

    def __init__(self, values: Float, step: Float, scale: float) -> None:
        rows, columns = values.shape
        self.step, self.scale = step, scale
        self.spline = RectBivariateSpline(
            np.arange(rows) + 0.5,
            np.arange(columns) + 0.5,
            values,
            # Extrapolate the outer pieces to the border of the map.
            bbox=[0, rows, 0, columns],
            kx=min(3, rows - 1),
            ky=min(3, columns - 1),
            s=0,
        )

    def __call__(self, screen: Float) -> Relief:
        """Return height and slopes (rows, columns) on a grid of screen positions (rows, columns, 2)."""
        down, right = self.step
        v, u = down * screen[:, 0, 1], right * screen[0, :, 0]
        return (
            self.scale * self.spline(v, u),
            self.scale * right * self.spline(v, u, dy=1),
            -self.scale * down * self.spline(v, u, dx=1),
        )


def fractal(size: int | tuple[int, int] = 512, seed: int = 0, height: float = 0.2) -> Float:
    """Return the heights (H, W) in pixels of a fractal mountain terrain with sharp crests and smooth valleys.

    The same seed gives the same terrain at any size, with detail down to the pixel. ``height``, from the lowest to the
    highest point, is a fraction of the longer side.
    """
    shape = checked_shape(size)
    longer = max(shape)
    terrain, weight, cells, strength = np.zeros(shape), np.ones(shape), 3, 1.0
    while cells == 3 or 4 * cells <= longer:
        crest = (1 - np.abs(_noise(shape, cells, seed))) ** 2
        terrain += strength * weight * crest
        # Detail is concentrated on crests.
        weight *= 0.3 + 0.7 * crest
        cells, strength = 2 * cells, 0.55 * strength
    span = float(np.ptp(terrain))
    return (terrain - terrain.min()) * (height * longer / span if span > 0 else 1.0)


def _noise(shape: tuple[int, int], cells: int, seed: int) -> Float:
    """Return smooth random values (H, W) from about −1 to 1, with ``cells`` cells along the longer side."""
    lattice = np.random.default_rng([seed, cells]).uniform(-1, 1, size=(cells + 4, cells + 4))
    axis = np.arange(-2.0, cells + 2)
    places = [(np.arange(side) + 0.5) * cells / max(shape) for side in shape]
    return RectBivariateSpline(axis, axis, lattice, s=0)(*places)


def _numbers(heights: ArrayLike) -> Float:
    try:
        return np.array(heights, np.float64)
    except (TypeError, ValueError) as error:
        raise NormalMeshError("heights must be numbers or a file") from error


def _read(path: Path) -> tuple[Float, Bool | None, bool]:
    """Return heights (H, W) of a file, the mask of opaque pixels, and whether values are lengths, not grey levels."""
    kind = file_format(path)
    if kind == "NPY":
        return _numbers(read_npy(path)), None, True
    if kind not in IMAGE_FORMATS:
        raise unusable(path, f"a height map must be a {IMAGES} image or an NPY file{f', not {kind}' if kind else ''}")
    image = read_image(path, kind)
    colours = image.values if image.alpha is None else image.values[..., :-1]
    if image.colour not in ("grey", "RGB") or np.any(colours != colours[..., :1]):
        raise unusable(path, "a height map must be grey, but this image is coloured")
    opaque = None if image.alpha is None else reaches_half(image.alpha, image.maximum)
    return _numbers(colours[..., 0]), opaque, image.maximum is None


def _inside(values: Float, opaque: Bool | None, mask: ArrayLike | None) -> Bool:
    """Return the foreground, or raise an error if it is empty."""
    if values.ndim != 2 or min(values.shape) < 3:
        raise NormalMeshError(
            f"heights must have the shape (rows, columns), 3×3 or more, not {shape_text(values.shape)}"
        )
    inside = np.isfinite(values) if opaque is None else opaque & np.isfinite(values)
    if mask is not None:
        inside &= checked_mask(mask, values.shape)
    if not inside.any():
        raise NormalMeshError("heights are empty: no pixel in the mask has a finite height")
    return inside


def _filled(values: Float, inside: Bool) -> Float:
    """Replace values outside by the nearest ones inside."""
    if inside.all():
        return values
    nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return values[tuple(nearest)]


def _smoothed(values: Float, smoothing: float, step: Float) -> Float:
    """Smooth values by ``smoothing``, and additionally if the pixels of the result are larger."""
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise NormalMeshError(f"smoothing must be a number of pixels, zero or more, not {smoothing}")
    # Averaging over a pixel is about the same as a Gaussian filter of half its side.
    widths = np.sqrt(smoothing**2 + np.maximum(step**2 - 1, 0) / 4)
    if not widths.any():
        return values
    return ndimage.gaussian_filter(values, widths, mode="nearest")


def _scale(values: Float, height: float) -> float:
    span = float(np.ptp(values))
    if not (np.isfinite(height) and height > 0):
        raise NormalMeshError(f"height must be a positive number of pixels, not {height}")
    return height / span if span > 0 else 1.0


def _nearest(inside: Bool, shape: tuple[int, int], step: Float) -> Bool:
    """Return the mask (H, W) resampled to the pixels of the result by nearest neighbour."""
    places = [((np.arange(side) + 0.5) * ratio).astype(np.intp) for side, ratio in zip(shape, step, strict=True)]
    return inside[np.ix_(*places)]
