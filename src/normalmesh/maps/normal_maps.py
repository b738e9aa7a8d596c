"""Reading normal maps: file → stored values → vectors → the project's frame → :class:`NormalMap`."""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_path
from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, path_text, repr_for_error, shape_text, warn_caller
from normalmesh.files.arrays import (
    CAMERA_MATRIX,
    PIXEL_SIZE,
    read_array_size,
    read_mat,
    read_npz,
    read_npz_camera,
)
from normalmesh.files.exr import read_exr, read_exr_size
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.height_png import is_height_png
from normalmesh.files.images import IMAGE_FORMATS, read_image, read_image_size
from normalmesh.files.masks import mask_of_array, open_mask
from normalmesh.files.packed_masks import ArrayMask, MaskPacker, PackedMask
from normalmesh.files.size_limits import limited_pixels
from normalmesh.files.windowed_arrays import ArrayInMemory, NpyWindows, WindowedArray
from normalmesh.maps.alpha import Alpha, checked_alpha
from normalmesh.maps.decoded_windows import HeldWindows
from normalmesh.maps.given_normals import NAME, given_array
from normalmesh.maps.map_decoding import DecodedMap, decode_map
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.conventions import NAMED, Convention
from normalmesh.normals.normal_map import NormalMap, checked_mask
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.normals.principal_point import question_camera
from normalmesh.normals.windows import whole_window
from normalmesh.photometric.rti import RTI_FORMATS, read_rti_normals, read_rti_size

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.normals.diagnosis import Diagnosis

#: Formats of normal maps.
READABLE = "PNG, JPEG, TIFF, TGA, BMP, WebP, EXR, NPY, NPZ, MAT, PTM or RTI"


def read_normal_map(
    path: str | PathLike[str] | ArrayLike | Image,
    mask: str | PathLike[str] | ArrayLike | None = None,
    camera: Camera | str | PathLike[str] | Callable[[tuple[int, int]], Camera] | None = None,
    convention: str | Convention = "opengl",
    *,
    alpha: Alpha = "auto",
    variable: str | None = None,
    max_pixels: float | None = None,
) -> NormalMap:
    """Read a normal map from a file, or from an array that holds what a file would.

    Integers are decoded as n = 2·value/maximum − 1 (signed ones as value/maximum) at their full bit depth. Floats may
    hold [−1, 1] or [0, 1]: the data decide. The format is detected from the contents, not from the name.

    Without a mask, black, mid grey and NaN are background, and so is the colour of the image's border, up to the noise
    of the file: any colour that is no normal, and flat or any other constant normal if the rest has the outline of an
    object, where normals turn away from the viewer.

    Parameters
    ----------
    path
        PNG, JPEG, TIFF, TGA, BMP, WebP, EXR, NPY, NPZ or MAT (version 5 to 7) file with three channels, or four with
        alpha; or a relightable image (PTM, RTI), see :func:`read_rti`. NPZ and MAT files may hold the slopes of heights
        instead, ``p`` and ``q`` as in :func:`from_gradients`.
        Or an array (H, W, 3 or 4), which gives the same map as an NPY file of it, a tensor of PyTorch, also (3, H, W),
        or a Pillow image. To take unit normals exactly as they are, without a search for background, make a
        :class:`NormalMap`.
    mask
        (H, W), nonzero = foreground, or an image or NPY file of that size. In images, foreground is what reaches half
        of the range. Default: the file's array named ``mask`` or its alpha channel, else every pixel that is not
        background.
    camera
        A camera, or a file with the 3×3 camera matrix whose pixel centres are integers (see
        :meth:`Perspective.from_file`), or a function that makes a camera from rows and columns. Default: that of an
        NPZ file of :meth:`NormalMap.save`, else :class:`Orthographic`.
    convention
        What the channels hold: ``opengl``, ``directx``, ``opencv``, axes such as ``"+x-y+z"``, or ``auto`` to take
        what :func:`diagnose` finds.
    alpha
        ``"auto"``: an alpha channel is a mask if it has two values (and at most 5 % between them) or is zero exactly
        where there is background; others are ignored, with a warning. ``"mask"``: it is one, from half of the range on.
        ``"ignore"``: it is none.
    variable
        Which array of an NPZ or MAT file, or which layer of an EXR file, holds the normals.
    max_pixels
        A file whose header claims more is refused before anything is decoded. Default: the environment variable
        ``NORMALMESH_MAX_PIXELS``, else two billion. What memory cannot hold is refused, too.

    Returns
    -------
    NormalMap
        Unit normals, mask, camera, and the repairs that were necessary.

    Raises
    ------
    NormalMeshError
        The file cannot be read or is not a normal map; the message names the file and the reason.

    Warns
    -----
    NormalMeshWarning
        Normals were estimated from a relightable image; floats were taken as [0, 1]; an alpha channel was ignored; the
        data contradict the convention, or leave it open; normals were repaired; the principal point of the camera looks
        swapped, or lies outside the image.

    Examples
    --------
    >>> normal_map = nm.read_normal_map("normals.png", mask="mask.png", camera="K.txt")
    >>> normal_map = nm.read_normal_map("normals.png", convention="directx")  # doctest: +SKIP
    """
    is_file = isinstance(path, str | PathLike)
    name = checked_path(path) if is_file else NAME
    if variable is not None and not isinstance(variable, str):
        raise NormalMeshError(f"variable must be the name of an array or a layer, not {repr_for_error(variable)}")
    alpha, stated = checked_alpha(alpha), checked_convention(convention)
    camera = own_camera(name) if camera is None and is_file else camera
    ready = None if callable(camera) else camera_from(camera)
    with limited_pixels(max_pixels):
        array = read_array(name, variable) if is_file else _given_normals(path, variable)
        decoded = decode_in_memory(array, mask, alpha)
        shape = array.size
        del array
    camera = ready or camera_from(camera(shape) if callable(camera) else camera)
    question_camera(camera, shape)
    return normal_map_of(decoded, camera, chosen_convention(name, decoded.diagnosis(camera), stated))


def decode_in_memory(array: WindowedArray, mask: str | PathLike[str] | ArrayLike | None, alpha: Alpha) -> DecodedMap:
    """Return all vectors of stored normals, given a mask as for :func:`read_normal_map`."""
    return decode_map(array, chosen_mask(array, mask, in_memory=True), alpha, in_memory=True)


def normal_map_of(decoded: DecodedMap, camera: Camera, convention: Convention) -> NormalMap:
    """Return the map of vectors in memory, which are changed."""
    windows, mask = decoded.windows, decoded.mask
    assert isinstance(windows, HeldWindows)
    windows.turn(convention)
    try:
        return NormalMap(windows.vectors, None if mask is None else mask.whole(), camera)  # type: ignore[arg-type]
    except NormalMeshError as error:
        raise unusable(decoded.path, str(error)) from error


def read_foreground(
    path: str | PathLike[str], mask: str | PathLike[str] | None = None, alpha: Alpha = "auto", most: float = math.inf
) -> tuple[Bool, bool]:
    """Return the foreground (H, W) of a file, and whether it is known.

    If a mask is given, it is all that is read, besides the header of the file: pixels of it that hold no usable normal
    are counted, too. Without one, of an image of more than ``most`` pixels only the header is read; its foreground is
    unknown, and all pixels are returned, which take no memory.
    """
    path = Path(path)
    shape = read_size(path)
    if mask is not None:
        given = open_mask(checked_path(mask, "mask"))
        return mask_of_array(given, ArrayMask, shape).whole(), True
    if math.prod(shape) > most:
        return np.broadcast_to(np.bool_(True), shape), False
    windows = decode_in_memory(read_array(path), None, alpha).windows
    return windows.read(whole_window(shape))[1], True


def read_size(path: Path) -> tuple[int, int]:
    """Return rows and columns of the normals in a file of any format, from its header."""
    name = file_format(path)
    if name in IMAGE_FORMATS:
        return read_image_size(path, name)
    if name == "EXR":
        return read_exr_size(path)
    if name in ("NPZ", "MAT"):
        return read_array_size(path, name)
    if name in RTI_FORMATS:
        return read_rti_size(path, str(name))
    return read_array(path).size  # of an array that is mapped into memory; or an error


def camera_from(camera: Camera | str | PathLike[str] | None) -> Camera:
    """Return the camera given, the one of a matrix file, or by default :class:`Orthographic`."""
    if camera is None:
        return Orthographic()
    if isinstance(camera, str | PathLike):
        return Perspective.from_file(checked_path(camera, "camera"))
    return checked_camera(camera, "Orthographic(...), Perspective(...) or a file")


def own_camera(path: Path) -> Camera | None:
    """Return the camera that an NPZ file holds besides its normals, or None."""
    if file_format(path) != "NPZ":
        return None
    held = read_npz_camera(path)
    try:
        if CAMERA_MATRIX in held:
            return Perspective.from_matrix(held[CAMERA_MATRIX])
        return Orthographic(held[PIXEL_SIZE].item()) if PIXEL_SIZE in held else None
    except NormalMeshError as error:
        raise unusable(path, str(error)) from error


def chosen_mask(
    array: WindowedArray, mask: str | PathLike[str] | ArrayLike | None, in_memory: bool
) -> ArrayMask | PackedMask | None:
    """Return the mask given as an array or a file, else the one that the file of the normals holds, or None."""
    builder = ArrayMask if in_memory else MaskPacker
    if isinstance(mask, str | PathLike):
        return mask_of_array(open_mask(checked_path(mask, "mask"), not in_memory), builder, array.size)
    if mask is not None:
        given = builder(array.size)
        given.put(whole_window(array.size), checked_mask(mask, array.size))
        return given.done()
    own = array.own_mask()
    return None if own is None else mask_of_array(own, builder, array.size)


def read_array(path: Path, variable: str | None = None) -> WindowedArray:
    """Return the normals as stored in a file of any format, read whole; those of an NPY file stay on disk."""
    name = file_format(path)
    if variable is not None and name in (*IMAGE_FORMATS, *RTI_FORMATS, "NPY"):
        raise unusable(path, f"a {name} file holds one image: variable={variable!r} cannot be chosen from it")
    if name in IMAGE_FORMATS:
        array: WindowedArray = ArrayInMemory.of_image(path, read_image(path, name))
    elif name == "EXR":
        array = ArrayInMemory(path, read_exr(path, variable))
    elif name == "NPY":
        array = NpyWindows(path)
    elif name in ("NPZ", "MAT"):
        values, mask = (read_npz if name == "NPZ" else read_mat)(path, variable)
        array = ArrayInMemory(path, values, mask=mask)
    elif name in RTI_FORMATS:
        array = ArrayInMemory(path, read_rti_normals(path))
    else:
        raise unknown_format(path, name, READABLE)
    return checked_normals(array)


def checked_normals(array: WindowedArray) -> WindowedArray:
    """Return an array that may hold normals, or raise :class:`NormalMeshError`."""
    path, channels = array.path, array.shape[2]
    if array.colour == "grey" and is_height_png(path):
        raise unusable(path, "holds heights, not normals: normalmesh view shows them, from_heights gives their normals")
    if array.colour == "array" and channels not in (3, 4):
        shape = array.size if channels == 1 else array.shape
        heights = "; from_heights makes a map of heights" if channels == 1 else ""
        raise unusable(path, f"normals must have the shape (rows, columns, 3), not {shape_text(shape)}{heights}")
    if array.colour not in ("RGB", "array") or channels not in (3, 4):
        heights = ", or give it to from_heights if it holds heights" if array.colour == "grey" else ""
        raise unusable(path, f"is a {array.colour} image; a normal map needs three channels: save it as RGB{heights}")
    return array


def _given_normals(given: object, variable: str | None) -> WindowedArray:
    if variable is not None:
        raise NormalMeshError(f"variable={variable!r} chooses from a file, but normal_map is an array: give that one")
    return checked_normals(ArrayInMemory(NAME, given_array(given)))


def checked_convention(convention: str | Convention) -> Convention | None:
    """Return the convention that is stated; None if the data are to decide."""
    automatic = isinstance(convention, str) and convention.strip().lower() == "auto"
    return None if automatic else Convention.parse(convention)


def chosen_convention(path: Path, diagnosis: Diagnosis, stated: Convention | None) -> Convention:
    """Return the stated convention, with a warning if the data contradict it; else the likely one."""
    likely = likely_convention(diagnosis)
    if stated is None:
        if diagnosis.axes is None:
            warn_caller(
                f"{path_text(path)}: the data do not determine the convention; {likely.name} was assumed. "
                "State it as convention=…"
            )
        return likely
    if diagnosis.strongly_excludes(stated):
        warn_caller(
            f"{path_text(path)}: the data contradict the convention {stated.name}; {likely.name} fits. "
            f"Read it with convention={likely.name!r} or 'auto'"
        )
    return stated


def likely_convention(diagnosis: Diagnosis) -> Convention:
    """Return the convention that the data show; if several remain, the most common of them."""
    if diagnosis.axes is not None:
        return Convention.parse(diagnosis.axes)
    left = [Convention.parse(candidate) for candidate in diagnosis.candidates]
    common = [Convention.parse(name) for name in NAMED]
    return next((convention for convention in common if convention in left), (left or common)[0])
