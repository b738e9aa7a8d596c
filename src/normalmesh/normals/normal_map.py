"""NormalMap: validated normals, mask and camera, on which all later stages rely."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.normals._normal_map import BACK_FACING, INVALID, NormalMapArrays, clean_normals, sample_lengths
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.extension import WITH_MASK, WITHOUT_MASK, extend
from normalmesh.normals.orthographic import Orthographic
from normalmesh.runtime.threads import in_parallel

#: Vectors that are shorter than this share of the typical length have no direction: mid grey with the noise of a file.
SHORT = 0.05
#: Number of vectors whose lengths are sampled, and the quantile that is typical: most of an image may be background.
SAMPLED, TYPICAL = 1 << 16, 0.95


@dataclass(frozen=True)
class Repairs:
    """How many foreground pixels a :class:`NormalMap` had to repair or drop.

    Attributes
    ----------
    invalid
        NaN, infinite or (nearly) zero-length vectors of the mask: no measurements. Without a mask they are background
        and not counted.
    rescaled
        Normals whose length was off by more than 2 %: normalised (as all are).
    back_facing
        Normals turned away from the viewer: no measurements.
    grazing
        Normals between 85° and 90° from the viewing ray: clamped to 85°.
    extended
        Pixels without a measurement that took the mean normal of their neighbours.
    excluded
        Pixels of the mask without a measurement, too far from any: left the mask. 0 without a mask.
    """

    invalid: int = 0
    rescaled: int = 0
    back_facing: int = 0
    grazing: int = 0
    extended: int = 0
    excluded: int = 0


@dataclass(frozen=True, eq=False)
class NormalMap:
    """Unit normals on a pixel grid, the mask of the pixels that count, and the camera that saw them. Immutable.

    Parameters
    ----------
    normals
        (H, W, 3) floats in the frame x right, y up, z towards the viewer. Any length: they are normalised. The array
        is copied. For encoded images (0 … 255) and other axes use :func:`read_normal_map`.
    mask
        (H, W), True or nonzero = foreground. Pixels of the mask without a measurement (NaN, zero length, turned away
        from the viewer) take the mean normal of their neighbours: up to 4 px beyond the measurements, and in holes
        of up to 32 px width; farther ones leave the mask. Default: every pixel with a measurement, and enclosed
        specks of at most 16 pixels without one.
    camera
        Default :class:`Orthographic`.

    Attributes
    ----------
    normals : (H, W, 3) float32
        Unit length and at most 85° from the viewing ray inside the mask, zero outside.
    mask : (H, W) bool
    camera : Camera
    repairs : Repairs
        What had to be changed, counted in foreground pixels. Warned about once, when the map is made.

    Raises
    ------
    NormalMeshError
        Wrong shapes or types, an empty mask, or normals that all point away from the viewer.
    """

    normals: NDArray[np.float32]
    mask: NDArray[np.bool_] = None  # type: ignore[assignment]  # an array always, once made
    camera: Camera = field(default_factory=Orthographic)
    repairs: Repairs = field(init=False)

    def __post_init__(self) -> None:
        checked_camera(self.camera)
        given = _checked_normals(self.normals)
        mask = checked_mask(self.mask, given.shape[:2])
        normals = np.empty(given.shape, np.float32)
        counts = np.zeros((len(mask), 4), np.int64)
        shortest = SHORT * _typical_length(given, mask)
        in_parallel(clean_normals, len(mask), given, mask, self.camera.arrays, shortest, normals, counts, grain=64)
        totals = counts.sum(axis=0)
        _refuse_unusable(totals, int(np.count_nonzero(mask)))
        missing, extended = counts[:, INVALID] + counts[:, BACK_FACING], 0
        if missing.any():
            reach = WITHOUT_MASK if self.mask is None else WITH_MASK
            extended = extend(NormalMapArrays(normals, mask, self.camera.arrays), missing, reach)
        repairs = _repairs(totals, extended, self.mask is not None)
        normals.flags.writeable = False
        mask.flags.writeable = False
        for name, value in (("normals", normals), ("mask", mask), ("repairs", repairs)):
            object.__setattr__(self, name, value)
        _report(repairs, self.foreground)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.mask.shape
        return rows, columns

    @property
    def arrays(self) -> NormalMapArrays:
        """The map as kernels take it."""
        return NormalMapArrays(self.normals, self.mask, self.camera.arrays)

    @property
    def foreground(self) -> int:
        """Number of pixels in the mask."""
        return int(np.count_nonzero(self.mask))

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"NormalMap({rows}×{columns}, {self.foreground} foreground pixels, {self.camera!r})"


def _checked_normals(normals: ArrayLike) -> NDArray[np.floating]:
    """Return the normals as a contiguous float32 or float64 array (H, W, 3), or raise :class:`NormalMeshError`."""
    array = checked_array(normals, "normals", kinds=None)
    if array.ndim != 3 or array.shape[2] != 3:
        raise NormalMeshError(f"normals must have the shape (rows, columns, 3), not {shape_text(array.shape)}")
    if array.size == 0:
        raise NormalMeshError(f"normals are empty ({shape_text(array.shape)})")
    if array.dtype.kind != "f":
        raise NormalMeshError(
            f"normals must be floats, not {array.dtype}; decode an image of maximum m as 2·value/m − 1, "
            "or let read_normal_map do it"
        )
    dtype = np.float32 if array.dtype.itemsize <= 4 else np.float64
    return np.ascontiguousarray(array, dtype)


def checked_mask(mask: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return a copy of the mask as bool of the given shape, or raise :class:`NormalMeshError`."""
    if mask is None:
        return np.ones(shape, np.bool_)
    array = checked_nonzero(mask)
    if array.shape != shape:
        raise NormalMeshError(
            f"mask is {shape_text(array.shape)} but normals are {shape_text(shape)}; they must be of one image"
        )
    if not array.any():
        raise NormalMeshError("mask is empty: no pixel is foreground; is it inverted, or of another image?")
    return array


def _typical_length(given: NDArray[np.floating], mask: NDArray[np.bool_]) -> float:
    """Return the typical length of the vectors of the mask that have one; 0 if none has."""
    foreground = int(np.count_nonzero(mask))
    for step in (max(foreground // SAMPLED, 1), 1):
        lengths = np.empty(foreground // step, np.float64)
        count = sample_lengths(given, mask, step, lengths)
        if count:
            return float(np.quantile(lengths[:count], TYPICAL))
    return 0.0


def _refuse_unusable(totals: NDArray[np.int64], pixels: int) -> None:
    """Raise :class:`NormalMeshError` if none of the pixels of the mask holds a measurement."""
    if totals[INVALID] + totals[BACK_FACING] < pixels:
        return
    if totals[BACK_FACING]:
        raise NormalMeshError(
            "all normals point away from the viewer: z must point towards the viewer; "
            "read the map with convention='opencv' (z away), or negate the axis that is off"
        )
    raise NormalMeshError(
        f"no usable normal is left: all {pixels} in the mask are NaN, infinite or of zero length; "
        "check that file and mask belong together"
    )


def _repairs(totals: NDArray[np.int64], extended: int, masked: bool) -> Repairs:
    """Return the counts; without a mask, what has no measurement is background."""
    invalid, rescaled, back_facing, grazing = (int(total) for total in totals)
    if not masked:
        return Repairs(0, rescaled, back_facing, grazing, extended)
    return Repairs(invalid, rescaled, back_facing, grazing, extended, invalid + back_facing - extended)


def _report(repairs: Repairs, foreground: int) -> None:
    """Warn once about all repairs; clamped grazing normals are too common to be reported."""
    parts = []
    if repairs.invalid:
        parts.append(f"{repairs.invalid} normals are NaN, infinite or of (nearly) zero length")
    if repairs.back_facing:
        share = 100 * repairs.back_facing / (foreground - repairs.extended + repairs.back_facing)
        doubt = "; is the convention right?" if share > 20 else ""
        parts.append(f"{repairs.back_facing} normals ({share:.2g} %) point away from the viewer{doubt}")
    if repairs.extended:
        parts.append(f"{repairs.extended} pixels without a measurement took the mean normal of their neighbours")
    if repairs.excluded:
        parts.append(f"{repairs.excluded} pixels too far from any measurement left the mask")
    if repairs.rescaled:
        parts.append(f"{repairs.rescaled} normals were not of unit length and were normalised")
    if parts:
        warnings.warn("; ".join(parts), NormalMeshWarning, stacklevel=4)
