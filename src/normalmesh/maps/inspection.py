"""Inspecting the file of a normal map: storage, mask, normals, and the convention that they follow."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import Bool
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.errors import NormalMeshWarning, path_text
from normalmesh.files.formats import file_format
from normalmesh.files.size_limits import limited_pixels
from normalmesh.integration.expected_uncertainty import expected_uncertainty
from normalmesh.maps.alpha import Alpha
from normalmesh.maps.cameras import CameraLike, ExifLens, read_exif_lens
from normalmesh.maps.normal_maps import decode_file, normal_map_of
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import NAMED, Convention, checked_convention, likely_convention
from normalmesh.normals.diagnosis import Diagnosis
from normalmesh.normals.noise import closure_error, component_noise
from normalmesh.normals.repairs import Repairs
from normalmesh.photometric.rti_model import RTI_FORMATS

if TYPE_CHECKING:
    from normalmesh.files.windowed_arrays import WindowedArray
    from normalmesh.maps.background import Colour
    from normalmesh.maps.map_decoding import DecodedMap


@dataclass(frozen=True)
class MaskStatistics:
    """Statistics of a mask."""

    pixels: int
    foreground: int
    components: int  # 4-connected parts of the foreground
    holes: int  # parts of the background that are surrounded by foreground
    largest: int  # pixels of the largest component
    border: int  # foreground pixels on the border of the image, where the surface is cut off

    @classmethod
    def of(cls, mask: Bool) -> MaskStatistics:
        from scipy import ndimage

        labels, components = ndimage.label(mask, output=np.int32)
        largest = int(np.bincount(labels.ravel())[1:].max(initial=0))
        # Foreground is 4-connected, so background is 8-connected.
        labels, backgrounds = ndimage.label(~mask, structure=np.ones((3, 3)), output=np.int32)
        outside = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
        foreground = int(np.count_nonzero(mask))
        border = foreground - int(np.count_nonzero(mask[1:-1, 1:-1]))
        return cls(mask.size, foreground, components, backgrounds - int(np.count_nonzero(outside)), largest, border)


@dataclass(frozen=True, eq=False)
class Inspection:
    """The results of :func:`inspect_file`."""

    path: Path
    format: str  # detected from the first bytes
    shape: tuple[int, int]  # rows and columns
    kind: str  # the stored channels and the type of their numbers, such as "3 channels and alpha, 16 bit"
    mask_source: str  # where the mask is from
    mask: MaskStatistics
    counts: MaskCounts
    repairs: Repairs
    camera: Camera
    exif_lens: ExifLens | None  # of a photograph; the camera does not use it unless asked to
    diagnosis: Diagnosis  # which convention the channels of the file follow
    stated: Convention | None  # the convention asked for, None for ``auto``, and
    read_as: Convention  # the one that the figures are for: the likely one where the data contradict the stated one
    noise: float  # degrees that half of the foreground does not exceed, and
    largest_noise: float  # of the noisiest component, see :func:`normalmesh.normals.noise.component_noise`
    closure_error: float  # pixels, see :func:`normalmesh.normals.noise.closure_error`
    height_deviation: float  # pixels, of :func:`.expected_uncertainty` with the default compression
    warnings: tuple[str, ...]  # of reading the file

    @property
    def recommendation(self) -> str:
        """What to do with the file, in one line."""
        found = self.diagnosis
        if found.srgb:
            return "undo the sRGB curve (gamma) first: save the normals as linear values"
        if found.world_space:
            return "state the right --camera, or turn normals of world or object space into the camera's frame first"
        if found.axes is None:
            return self._undecided()
        seen = Convention.parse(found.axes)
        why = "the data agree" if self.stated == seen else "the data show it"
        return f"read it with --convention {seen.name}: {why}{self._objection()}"

    def _undecided(self) -> str:
        """Return advice on the convention: that of the format, the common one that fits, or the choice."""
        left = [Convention.parse(axes).name for axes in self.diagnosis.candidates]
        common = [name for name in left if name in NAMED]
        if self.format in RTI_FORMATS and "opengl" in left:
            return f"read it as it is: {self.format} files state their axes, opengl"
        if len(common) == 1:
            others = ", ".join(name for name in left if name not in common)
            why = f"the only common one that fits; {others} would, too"
            return f"read it with --convention {common[0]}: {why}{self._objection()}"
        return f"ask where the file is from: {', '.join(left)} all fit; here it was read as {self.read_as.name}"

    def _objection(self) -> str:
        if self.stated is None or self.stated.axes in self.diagnosis.candidates:
            return ""
        return f", and speak against {self.stated.name}" if self.diagnosis.axes else f"; {self.stated.name} does not"


def inspect_file(
    path: str | PathLike[str],
    mask: str | PathLike[str] | None = None,
    camera: CameraLike = None,
    convention: str | Convention = "opengl",
    *,
    alpha: Alpha = "auto",
    max_pixels: float | None = None,
) -> Inspection:
    """Inspect the file of a normal map; arguments as for :func:`read_normal_map`."""
    path = Path(path)
    stated = checked_convention(convention)
    with limited_pixels(max_pixels), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NormalMeshWarning)
        array, decoded, view = decode_file(path, mask, camera, alpha)
        kind, source = _kind(array), _mask_source(array, decoded, mask)
        del array  # as large as the file, decompressed
        diagnosis = decoded.diagnosis(view)
        read_as = likely_convention(diagnosis)
        if stated is not None and not diagnosis.strongly_excludes(stated):
            read_as = stated
        normal_map = normal_map_of(decoded, view, read_as)
    del decoded  # as large as the map itself
    noise = component_noise(normal_map)
    vertices = StoppingRule().expected_vertices(normal_map.foreground)
    return Inspection(
        path=path,
        format=str(file_format(path)),
        shape=normal_map.shape,
        kind=kind,
        mask_source=source,
        mask=MaskStatistics.of(normal_map.mask),
        counts=MaskCounts.of(normal_map.mask),
        repairs=normal_map.repairs,
        camera=view,
        exif_lens=read_exif_lens(path),
        diagnosis=diagnosis,
        stated=stated,
        read_as=read_as,
        noise=noise.usual.degrees,
        largest_noise=noise.largest.degrees,
        closure_error=closure_error(normal_map, noise),
        height_deviation=max(
            expected_uncertainty(normal_map, each, vertices) for each in (noise.usual, noise.rounding)
        ),
        warnings=tuple(str(each.message) for each in caught if issubclass(each.category, NormalMeshWarning)),
    )


def _kind(array: WindowedArray) -> str:
    kind = str(array.dtype.newbyteorder("="))
    if array.maximum is not None:
        signed = array.dtype.kind == "i"
        kind = f"{array.maximum.bit_length() + signed} bit{', signed' * signed}"
    has_mask = array.own_mask() is not None
    return f"3 channels{' and a mask' if has_mask else ' and alpha' if array.shape[2] == 4 else ''}, {kind}"


def _mask_source(array: WindowedArray, decoded: DecodedMap, mask: str | PathLike[str] | None) -> str:
    """Return where the mask is from, or how the foreground was found without one."""
    if mask is not None:
        return path_text(Path(mask))
    if decoded.mask is not None:
        return "the file itself" if array.own_mask() is not None else "the alpha channel"
    ignored = "; alpha is ignored" if array.shape[2] == 4 else ""
    if decoded.background is None:
        return f"the pixels that hold a normal{ignored}"
    return f"the pixels that differ from the background, {_stored_text(array, decoded.background)}{ignored}"


def _stored_text(array: WindowedArray, colour: Colour) -> str:
    """Return a colour as the file stores it."""
    if array.maximum is None:
        return f"({', '.join(f'{component:.3g}' for component in colour.vector)})"
    signed = array.dtype.kind == "i"
    values = colour.vector * array.maximum if signed else (colour.vector + 1) / 2 * array.maximum
    return f"({', '.join(f'{value:.0f}' for value in values)})"
