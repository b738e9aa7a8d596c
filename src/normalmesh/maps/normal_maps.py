"""Reading normal maps: file → stored values → vectors → the project's frame → :class:`NormalMap`."""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_path
from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.files.formats import unusable
from normalmesh.files.georeference import camera_of
from normalmesh.files.masks import read_mask
from normalmesh.files.size_limits import limited_pixels
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps.alpha import Alpha, checked_alpha
from normalmesh.maps.cameras import CameraLike, camera_from, held_camera, question_camera
from normalmesh.maps.map_decoding import DecodedMap, decode_map
from normalmesh.maps.maps_on_disk import MapOnDisk, opened_map
from normalmesh.maps.stored_normals import NAME, MaskLike, array_of, read_array, read_size
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention, checked_convention, chosen_convention
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from PIL.Image import Image

#: Unit of lengths where a file tells the size of a pixel, but not in which unit.
UNKNOWN_UNITS = "units"


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
    stated = checked_convention(convention)
    with limited_pixels(max_pixels):
        decoded, view = decode_file(path, mask, camera, alpha, variable)[1:]  # the stored values leave memory
    return normal_map_of(decoded, view, chosen_convention(decoded.path, decoded.diagnosis(view), stated))


def open_map(
    path: str | PathLike[str], mask: MaskLike, camera: CameraLike, convention: str | Convention, **options: Any
) -> MapOnDisk:
    """Open a normal map on disk: see :meth:`NormalMap.open`."""
    stated, max_pixels = checked_convention(convention), options.pop("max_pixels")
    with limited_pixels(max_pixels):
        array, decoded, view = decode_file(checked_path(path), mask, camera, **options, in_memory=False)
        chosen = chosen_convention(decoded.path, decoded.diagnosis(view), stated)
        ground = array.georeference if camera is None else None
        units = view.default_units if ground is None else ground.units or UNKNOWN_UNITS
        return opened_map(decoded, view, chosen, units)


def decode_file(
    given: str | PathLike[str] | ArrayLike | Image,
    mask: MaskLike,
    camera: CameraLike,
    alpha: Alpha,
    variable: str | None = None,
    in_memory: bool = True,
) -> tuple[WindowedArray, DecodedMap, Camera]:
    """Return the stored normals of a file or an array, their vectors, and the camera: see :func:`read_normal_map`."""
    is_file, alpha = isinstance(given, str | PathLike), checked_alpha(alpha)
    path = checked_path(given) if is_file else NAME
    if variable is not None and not isinstance(variable, str):
        raise NormalMeshError(f"variable must be the name of an array or a layer, not {repr_for_error(variable)}")
    if camera is None and is_file and in_memory:
        camera = held_camera(path)
    view = None if callable(camera) or camera is None else camera_from(camera)
    array = read_array(path, variable, in_memory) if is_file else array_of(given, variable)
    if view is None and array.georeference is not None and not callable(camera):
        view = camera_of(path, array.georeference)
    decoded = decode_map(array, mask, alpha, in_memory)
    view = view or camera_from(camera(array.size) if callable(camera) else camera)
    question_camera(view, array.size)
    return array, decoded, view


def normal_map_of(decoded: DecodedMap, camera: Camera, convention: Convention) -> NormalMap:
    """Return the map of vectors in memory, which are changed."""
    windows, mask = decoded.held, decoded.mask
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
        return read_mask(checked_path(mask, "mask"), shape), True
    if math.prod(shape) > most:
        return np.broadcast_to(np.bool_(True), shape), False
    return decode_map(read_array(path), None, alpha).held.foreground, True
