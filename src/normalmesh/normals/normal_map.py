"""NormalMap: validated normals, mask and camera, on which all later stages rely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.array_types import Bool, Float32, Floating, Integer
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.normals._normal_map import NormalMapArrays
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.cleaning import Cleaning, CleanWindows, typical_length
from normalmesh.normals.mask_labels import component_labels
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.repairs import Repairs, flattened_components, report_repairs
from normalmesh.normals.windows import Rectangle, checked_window, rectangle_of, whole_window

if TYPE_CHECKING:
    from normalmesh.maps.maps_on_disk import MapOnDisk
    from normalmesh.normals.conventions import Convention


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

    normals: Float32
    mask: Bool = None  # type: ignore[assignment]  # an array always, once made
    camera: Camera = field(default_factory=Orthographic)
    repairs: Repairs = field(init=False)

    def __post_init__(self) -> None:
        unresolved = self._check()
        parts = [(whole_window(self.shape), self.arrays)]
        report_repairs(self.repairs, self.foreground, unresolved, lambda: flattened_components(parts, self.shape[1]))

    @classmethod
    def derived(cls, normals: Float32, mask: Bool, camera: Camera) -> NormalMap:
        """Return a map of normals that another map has warned about already."""
        derived = object.__new__(cls)
        derived.__dict__.update(normals=normals, mask=mask, camera=camera)
        derived._check()
        return derived

    @classmethod
    def cleaned(cls, normals: Float32, mask: Bool, camera: Camera, repairs: Repairs | None = None) -> NormalMap:
        """Return a map of normals and a mask that are clean already, as those of another map: they stay as they are."""
        clean = object.__new__(cls)
        normals, mask = np.ascontiguousarray(normals), np.ascontiguousarray(mask)
        normals.flags.writeable = mask.flags.writeable = False
        clean.__dict__.update(normals=normals, mask=mask, camera=camera, repairs=repairs or Repairs())
        return clean

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        mask: str | PathLike[str] | ArrayLike | None = None,
        camera: Camera | str | PathLike[str] | Callable[[tuple[int, int]], Camera] | None = None,
        convention: str | Convention = "opengl",
        *,
        alpha: Literal["auto", "mask", "ignore"] = "auto",
        variable: str | None = None,
        max_pixels: float | None = None,
    ) -> MapOnDisk:
        """Open a normal map that stays on disk, and is read window by window.

        A window has, bit for bit, the pixels that :func:`read_normal_map` gives there. Everything that rules of the
        whole map need (encoding, background, mask, repairs) is found here, in passes over all windows; the warnings
        are those of the whole map, and come once.

        Parameters
        ----------
        path
            Tiled or striped TIFF, BigTIFF or COG (its full resolution), Zarr or OME-Zarr (extra ``zarr``), or NPY.
        mask
            (H, W), nonzero = foreground, or a file of any of these kinds; other images are read whole. Default: the
            array named ``mask`` of a Zarr group or the alpha channel, else every pixel that is not background.
        camera
            As for :func:`read_normal_map`. Default: for a GeoTIFF an :class:`Orthographic` camera with its pixel
            size, else :class:`Orthographic`.
        convention, alpha, max_pixels
            As for :func:`read_normal_map`.
        variable
            Which array of a Zarr group holds the normals.

        Raises
        ------
        NormalMeshError
            The file cannot be read in windows or is not a normal map; the message says what to do.
        """
        from normalmesh.maps.normal_maps import open_map

        return open_map(path, mask, camera, convention, alpha=alpha, variable=variable, max_pixels=max_pixels)

    def _check(self) -> int:
        """Clean normals and mask; return the number of pixels in which depth changes too much to be resolved."""
        checked_camera(self.camera)
        given = _checked_normals(self.normals)
        mask = checked_mask(self.mask, given.shape[:2])
        shape, length = (mask.shape[0], mask.shape[1]), typical_length(given, mask)
        has_mask = self.mask is not None
        windows = CleanWindows(lambda each: (given[each], mask[each]), shape, self.camera, length, has_mask)
        cleaning = Cleaning(windows)
        normals, mask = cleaning.add(whole_window(shape))
        repairs, leaving = cleaning.finish()
        mask.reshape(-1)[leaving] = False
        normals.reshape(-1, 3)[leaving] = 0
        normals.flags.writeable = mask.flags.writeable = False
        self.__dict__.update(normals=normals, mask=mask, repairs=repairs)
        return cleaning.unresolved

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

    @cached_property
    def component_labels(self) -> tuple[Integer, int]:
        """The 4-connected component (H, W) of each pixel, from 1 on, 0 outside the mask, and their number.

        Found once. A single component takes no memory of its own.
        """
        labels, count = component_labels(self.mask)
        return (self.mask.view(np.uint8), 1) if count == 1 else (labels, count)

    def with_normals(self, normals: Float32) -> NormalMap:
        """Return a map of other normals (H, W, 3) of the same pixels."""
        other = NormalMap.derived(normals, self.mask, self.camera)
        if "component_labels" in self.__dict__ and np.array_equal(other.mask, self.mask):
            other.__dict__["component_labels"] = self.component_labels
        return other

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the normals (H, W, 3), for ``np.asarray(normal_map)``: read-only unless they are copied."""
        if copy is None:
            return np.asarray(self.normals, dtype)
        return np.array(self.normals, dtype, copy=copy)

    def rectangle(self) -> Rectangle:
        """Return the smallest rectangle (top, left, height, width) that holds the foreground."""
        return rectangle_of(np.any(self.mask, axis=1), np.any(self.mask, axis=0))

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return the same pixels as a map of a window of the image; None if no pixel of it is foreground.

        Its camera is that of the window, whose first pixel is (``rows.start``, ``columns.start``). Whole rows are not
        copied.
        """
        from normalmesh.normals.component_maps import window_camera

        rows, columns = checked_window(rows, columns, self.shape)
        mask = self.mask[rows, columns]
        if not mask.any():
            return None
        camera = window_camera(self.camera, columns.start, rows.start)
        return NormalMap.cleaned(self.normals[rows, columns], mask, camera)

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask (h, w) of a window of the image."""
        return self.mask[checked_window(rows, columns, self.shape)]

    def crop(
        self, rectangle: tuple[int, int, int, int] | tuple[slice, slice] | None = None, *, margin: int = 0
    ) -> NormalMap:
        """Return a part of the map, with the camera of that part: a principal point moves with the pixels.

        Parameters
        ----------
        rectangle
            Top row, left column, height and width, or slices of rows and columns, such as ``np.s_[100:400, 50:-50]``.
            Default: the smallest rectangle that holds the foreground, :meth:`rectangle`.
        margin
            Pixels around the rectangle that are kept, too, as far as the image reaches.

        Raises
        ------
        NormalMeshError
            The rectangle is not inside the image, or holds no foreground.
        """
        from normalmesh.normals.map_changes import cropped

        return cropped(self, rectangle, margin)

    def resize(self, size: float | tuple[int, int]) -> NormalMap:
        """Return the map at another resolution: of the same surface, with the camera of the new pixels.

        A shrunk map is that of the surface averaged over the new pixels: its slopes are means of slopes, which unlike
        means of normals keep heights. An enlarged map interpolates slopes bilinearly. A new pixel is foreground if at
        least half of its area is. Pixel size, focal lengths and principal point follow, so that surfaces have the
        same size and place as before: without a pixel size, lengths stay in pixels of this map.

        Parameters
        ----------
        size
            Factor on rows and columns, such as 0.5; or the new rows and columns. Behind an orthographic camera, whose
            pixels are square, they must have the proportions of the old ones, up to less than a pixel.
        """
        from normalmesh.normals.map_changes import resized_map

        return resized_map(self, size)

    def rotated(self, degrees: int) -> NormalMap:
        """Return the map turned anticlockwise by 90, 180 or 270 degrees: pixels, normals and camera.

        The surface of a rotated map is the rotated surface. Negative angles turn clockwise.
        """
        from normalmesh.normals.map_changes import rotated_map

        return rotated_map(self, degrees)

    def filled(self, mask: ArrayLike | None = None, *, largest: int | None = None) -> NormalMap:
        """Return the map with normals in holes of the mask: the smoothest continuation of the slopes around them.

        Both slopes are harmonic in a hole: each is the mean of those of the four neighbours. Paraboloids, and all
        surfaces whose slopes are linear, are continued exactly.

        Parameters
        ----------
        mask
            (H, W), nonzero = pixels to fill, where they have no normal yet. What reaches beyond the foreground
            continues it, without a bound at its outer rim. Default: all holes, that is, background that is not
            connected to the border of the image.
        largest
            Holes of more pixels stay. Default: any size.

        Warns
        -----
        NormalMeshWarning
            Pixels of ``mask`` are not connected to the foreground, and stay background.
        """
        from normalmesh.integration.hole_filling import filled_map

        return filled_map(self, mask, largest)

    def save(
        self,
        path: str | PathLike[str],
        *,
        convention: str | Convention = "opengl",
        bits: int | None = None,
        matrix: str | PathLike[str] | None = None,
    ) -> None:
        """Write the map to a file that :func:`read_normal_map` reads.

        Parameters
        ----------
        path
            The suffix is the format. PNG: 16 or 8 bit; TIFF: 32 (float), 16 or 8 bit; EXR: 32 or 16 bit floats (extra
            ``exr``), each with the mask as alpha. NPY: float32 (H, W, 3), zero outside the mask. NPZ: ``normals``,
            ``mask``, and the camera as ``camera_matrix`` or ``pixel_size``, which :func:`read_normal_map` takes.
        convention
            What the channels of the file hold, as for :func:`read_normal_map`.
        bits
            Bits of a channel; default: the first one named above.
        matrix
            File to write the 3×3 matrix of a perspective camera to, as :meth:`Perspective.from_file` reads it.

        Warns
        -----
        NormalMeshWarning
            The camera is neither :class:`Orthographic` with pixels of side 1 nor written: give it again when the file
            is read.
        """
        from normalmesh.output.normal_map_writing import save_normal_map

        save_normal_map(self, path, convention, bits, matrix)

    def _repr_html_(self) -> str | None:
        """Return a picture and figures for notebooks."""
        from normalmesh.report.notebook import html_or_none, normal_map_html

        return html_or_none(normal_map_html, self)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"NormalMap({columns} × {rows} pixels, {self.foreground} of them foreground, {self.camera})"


def _checked_normals(normals: ArrayLike) -> Floating:
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


def checked_mask(mask: ArrayLike | None, shape: tuple[int, ...]) -> Bool:
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
