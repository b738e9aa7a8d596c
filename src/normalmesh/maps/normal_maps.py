"""Reading normal maps: file → stored values → vectors → the project's frame → :class:`NormalMap`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_path
from normalmesh.array_types import Bool, Float32
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text, repr_for_error, shape_text
from normalmesh.files.arrays import (
    CAMERA_MATRIX,
    PIXEL_SIZE,
    read_array_size,
    read_mat,
    read_npy,
    read_npz,
    read_npz_camera,
)
from normalmesh.files.exr import read_exr, read_exr_size
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.height_png import is_height_png
from normalmesh.files.images import IMAGE_FORMATS, read_image, read_image_size
from normalmesh.files.masks import read_mask
from normalmesh.files.size_limits import limited_pixels
from normalmesh.maps.alpha import Alpha, alpha_mask, checked_alpha
from normalmesh.maps.decoding import StoredNormals, decode
from normalmesh.maps.given_normals import NAME, given_array
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.conventions import NAMED, Convention
from normalmesh.normals.normal_map import NormalMap, checked_mask
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.normals.principal_point import question_camera
from normalmesh.photometric.rti import RTI_FORMATS, read_rti_normals, read_rti_size
from normalmesh.runtime.row_blocks import row_blocks

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
    from normalmesh.normals.diagnosis import diagnose

    is_file = isinstance(path, str | PathLike)
    name = checked_path(path) if is_file else NAME
    if variable is not None and not isinstance(variable, str):
        raise NormalMeshError(f"variable must be the name of an array or a layer, not {repr_for_error(variable)}")
    alpha = checked_alpha(alpha)
    automatic = isinstance(convention, str) and convention.strip().lower() == "auto"
    stated = None if automatic else Convention.parse(convention)
    camera = own_camera(name) if camera is None and is_file else camera
    ready = None if callable(camera) else camera_from(camera)
    with limited_pixels(max_pixels):
        stored = read_stored(name, variable) if is_file else _stored_in_memory(path, variable)
        shape, inside = stored.shape, chosen_mask(name, stored, mask, alpha)
        decoded = decode(name, stored, inside)
        del stored
    camera = ready or camera_from(camera(shape) if callable(camera) else camera)
    question_camera(camera, shape)
    diagnosis = diagnose(decoded.vectors, decoded.foreground, camera)
    to_project(decoded.vectors, chosen_convention(name, diagnosis, stated))
    try:
        return NormalMap(decoded.vectors, inside, camera)  # type: ignore[arg-type]  # None: no mask
    except NormalMeshError as error:
        raise unusable(name, str(error)) from error


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
        return _mask_of_file(given := checked_path(mask, "mask"), read_mask(given), shape), True
    if math.prod(shape) > most:
        return np.broadcast_to(np.bool_(True), shape), False
    stored = read_stored(path)
    return decode(path, stored, chosen_mask(path, stored, None, alpha)).foreground, True


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
    return read_stored(path).shape  # of an array that is mapped into memory; or an error


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
    path: Path, stored: StoredNormals, mask: str | PathLike[str] | ArrayLike | None = None, alpha: Alpha = "auto"
) -> Bool | None:
    """Return the mask (H, W) given as an array or a file, else that of the normals' own file, or None."""
    if isinstance(mask, str | PathLike):
        return _mask_of_file(given := checked_path(mask, "mask"), read_mask(given), stored.shape)
    if mask is not None:
        return checked_mask(mask, stored.shape)
    own = stored.mask
    if own is None:
        own = alpha_mask(path, stored.alpha, stored.maximum, alpha, lambda: decode(path, stored, None).foreground)
    return None if own is None else _mask_of_file(path, own, stored.shape)


def _mask_of_file(path: Path, mask: NDArray[np.generic], shape: tuple[int, int]) -> Bool:
    try:
        return checked_mask(mask, shape)
    except NormalMeshError as error:
        raise unusable(path, str(error)) from error


def read_stored(path: Path, variable: str | None = None) -> StoredNormals:
    """Return the normals as stored in a file of any format."""
    name = file_format(path)
    if variable is not None and name in (*IMAGE_FORMATS, *RTI_FORMATS, "NPY"):
        raise unusable(path, f"a {name} file holds one image: variable={variable!r} cannot be chosen from it")
    if name in IMAGE_FORMATS:
        return _stored_image(path, name)
    if name == "EXR":
        (first, second, third), alpha = read_exr(path, variable)
        return StoredNormals((first, second, third), None, alpha=alpha)
    if name == "NPY":
        return _stored_array(path, read_npy(path), None)
    if name == "NPZ":
        return _stored_array(path, *read_npz(path, variable))
    if name == "MAT":
        return _stored_array(path, *read_mat(path, variable))
    if name in RTI_FORMATS:
        return StoredNormals(_three_channels(read_rti_normals(path)), None)
    raise unknown_format(path, name, READABLE)


def _stored_image(path: Path, name: str) -> StoredNormals:
    image = read_image(path, name)
    if image.colour == "grey" and is_height_png(path):
        raise unusable(path, "holds heights, not normals: normalmesh view shows them, from_heights gives their normals")
    if image.colour != "RGB" or image.values.shape[2] not in (3, 4):
        heights = ", or give it to from_heights if it holds heights" if image.colour == "grey" else ""
        raise unusable(path, f"is a {image.colour} image; a normal map needs three channels: save it as RGB{heights}")
    return StoredNormals(_three_channels(image.values), image.maximum, alpha=image.alpha)


def _stored_array(path: Path, array: NDArray[np.generic], mask: NDArray[np.generic] | None) -> StoredNormals:
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.size == 0:
        heights = "; from_heights makes a map of heights" if array.ndim == 2 else ""
        raise unusable(path, f"normals must have the shape (rows, columns, 3), not {shape_text(array.shape)}{heights}")
    maximum = None
    # The range of wider integers is seldom used: their maximum is unknown.
    if array.dtype.kind in "ui" and array.dtype.itemsize <= 2:
        maximum = int(2 ** (8 * array.dtype.itemsize - (array.dtype.kind == "i")) - 1)
    return StoredNormals(_three_channels(array), maximum, mask, array[..., 3] if array.shape[2] == 4 else None)


def _stored_in_memory(given: object, variable: str | None) -> StoredNormals:
    if variable is not None:
        raise NormalMeshError(f"variable={variable!r} chooses from a file, but normal_map is an array: give that one")
    return _stored_array(NAME, given_array(given), None)


def _three_channels(
    values: NDArray[np.generic],
) -> tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.generic]]:
    return values[..., 0], values[..., 1], values[..., 2]


def chosen_convention(path: Path, diagnosis: Diagnosis, stated: Convention | None) -> Convention:
    """Return the stated convention, with a warning if the data contradict it; else the likely one."""
    likely = likely_convention(diagnosis)
    if stated is None:
        if diagnosis.axes is None:
            warnings.warn(
                f"{path_text(path)}: the data do not determine the convention; {likely.name} was assumed. "
                "State it as convention=…",
                NormalMeshWarning,
                stacklevel=3,
            )
        return likely
    if diagnosis.strongly_excludes(stated):
        warnings.warn(
            f"{path_text(path)}: the data contradict the convention {stated.name}; {likely.name} fits. "
            f"Read it with convention={likely.name!r} or 'auto'",
            NormalMeshWarning,
            stacklevel=3,
        )
    return stated


def likely_convention(diagnosis: Diagnosis) -> Convention:
    """Return the convention that the data show; if several remain, the most common of them."""
    if diagnosis.axes is not None:
        return Convention.parse(diagnosis.axes)
    left = [Convention.parse(candidate) for candidate in diagnosis.candidates]
    common = [Convention.parse(name) for name in NAMED]
    return next((convention for convention in common if convention in left), (left or common)[0])


def to_project(vectors: Float32, convention: Convention) -> None:
    """Turn the file's channels (H, W, 3) into the project's frame, in place: a copy would be a third of all memory."""
    if convention == Convention.parse("opengl"):
        return
    for rows in row_blocks(vectors.shape[:2]):
        vectors[rows] = convention.to_project(vectors[rows])
