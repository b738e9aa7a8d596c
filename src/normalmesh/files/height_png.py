"""Heights as grey PNG files of 16 bit, the displacement maps of 3D programs, with the range that makes them lengths.

A value v of 1 … 65535 stands for ``black + (white − black) · v / 65535``; 0 is where there is no surface. Bright is
towards the viewer. The range, its unit and the camera are in a text chunk of the PNG file, and in a JSON file beside
it, because image programs drop text chunks.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float, Floating
from normalmesh.errors import NormalMeshError, path_text, shape_text, warn_caller
from normalmesh.files.atomic import Files
from normalmesh.files.encoding import encode_depth, encode_png
from normalmesh.files.formats import file_format, mapped, read_text, reading, unusable
from normalmesh.files.images import png_chunks, read_image_size
from normalmesh.normals.camera import Camera
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.runtime.row_blocks import row_blocks

#: Largest value of 16 bit.
WHITE = 65535
#: What the description of a range calls itself, and the keyword of its text chunk.
FORMAT, KEYWORD = "normalmesh heights", b"normalmesh"
#: Relative size of differences in height that are none, but the rounding of double precision.
FLAT = 1e-12
#: Suffix of images, and of the file beside one.
PNG, SIDECAR = ".png", ".json"
#: Bytes of a description, at most.
MAX_DESCRIPTION = 100_000


@dataclass(frozen=True)
class HeightRange:
    """What the values of a height image stand for: lengths from ``black`` (value 0) to ``white`` (the largest value).

    Attributes
    ----------
    black, white
        Height (orthographic, towards the viewer) or depth (perspective, away from the viewer: ``white`` is nearer).
        Black itself stands for no surface, and is one step below the lowest height.
    units
        Unit of these lengths and of the pixel size; None if it is not known.
    pixel_size
        Side of a pixel of an orthographic map; None for perspective maps, or if it is not known.
    K
        Camera matrix (3 × 3) of a perspective map, in the convention of :meth:`Perspective.from_matrix`.
    strength
        Factor by which the relief was exaggerated; 1 if heights are as reconstructed.
    """

    black: float
    white: float
    units: str | None = None
    pixel_size: float | None = None
    K: tuple[tuple[float, ...], ...] | None = None
    strength: float = 1.0

    def __post_init__(self) -> None:
        numbers = [self.black, self.white, self.strength, *np.ravel(self.K or ())]
        numbers += [] if self.pixel_size is None else [self.pixel_size]
        plain = (isinstance(number, int | float) and not isinstance(number, bool) for number in numbers)
        if not all(plain) or not all(map(math.isfinite, numbers)):
            raise NormalMeshError("black, white, pixel_size, K and strength of a height range must be finite numbers")
        if self.K is not None and np.shape(self.K) != (3, 3):
            raise NormalMeshError(f"K of a height range must be 3×3, not {shape_text(np.shape(self.K))}")
        if not (self.units is None or isinstance(self.units, str)):
            raise NormalMeshError("units of a height range must be text")
        if self.strength == 0 or not (self.pixel_size is None or self.pixel_size > 0):
            raise NormalMeshError("pixel_size of a height range must be positive, and its strength other than 0")

    @property
    def camera(self) -> Camera | None:
        """The camera that saw the heights; None if neither its matrix nor the size of its pixels is known."""
        if self.K is not None:
            return Perspective.from_matrix(self.K)
        return None if self.pixel_size is None else Orthographic(self.pixel_size)

    @property
    def formula(self) -> str:
        """How to compute lengths from values, in words."""
        what = "height towards the viewer" if self.K is None else "depth away from the viewer"
        unit = "" if self.units is None else f" {self.units}"
        step = self.white - self.black
        length = f"{self.black!r} {'-' if step < 0 else '+'} {abs(step)!r} * value / {WHITE}"
        text = f"{what} = {length}{unit}; value 0: no surface"
        return text if self.strength == 1 else f"{text}; relief multiplied by {self.strength:g}, no measurement"

    def lengths(self, values: NDArray[np.generic], maximum: int) -> Float:
        """Return the lengths (H, W) that values (H, W) up to ``maximum`` stand for, NaN where there is no surface."""
        shares = values.astype(np.float64) / maximum
        return np.where(values == 0, np.nan, self.black + (self.white - self.black) * shares)

    def description(self, image: str, shape: tuple[int, int]) -> dict[str, Any]:
        """Return what the JSON file beside an image holds."""
        head = {"format": FORMAT, "image": image, "columns": shape[1], "rows": shape[0]}
        return {**head, **asdict(self), "formula": self.formula}


def range_of_camera(camera: Camera, units: str | None, strength: float = 1.0) -> HeightRange:
    """Return what is known of the heights that a camera sees; black and white are still to be set."""
    matrix = camera.matrix()
    K = None if matrix is None else tuple(map(tuple, matrix.tolist()))
    return HeightRange(0.0, 0.0, units, camera.pixel_side, K, strength)


def depth_files(path: Path, depth: Floating, about: HeightRange | None = None) -> Files:
    """Encode a depth map (H, W), NaN where there is none, in the format of the path's suffix, with files beside it.

    ``about`` has unit, pixel size and camera, which only PNG holds, with a JSON file beside it; black and white follow
    from the depths. Heights in PNG are rounded to 1/65534 of their range.
    """
    if path.suffix.lower() != PNG:
        return {path: encode_depth(path, depth)}
    about = HeightRange(0.0, 0.0) if about is None else about
    known = np.isfinite(depth)
    if not known.any():
        raise NormalMeshError(f"{path_text(path)}: there is no height to write")
    low = float(depth.min(where=known, initial=np.inf))
    high = float(depth.max(where=known, initial=-np.inf))
    if high - low <= FLAT * max(abs(low), abs(high)):
        low = high
    first, last = (low, high) if about.K is None else (high, low)
    step = (last - first) / (WHITE - 1)
    about = replace(about, black=first - step, white=last)
    values = np.zeros(depth.shape, np.uint16)
    for rows in row_blocks(depth.shape):
        here = known[rows]
        values[rows][here] = np.round((depth[rows][here] - first) / step + 1 if step else WHITE)
    description = about.description(path.name, (depth.shape[0], depth.shape[1]))
    text = json.dumps(description, ensure_ascii=False)
    image = _with_text(encode_png(values), {KEYWORD: text, b"Description": about.formula})
    return {sidecar(path): (json.dumps(description, ensure_ascii=False, indent=2) + "\n").encode(), path: image}


def depth_companions(path: Path) -> list[Path]:
    """Return the files that are written beside a depth map."""
    return [sidecar(path)] if path.suffix.lower() == PNG else []


def is_height_png(path: Path) -> bool:
    """Check whether a file is a PNG whose text describes heights."""
    return path.suffix.lower() == PNG and path.stat().st_size > 0 and _text(path) is not None


def sidecar(path: Path) -> Path:
    """Return the path of the JSON file beside a height image."""
    return path.with_suffix(SIDECAR)


def read_height_range(path: str | PathLike[str]) -> HeightRange | None:
    """Read what the values of a PNG of heights stand for, from its text or the JSON file beside it.

    Parameters
    ----------
    path
        PNG of :meth:`Surface.save_depth`, possibly saved again by another program.

    Returns
    -------
    HeightRange or None
        None if neither describes the heights: values are then plain numbers.

    Raises
    ------
    NormalMeshError
        There is no such file, or a description is damaged.

    Warns
    -----
    NormalMeshWarning
        The image was resized or cropped since: its pixel size and camera are then unknown.
    """
    path = checked_path(path)
    found = stored_range(path)
    if found is None or (found.pixel_size is None and found.K is None):
        return found
    _, content = _description(path) or (path, {})
    described = tuple(side for name in ("rows", "columns") if isinstance(side := content.get(name), int))
    size = read_image_size(path, "PNG")
    if described == size or len(described) < 2:
        return found
    warn_caller(
        f"{path_text(path)} has {shape_text(size)} pixels, but its description is of {shape_text(described)}: it was "
        "resized or cropped, so its pixel size and camera are not known; give them (camera=, --pixel-size)"
    )
    return replace(found, pixel_size=None, K=None)


def stored_range(path: Path) -> HeightRange | None:
    """Return the range as it was written, also if the image was resized or cropped since: heights are still right."""
    if (description := _description(path)) is None:
        return None
    source, content = description
    with reading(source, "a description of heights"):
        given = {name: content[name] for name in HeightRange.__dataclass_fields__ if content.get(name) is not None}
        if "K" in given:
            given["K"] = tuple(tuple(map(float, row)) for row in given["K"])
        try:
            return HeightRange(**given)
        except NormalMeshError as error:
            raise unusable(source, str(error)) from error


def _description(path: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the file that describes the heights of a PNG, itself or the one beside it, and what it says."""
    if file_format(path) != "PNG":
        return None
    text, source = _text(path), path
    if text is None:
        source = sidecar(path)
        if not source.is_file() or not 0 < source.stat().st_size <= MAX_DESCRIPTION:
            return None
        text = read_text(source, "JSON")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        if FORMAT in text:
            reason = "the description of its heights is damaged; remove it to read plain values"
            raise unusable(source, reason) from None
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    # A description from beside the file must be of this image.
    return (source, content) if source == path or content.get("image") == path.name else None


def _text(path: Path) -> str | None:
    """Return the text chunk of a PNG that describes heights. It comes before the pixels."""
    with mapped(path) as contents:
        for name, first, size in png_chunks(contents):
            if name == b"IDAT":
                break
            content = contents[first : first + min(size, MAX_DESCRIPTION)]
            if name == b"iTXt" and content.startswith(KEYWORD + b"\0\0"):
                return content.split(b"\0", 5)[-1].decode(errors="replace")
    return None


def _with_text(png: bytes, texts: dict[bytes, str]) -> bytes:
    """Return a PNG file with international text chunks, not compressed, after its header."""
    end_of_header = 8 + 12 + 13
    chunks = b""
    for keyword, text in texts.items():
        content = b"iTXt" + keyword + b"\0" * 5 + text.encode()
        chunks += struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return png[:end_of_header] + chunks + png[end_of_header:]


def warn_of_strength(path: Path, strength: object) -> None:
    """Warn that heights are no measurement if their relief was exaggerated."""
    if isinstance(strength, int | float) and strength != 1:
        warn_caller(f"{path_text(path)}: its relief was multiplied by {strength:g}: it is no measurement")
