"""Normals and albedo from relightable images (RTI): polynomial texture maps and hemispherical harmonics.

The file holds brightness as a smooth function of the light, fitted to photographs that are not in it. The direction
in which this function is largest, which viewers show as the normal, lies far from the normal of a tilted surface: such
functions have no place for the shadow beyond the terminator. Here the function is evaluated under virtual lights, and a
matt surface is fitted to its values, with weights that are proportional to brightness, so that shadows count little.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float, Float32, UInt8
from normalmesh.errors import path_text, warn_caller
from normalmesh.files.formats import file_format, unknown_format
from normalmesh.files.size_limits import limited_pixels
from normalmesh.photometric.matt_surface import normalised, scaled_to_white, solved_systems, to_bytes
from normalmesh.photometric.rti_model import RTI_FORMATS, RTIHeader, RTIModel, read_model
from normalmesh.runtime.row_blocks import row_blocks

#: Number of virtual lights, and their largest angle to the viewing direction in degrees. Towards 90° models extrapolate
#: beyond the photographs of most domes; below 60° slopes of PTM become too flat.
LIGHTS, CONE = 64, 67.0
#: Brightness below which a pixel is black under all lights.
BLACK = 1 / 255
#: Value of :func:`.matt_surface.spread` of the weighted lights, below which a pixel is lit by one light only.
ONE_LIGHT = 27e-9


@dataclass(frozen=True, eq=False)
class RTI:
    """Normals and albedo of a relightable image.

    Attributes
    ----------
    normals : (H, W, 3) float32
        Unit vectors, x right, y up, z towards the viewer; zero where the image is black under all lights.
    albedo : (H, W, 3) float32
        Share of the light that is reflected, red, green, blue; 1 is full white.
    residual : (H, W) float32
        Root mean square difference between the file's function of the light and a matt surface, in the unit of the
        mean albedo. Large in shadows, at highlights, and where a smooth function does not fit a steep surface.
    header : RTIHeader
        Format, size and coefficients of the file.
    """

    normals: Float32
    albedo: Float32
    residual: Float32
    header: RTIHeader

    def texture(self) -> UInt8:
        """Return the albedo as colours (H, W, 3) for :meth:`Surface.save`, the brightest half per cent of it white."""
        return to_bytes(scaled_to_white(self.albedo))

    def __repr__(self) -> str:
        rows, columns = self.header.shape
        return f"RTI({columns} × {rows} pixels, {self.header.format}, {self.header.terms} terms)"


def read_rti(path: str | PathLike[str], *, max_pixels: float | None = None) -> RTI:
    """Read normals and albedo from a relightable image: ``.ptm``, or ``.rti`` with hemispherical harmonics.

    Of PTM files (version 1.2), the formats RGB, LRGB, JPEG_RGB and JPEG_LRGB are read; of RTI files, ``#HSH1.2`` with
    4, 9 or 16 terms. Normals are those of the matt surface that fits the file's function of the light best, under
    virtual lights up to 67° from the viewing direction, weighted by brightness.

    Parameters
    ----------
    path
        The file. Its format is detected from the contents.
    max_pixels
        As for :func:`read_normal_map`.

    Returns
    -------
    RTI
        Normals, albedo, residual and header.

    Raises
    ------
    NormalMeshError
        The file cannot be read, or has another format.
    """
    path = checked_path(path)
    name = file_format(path)
    if name not in RTI_FORMATS:
        raise unknown_format(path, name, "a PTM file (PTM_1.2), or an RTI file of hemispherical harmonics (#HSH1.2)")
    with limited_pixels(max_pixels):
        return _fitted(read_model(path, str(name)))


def read_rti_normals(path: Path) -> Float32:
    """Return the normals (H, W, 3) of a relightable image, with a warning of what they are."""
    found = read_rti(path)
    lit = found.normals.any(axis=2)
    brightness = np.maximum(found.albedo.mean(axis=2), BLACK)
    misfit = float(np.median((found.residual / brightness)[lit])) if lit.any() else 0.0
    warn_caller(
        f"{path_text(path)}: normals are estimated from a smooth fit to photographs ({found.header.format}), which "
        f"differs from a matt surface by {100 * misfit:.1f} % (median). Steep slopes, shadows and highlights bias "
        "them by some degrees, and photographs with a gamma curve flatten slopes by a quarter; "
        "if you have the photographs, normalmesh photometric is more accurate"
    )
    return found.normals


def _fitted(model: RTIModel) -> RTI:
    """Return the matt surface of a model, in blocks of rows."""
    shape = model.header.shape
    normals, albedo = np.empty((*shape, 3), np.float32), np.empty((*shape, 3), np.float32)
    residual = np.empty(shape, np.float32)
    lights = virtual_lights()
    evaluated = model.basis(lights).T
    channels = len(model.coefficients)
    for rows in row_blocks((shape[0], shape[1] * LIGHTS)):
        bytes_ = model.coefficients[:, rows].reshape(channels, -1, model.header.terms)
        values = np.maximum((bytes_ * model.scale + model.offset) @ evaluated, 0)
        vectors, reflected, missed = fit_matt(values, lights)
        if model.colour is not None:
            colour = model.colour[rows].reshape(-1, 3) / 255
            reflected, missed = reflected * colour, missed * colour.mean(axis=1)
        part = normals[rows].shape
        normals[rows], albedo[rows] = vectors.reshape(part), np.broadcast_to(reflected, vectors.shape).reshape(part)
        residual[rows] = missed.reshape(part[:2])
    return RTI(normals, albedo, residual, model.header)


def fit_matt(values: Float, lights: Float) -> tuple[Float, Float, Float]:
    """Fit ρ ⟨n, l⟩ to values (channels, P, K) under lights (K, 3), weighted by brightness.

    Returns normals (P, 3), zero where all values are black, albedo (P, channels), and the root mean square residual
    (P,) with the same weights.
    """
    grey = values.mean(axis=0)
    scaled = solved_systems(grey, grey * grey, lights, ONE_LIGHT)
    scaled[grey.max(axis=1) <= BLACK] = 0
    lit = np.asarray(scaled.any(axis=1))
    normals = normalised(scaled)
    shading = normals @ lights.T
    weight = np.maximum((grey * shading**2).sum(axis=1), 1e-30)
    albedo = np.maximum(((grey * shading) * values).sum(axis=2) / weight, 0).T
    total = np.maximum(grey.sum(axis=1), 1e-30)
    residual = np.sqrt((grey * (grey - scaled @ lights.T) ** 2).sum(axis=1) / total)
    return normals, np.where(lit[:, None], albedo, 0), np.where(lit, residual, 0)


def virtual_lights() -> Float:
    """Return unit directions (K, 3), evenly spread over the cone of virtual lights in a spiral."""
    place = np.arange(LIGHTS) + 0.5
    z = 1 - (1 - np.cos(np.radians(CONE))) * place / LIGHTS
    azimuth = np.pi * (1 + np.sqrt(5)) * place
    radius = np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(azimuth), radius * np.sin(azimuth), z], axis=1)
