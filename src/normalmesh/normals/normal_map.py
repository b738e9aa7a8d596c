"""NormalMap: validated normals, mask and camera, on which all later stages rely."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.normals._normal_map import (
    BACK_FACING,
    INVALID,
    UNRESOLVED,
    NormalMapArrays,
    clean_normals,
    count_clamped,
    sample_lengths,
)
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.extension import WITH_MASK, WITHOUT_MASK, extend
from normalmesh.normals.orthographic import Orthographic
from normalmesh.runtime.threads import in_parallel

#: Vectors that are shorter than this share of the typical length have no direction: mid grey with the noise of a file.
SHORT = 0.05
#: Number of vectors whose lengths are sampled, and the quantile that is typical: most of an image may be background.
SAMPLED, TYPICAL = 1 << 16, 0.95
#: Share of grazing normals that is reported. The outline of a sphere has 0.8 %, that of a thin wire 3 %.
MANY = 0.05
#: The same for components and for maps with few such normals: the rim is a large share of them.
MOST, FEW = 0.2, 20


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
        Normals between 85° and 90° from the viewing ray: clamped to 85°. Along rays that are more than 45° from the
        optical axis, which see a level surface obliquely, too, the limit is nearer to 90°.
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
        _report(self, unresolved=self._check())

    @classmethod
    def derived(cls, normals: NDArray[np.float32], mask: NDArray[np.bool_], camera: Camera) -> NormalMap:
        """Return a map of normals that another map has warned about already."""
        derived = object.__new__(cls)
        for name, value in (("normals", normals), ("mask", mask), ("camera", camera)):
            object.__setattr__(derived, name, value)
        derived._check()
        return derived

    @classmethod
    def cleaned(cls, normals: NDArray[np.float32], mask: NDArray[np.bool_], camera: Camera) -> NormalMap:
        """Return a map of normals and a mask that are clean already, as those of another map: they stay as they are."""
        clean = object.__new__(cls)
        normals, mask = np.ascontiguousarray(normals), np.ascontiguousarray(mask)
        normals.flags.writeable = mask.flags.writeable = False
        for name, value in (("normals", normals), ("mask", mask), ("camera", camera), ("repairs", Repairs())):
            object.__setattr__(clean, name, value)
        return clean

    def _check(self) -> int:
        """Clean normals and mask; return the number of pixels in which depth changes too much to be resolved."""
        checked_camera(self.camera)
        given = _checked_normals(self.normals)
        mask = checked_mask(self.mask, given.shape[:2])
        normals = np.empty(given.shape, np.float32)
        counts = np.zeros((len(mask), 5), np.int64)
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
        return int(totals[UNRESOLVED])

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

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return the same pixels as a map of a window of the image; None if no pixel of it is foreground."""
        from normalmesh.normals.component_maps import window_camera

        mask = self.mask[rows, columns]
        if not mask.any():
            return None
        camera = window_camera(self.camera, columns.start, rows.start)
        return NormalMap.cleaned(self.normals[rows, columns], mask, camera)

    def mask_window(self, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return the mask (h, w) of a window of the image."""
        return self.mask[rows, columns]

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
    invalid, rescaled, back_facing, grazing = (int(total) for total in totals[:UNRESOLVED])
    if not masked:
        return Repairs(0, rescaled, back_facing, grazing, extended)
    return Repairs(invalid, rescaled, back_facing, grazing, extended, invalid + back_facing - extended)


def _report(normal_map: NormalMap, unresolved: int) -> None:
    """Warn once about all repairs, except for clamped grazing normals if they are as few as at every outline."""
    repairs, foreground = normal_map.repairs, normal_map.foreground
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
    clamped = f"{repairs.grazing} normals ({_percent(repairs.grazing, foreground)}) are almost at right angles to the "
    clamped += "viewing ray and were clamped to 85°"
    if _is_much(repairs.grazing, foreground):
        parts.append(f"{clamped}: the surface is too flat there; are convention and camera right?")
    elif repairs.grazing >= FEW and (flattened := _flattened_components(normal_map)):
        parts.append(f"{clamped}: {flattened} components of the mask consist of them, and are too flat")
    if unresolved:
        parts.append(
            f"in {unresolved} pixels depth changes by more than a quarter from the centre to a corner, and is "
            "inaccurate; is the focal length right, in pixels?"
        )
    if parts:
        warnings.warn("; ".join(parts), NormalMeshWarning, stacklevel=4)


def _percent(number: int, pixels: int) -> str:
    return f"{100 * number / pixels:.3g} %"


def _is_much(number: int, pixels: int) -> bool:
    """Return whether a number of pixels is more than an outline has."""
    return number > (MANY if number >= FEW else MOST) * pixels


def _flattened_components(normal_map: NormalMap) -> int:
    """Return the number of components of the mask that consist of clamped normals to a large part."""
    from scipy import ndimage

    labels, count = ndimage.label(normal_map.mask, output=np.int32)
    counts = np.zeros((count + 1, 2), np.int64)
    count_clamped(normal_map.arrays, labels, counts)
    pixels, clamped = counts.T
    return int(np.count_nonzero((clamped >= FEW) & (clamped > MOST * pixels)))
