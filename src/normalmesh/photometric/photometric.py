"""Photometric stereo: normals and albedo from photographs of one view under different lights.

A matt surface reflects I = ρ ⟨n, l⟩ of a distant light l (Woodham 1980). With three lights or more, ρn is the least
squares solution, pixel by pixel; shadows and highlights are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero, checked_path, checked_positive
from normalmesh.array_types import Bool, Float, Float32
from normalmesh.errors import NormalMeshError, path_text, repr_for_error, shape_text, warn_caller
from normalmesh.files.masks import read_mask
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.normal_map import NormalMap, checked_mask
from normalmesh.normals.orthographic import Orthographic
from normalmesh.photometric.lights import read_light_list, read_rows
from normalmesh.photometric.matt_surface import COPLANAR, PhotographedSurface, fit, spread, trim
from normalmesh.photometric.photographs import Photograph, are_files, found_files, natural_key, photographs, with_lights
from normalmesh.photometric.photometric_checks import doubts_about_fit, doubts_about_images, doubts_about_lights
from normalmesh.runtime.row_blocks import row_blocks


@dataclass(frozen=True, eq=False)
class PhotometricStereo:
    """Normals and albedo of a surface, from photographs.

    Attributes
    ----------
    normal_map : NormalMap
        Its mask leaves out pixels that are lit by too few lights.
    albedo : (H, W) or (H, W, 3) float32
        Share of the light that is reflected, by channel; zero outside the mask. For integer images, 1 is full white
        under a light of intensity 1.
    residual : (H, W) float32
        Root mean square residual over the images used, in the unit of the albedo; zero outside the mask.
        Large where the surface is not matt, or in the shadow of another part.
    """

    normal_map: NormalMap
    albedo: Float32
    residual: Float32

    def __repr__(self) -> str:
        inside = self.residual[self.normal_map.mask]
        return f"PhotometricStereo({self.normal_map!r}, median residual {np.median(inside):.3g})"


def photometric_stereo(
    images: ArrayLike | Sequence[str | PathLike[str]] | str | PathLike[str],
    lights: ArrayLike | str | PathLike[str],
    mask: ArrayLike | str | PathLike[str] | None = None,
    *,
    intensities: ArrayLike | str | PathLike[str] | None = None,
    darkest: float = 0.0,
    brightest: float = 0.0,
    saturation: float | None = None,
    convention: str | Convention = "opengl",
    camera: Camera | None = None,
) -> PhotometricStereo:
    """Compute normals and albedo from photographs of one view under distant lights, by least squares.

    Values must be proportional to light: raw or linear images, not photographs with a gamma curve. At each pixel,
    images that are black, clipped or NaN there do not count; ``darkest`` and ``brightest`` leave out more: cast shadows
    are dark but seldom black, highlights bright but seldom clipped. Images are kept in memory as they are stored; all
    else is done in blocks of rows.

    Parameters
    ----------
    images
        K ≥ 3 of them: (K, H, W) or (K, H, W, 3), a list of arrays, or a list of files: PNG, JPEG, TIFF, TGA, BMP or
        WebP. A folder, or a pattern such as ``"photos/*.png"``, is a list in natural order: 1, 2, 10. Normals come from
        the mean of the channels.
    lights
        (K, 3) directions from the object to the lights, of any length, in the order of the images, or a file for
        :func:`read_lights`. If it has names (``.lp``), each file gets the light with its name, in whatever folder and
        with whatever suffix; of a folder or a pattern, files without a light are left out.
    mask
        (H, W), nonzero = foreground, or an image file; default: all pixels.
    intensities
        (K,) or (K, 3) brightness of the lights, by channel, or a text file with one or three numbers a line; default 1.
    darkest, brightest
        Shares of the images, in order of brightness at each pixel, that do not count there, such as 0.3 and 0.1. At
        least three images are left.
    saturation
        From this value on, as stored, a channel is clipped; default: the largest value that the integers of files or
        arrays can hold.
    convention
        Axes of ``lights``; default: x right, y up, z towards the viewer.
    camera
        Of the normal map; default :class:`Orthographic`.

    Returns
    -------
    PhotometricStereo
        Normal map, albedo and residual.

    Raises
    ------
    NormalMeshError
        Fewer than three images, lights in one plane, or sizes that do not fit together.

    Warns
    -----
    NormalMeshWarning
        Pixels that fewer than three independent lights reach have left the mask; lights are nearly in one plane, or
        fit far better in another order; images do not fit a matt surface under these lights, have a gamma curve, an
        added constant or clipped values; the normals contradict the axes of the lights; lights have no photograph.

    Examples
    --------
    >>> found = nm.photometric_stereo("photographs/*.png", "light_directions.txt", "mask.png")
    >>> surface = nm.reconstruct(found.normal_map)
    """
    if camera is not None:
        checked_camera(camera)
    images, given, natural = _paired(images, lights)
    taken = photographs(images)
    directions = _checked_lights(given, len(taken), Convention.parse(convention))
    strength = _checked_intensities(intensities, len(taken), taken[0].values.shape[2])
    limits = _limits(saturation, taken)
    trimmed = _trimmed(darkest, brightest, len(taken))
    shape = taken[0].values.shape[:2]
    given_surface = PhotographedSurface(taken, directions, strength, limits, _checked_mask(mask, shape), natural)
    foreground = given_surface.foreground
    normals, residual = np.zeros((*shape, 3), np.float32), np.zeros(shape, np.float32)
    albedo: Float32 = np.zeros(taken[0].values.shape, np.float32)
    for rows in row_blocks((shape[0], shape[1] * len(taken))):
        inside = foreground[rows]
        if not inside.any():
            continue
        values, usable = given_surface.observations(rows)
        trim(usable, values.mean(axis=2), *trimmed)
        normals[rows][inside], albedo[rows][inside], residual[rows][inside] = fit(values, usable, directions)
    found = np.asarray(normals.any(axis=2))
    _report(int(np.count_nonzero(foreground)), int(np.count_nonzero(found)))
    normal_map = _normal_map(normals, found, Orthographic() if camera is None else camera)
    for doubt in (
        *doubts_about_lights(directions),
        *doubts_about_images(given_surface),
        *doubts_about_fit(normal_map, albedo, residual),
    ):
        warn_caller(doubt)
    return PhotometricStereo(normal_map, albedo[..., 0] if albedo.shape[-1] == 1 else albedo, residual)


def _paired(
    images: ArrayLike | Sequence[str | PathLike[str]] | str | PathLike[str], lights: ArrayLike | str | PathLike[str]
) -> tuple[ArrayLike | Sequence[str | PathLike[str]], NDArray[np.generic], tuple[int, ...] | None]:
    """Return images and lights in one order, and the natural order of the files if that is another one."""
    names = None
    if isinstance(lights, str | PathLike):
        directions, names = read_light_list(source := checked_path(lights, "lights"))
    else:
        directions = checked_array(lights, "lights")
    chosen = not isinstance(images, str | PathLike)
    if isinstance(images, str | PathLike):
        images = found_files(checked_path(images, "images"))
    if not are_files(images):
        return images, directions, None
    files: list[str | PathLike[str]] = list(images)  # type: ignore[arg-type]
    if names is not None:
        matched = with_lights(files, names, path_text(source), chosen)
        if matched is not None:
            return matched[0], directions[matched[1]], None
        warn_caller(
            f"{path_text(source)} names other files, such as {names[0]!r}, than the photographs, such as "
            f"{path_text(files[0])}; lights were taken in the order of the photographs"
        )
    order = tuple(sorted(range(len(files)), key=lambda place: natural_key(str(files[place]))))
    return files, directions, None if order == tuple(range(len(files))) else order


def _normal_map(normals: Float32, mask: Bool, camera: Camera) -> NormalMap:
    try:
        return NormalMap(normals, mask, camera)
    except NormalMeshError as error:
        raise NormalMeshError(
            "all normals point away from the viewer; lights must point from the object to the lights, with z towards "
            "the viewer: negate them, or give their axes as convention='opencv' or another one"
        ) from error


def _checked_lights(lights: NDArray[np.generic], count: int, convention: Convention) -> Float:
    """Return unit directions (K, 3) in the project's frame, or raise :class:`NormalMeshError`."""
    if lights.ndim != 2 or lights.shape[1] != 3 or lights.dtype.kind not in "fui" or not np.all(np.isfinite(lights)):
        raise NormalMeshError(
            f"lights must be finite numbers of the shape ({count}, 3), not {lights.dtype} {shape_text(lights.shape)}"
        )
    if len(lights) != count:
        raise NormalMeshError(f"there are {count} images but {len(lights)} lights; give one direction for each image")
    if count < 3:
        raise NormalMeshError(f"photometric stereo needs at least three images under different lights, not {count}")
    directions = convention.to_project(lights.astype(np.float64)).astype(np.float64, copy=False)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    if not lengths.all():
        raise NormalMeshError(f"light {int(np.argmin(lengths))} has the direction 0 0 0; it must point to the light")
    directions /= lengths
    if spread(directions.T @ directions) <= COPLANAR:
        raise NormalMeshError(
            f"the {count} light directions lie in one plane, so that normals are not determined; "
            "add an image with a light outside that plane"
        )
    return directions


def _checked_intensities(given: ArrayLike | str | PathLike[str] | None, count: int, channels: int) -> Float:
    """Return positive numbers (K, 1 or channels), or raise :class:`NormalMeshError`."""
    if given is None:
        return np.ones((count, 1))
    if isinstance(given, str | PathLike):
        given = read_rows(checked_path(given, "intensities"), (1, 3), "one number or three: the intensity of a light")
    array = checked_array(given, "intensities", "positive numbers")
    strength = array[:, None] if array.ndim == 1 else array
    if strength.ndim != 2 or len(strength) != count or strength.shape[1] not in (1, 3):
        raise NormalMeshError(
            f"intensities must have the shape ({count},) or ({count}, 3), one row for each image, "
            f"not {shape_text(array.shape)}"
        )
    if array.dtype.kind not in "fui" or not np.all(np.isfinite(strength) & (strength > 0)):
        raise NormalMeshError("intensities must be positive numbers")
    # For grey images of coloured lights, the mean is what a grey sensor sees.
    return strength.mean(axis=1, keepdims=True) if channels == 1 else strength.astype(np.float64)


def _limits(saturation: float | None, taken: list[Photograph]) -> list[float]:
    """Return the value from which on each photograph is clipped."""
    if saturation is not None:
        return [checked_positive(saturation, "saturation")] * len(taken)
    return [np.inf if shot.maximum is None else float(shot.maximum) for shot in taken]


def _trimmed(darkest: float, brightest: float, count: int) -> tuple[int, int]:
    """Return how many images to leave out at both ends, or raise :class:`NormalMeshError`."""
    for name, share in (("darkest", darkest), ("brightest", brightest)):
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= share < 1:
            raise NormalMeshError(
                f"{name} must be a share of the images from 0 to below 1, not {repr_for_error(share)}"
            )
    if darkest + brightest >= 1:
        raise NormalMeshError(f"darkest and brightest leave no image: {darkest} + {brightest} must be below 1")
    return int(darkest * count), int(brightest * count)


def _checked_mask(given: ArrayLike | str | PathLike[str] | None, shape: tuple[int, ...]) -> Bool:
    if given is None:
        return np.ones(shape, np.bool_)
    mask = checked_nonzero(read_mask(checked_path(given, "mask")) if isinstance(given, str | PathLike) else given)
    if mask.shape != shape:
        raise NormalMeshError(
            f"mask is {shape_text(mask.shape)} but images are {shape_text(shape)}; they must be of one view"
        )
    return checked_mask(mask, shape)


def _report(foreground: int, found: int) -> None:
    if found == 0:
        raise NormalMeshError(
            "no pixel is lit by three independent lights: images are black or clipped; "
            "check that images, mask and saturation belong together"
        )
    if found < foreground:
        warn_caller(
            f"{foreground - found} of {foreground} pixels see fewer than three independent lights and left the mask"
        )
