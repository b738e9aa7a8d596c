"""Reliefs from height maps: nothing is hidden, and depth and normals come from one spline, so that they agree."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from scipy.interpolate import RectBivariateSpline

from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.lifting import Grid, Relief, lift
from normalmesh.evaluation.synthetic.screens import checked_shape
from normalmesh.files.arrays import read_npy
from normalmesh.files.formats import file_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, read_image
from normalmesh.files.masks import reaches_half
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import checked_mask

#: Height that the full span of an image of whole numbers gets, in lengths of the longer side.
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
    """The relief of a height map, with exact depth and normals.

    A cubic spline goes through the heights at the pixel centres; depth, slopes and any other resolution are read from
    it. Pixels without a height are filled from their nearest neighbours before, so that the spline runs on below them,
    and left out of the result.

    Parameters
    ----------
    heights
        (H, W), at least 3×3, towards the viewer; NaN where unknown. Or a grey PNG, JPEG or TIFF file, or an NPY file.
    camera
        A camera or its name; see :func:`normalmesh.evaluation.synthetic.lifting.lift` for what a pinhole sees.
    size
        Side of a square image, or (rows, columns), of the result; default: those of the heights. The map is smoothed
        first where it has more pixels.
    height
        From the lowest to the highest point in pixels of the result. Default: heights are pixels of their own map, and
        scaled with it; images of whole numbers get an eighth of the longer side.
    smoothing
        Standard deviation of a Gaussian in pixels of the heights, against the steps of 8-bit images.
    mask
        (H, W) of the heights, nonzero = foreground; default: what is finite and not transparent.
    name
        Of the case; default: that of the file, else ``"relief"``.

    Raises
    ------
    NormalMeshError
        A file or array that is no height map, or a relief that reaches the camera.
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
    """The relief of a spline through ``values`` at their pixel centres, read at the centres of another pixel grid.

    ``step`` (2,) are pixels of the values for a pixel of the result, downwards and to the right; ``scale`` takes values
    to heights in pixels of the result.
    """

    def __init__(self, values: Grid, step: Grid, scale: float) -> None:
        rows, columns = values.shape
        self.step, self.scale = step, scale
        self.spline = RectBivariateSpline(
            np.arange(rows) + 0.5,
            np.arange(columns) + 0.5,
            values,
            # The outer pieces go on to the border of the map.
            bbox=[0, rows, 0, columns],
            kx=min(3, rows - 1),
            ky=min(3, columns - 1),
            s=0,
        )

    def __call__(self, screen: Grid) -> Relief:
        """Height and slopes (rows, columns) on a grid of screen positions (rows, columns, 2)."""
        down, right = self.step
        v, u = down * screen[:, 0, 1], right * screen[0, :, 0]
        return (
            self.scale * self.spline(v, u),
            self.scale * right * self.spline(v, u, dy=1),
            -self.scale * down * self.spline(v, u, dx=1),
        )


def fractal(size: int | tuple[int, int] = 512, seed: int = 0, height: float = 0.2) -> Grid:
    """Heights (H, W) in pixels of a mountain terrain: sharp crests, smooth valleys, and the more detail, the higher.

    The same seed gives the same terrain at any size, with as much detail as the pixels hold.

    Parameters
    ----------
    size
        Side of a square, or rows and columns.
    seed
        Which terrain.
    height
        From the lowest to the highest point, in lengths of the longer side.
    """
    shape = checked_shape(size)
    longer = max(shape)
    terrain, weight, cells, strength = np.zeros(shape), np.ones(shape), 3, 1.0
    while cells == 3 or 4 * cells <= longer:
        crest = (1 - np.abs(_noise(shape, cells, seed))) ** 2
        terrain += strength * weight * crest
        # Detail gathers on crests; some is everywhere.
        weight *= 0.3 + 0.7 * crest
        cells, strength = 2 * cells, 0.55 * strength
    span = float(np.ptp(terrain))
    return (terrain - terrain.min()) * (height * longer / span if span > 0 else 1.0)


def _noise(shape: tuple[int, int], cells: int, seed: int) -> Grid:
    """Smooth random values (H, W) from about −1 to 1, with this number of cells along the longer side."""
    lattice = np.random.default_rng([seed, cells]).uniform(-1, 1, size=(cells + 4, cells + 4))
    axis = np.arange(-2.0, cells + 2)
    places = [(np.arange(side) + 0.5) * cells / max(shape) for side in shape]
    return RectBivariateSpline(axis, axis, lattice, s=0)(*places)


def _numbers(heights: ArrayLike) -> Grid:
    try:
        return np.array(heights, np.float64)
    except (TypeError, ValueError) as error:
        raise NormalMeshError("heights must be numbers or a file") from error


def _read(path: Path) -> tuple[Grid, NDArray[np.bool_] | None, bool]:
    """Heights (H, W) of a file, what is not transparent, and whether the numbers are lengths rather than shades."""
    kind = file_format(path)
    if kind == "NPY":
        return _numbers(read_npy(path)), None, True
    if kind not in IMAGE_FORMATS:
        raise unusable(path, f"a height map must be a PNG, JPEG, TIFF or NPY file{f', not {kind}' if kind else ''}")
    image = read_image(path, kind)
    colours = image.values if image.alpha is None else image.values[..., :-1]
    if image.colour not in ("grey", "RGB") or np.any(colours != colours[..., :1]):
        raise unusable(path, "a height map must be grey; this image has colours")
    opaque = None if image.alpha is None else reaches_half(image.alpha, image.maximum)
    return _numbers(colours[..., 0]), opaque, image.maximum is None


def _inside(values: Grid, opaque: NDArray[np.bool_] | None, mask: ArrayLike | None) -> NDArray[np.bool_]:
    """Where there are heights that count, or an error."""
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


def _filled(values: Grid, inside: NDArray[np.bool_]) -> Grid:
    """Values outside replaced by the nearest ones inside."""
    if inside.all():
        return values
    nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return values[tuple(nearest)]


def _smoothed(values: Grid, smoothing: float, step: Grid) -> Grid:
    """Values blurred by ``smoothing``, and by as much as the pixels of the result are larger than theirs."""
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise NormalMeshError(f"smoothing must be a number of pixels, zero or more, not {smoothing}")
    # A pixel is about as blurred as a Gaussian of half its side.
    widths = np.sqrt(smoothing**2 + np.maximum(step**2 - 1, 0) / 4)
    return ndimage.gaussian_filter(values, widths, mode="nearest") if widths.any() else values


def _scale(values: Grid, height: float) -> float:
    span = float(np.ptp(values))
    if not (np.isfinite(height) and height > 0):
        raise NormalMeshError(f"height must be a positive number of pixels, not {height}")
    return height / span if span > 0 else 1.0


def _nearest(inside: NDArray[np.bool_], shape: tuple[int, int], step: Grid) -> NDArray[np.bool_]:
    """The mask (H, W) at the pixel of the map under the centre of each pixel of the result."""
    places = [((np.arange(side) + 0.5) * ratio).astype(np.intp) for side, ratio in zip(shape, step, strict=True)]
    return inside[np.ix_(*places)]
