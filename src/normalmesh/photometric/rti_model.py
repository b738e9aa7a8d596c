"""Relightable images as files hold them: a function of the light direction for each pixel.

Polynomial texture maps (.ptm) are biquadratic polynomials of it. The format is that of Malzbender and Gelb, "Polynomial
Texture Map (.ptm) File Format", version 1.2, HP Laboratories 2001; rows are stored from the bottom to the top.

Hemispherical harmonics (.rti) are sums of harmonics of it. The format ``#HSH1.2`` is what RTIBuilder and RTIViewer of
Cultural Heritage Imaging write and read; the basis is that of Gautron, Křivánek, Pattanaik and Bouatouch, "A Novel
Hemispherical Basis for Accurate and Efficient Rendering", 2004.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from mmap import mmap
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float, UInt8
from normalmesh.files.formats import mapped, reading, unusable
from normalmesh.files.size_limits import check_image_size

#: Largest scale or bias. Those of brightness from 0 to 255 are far smaller.
MAX_COEFFICIENT = 1e6
#: Maximum length of a line of a header in bytes.
MAX_LINE = 1 << 16

#: Polynomials of each format, and whether its planes are JPEG images. The colours of luminance formats follow.
POLYNOMIALS = {
    "PTM_FORMAT_RGB": (3, False),
    "PTM_FORMAT_LRGB": (1, False),
    "PTM_FORMAT_JPEG_RGB": (3, True),
    "PTM_FORMAT_JPEG_LRGB": (1, True),
}
#: Coefficients of a polynomial, of u², v², uv, u, v and 1.
PTM_TERMS = 6
#: A word of the header of a PTM file, which is shorter than this; white space before it.
WORD = re.compile(rb"\s*([-+.0-9eE]{1,40})(?=\s)")
#: What to do with PTM files that are not read.
CONVERT = "save it as PTM_1.2 with PTM_FORMAT_LRGB, by PTM Viewer, RTIBuilder or Relight"

#: Kinds of RTI files by the number on the first line that is no comment.
KINDS = {1: "PTM", 2: "spherical harmonics", 4: "an adaptive basis"}
#: Numbers of harmonics that are read, by their order, which some files give instead.
HARMONICS = {1: 4, 2: 9, 3: 16}


@dataclass(frozen=True)
class RTIHeader:
    """What the header of a relightable image says.

    Attributes
    ----------
    format
        Name of the format, such as ``"PTM_FORMAT_LRGB"`` or ``"HSH"``.
    shape
        Rows and columns.
    terms
        Coefficients for each pixel and channel: 6 of a biquadratic polynomial (PTM), 4, 9 or 16 of harmonics (HSH).
    scale, bias
        A coefficient is ``scale · (byte − bias)`` in PTM files, ``scale · byte / 255 + bias`` in HSH files.
    """

    format: str
    shape: tuple[int, int]
    terms: int
    scale: tuple[float, ...]
    bias: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class RTIModel:
    """Brightness of the pixels as a function of the light."""

    header: RTIHeader
    #: (channels, H, W, terms) as stored, the first row at the top; one channel is luminance, multiplied by the colour.
    coefficients: UInt8
    #: (H, W, 3); None if there are three channels.
    colour: UInt8 | None
    #: Of the length ``terms``: a coefficient is ``scale · byte + offset``, for brightness 1 at full white.
    scale: Float
    offset: Float
    #: From unit directions (K, 3) to lights to the values (K, terms) that coefficients multiply.
    basis: Callable[[Float], Float]


def read_model(path: Path, name: str) -> RTIModel:
    """Read a file of a format of :data:`RTI_FORMATS`, or raise :class:`NormalMeshError`."""
    with reading(path, name), mapped(path) as contents:
        return RTI_FORMATS[name](path, contents).model()


def read_rti_size(path: Path, name: str) -> tuple[int, int]:
    """Return rows and columns of a file of a format of :data:`RTI_FORMATS`, after a check of its size."""
    with reading(path, name), mapped(path) as contents:
        return RTI_FORMATS[name](path, contents).header().shape


def polynomial(directions: Float) -> Float:
    """Return the terms (K, 6) of the polynomial for unit directions (K, 3) to lights."""
    u, v = directions[:, 0], directions[:, 1]
    return np.stack([u * u, v * v, u * v, u, v, np.ones_like(u)], axis=1)


def harmonics(directions: Float, terms: int) -> Float:
    """Return the first harmonics (K, terms) for unit directions (K, 3) to lights in the upper hemisphere.

    Harmonics are products of polynomials of the cosine c of the angle to the viewing direction, which are orthogonal on
    [0, 1], powers of √(c − c²), and cosines and sines of multiples of the azimuth.
    """
    c = np.clip(directions[:, 2], 0, 1)
    azimuth = np.arctan2(directions[:, 1], directions[:, 0])
    s = np.sqrt(c - c * c)
    first, second = 2 * c - 1, 1 - 5 * c + 5 * c * c
    columns = [np.full_like(c, 1 / math.sqrt(2))]
    columns += [math.sqrt(6) * s * np.cos(azimuth), math.sqrt(1.5) * first, math.sqrt(6) * s * np.sin(azimuth)]
    if terms > 4:
        twice = -math.sqrt(30) * s * s
        columns += [twice * np.cos(2 * azimuth), math.sqrt(30) * first * s * np.cos(azimuth)]
        columns += [math.sqrt(2.5) * (1 - 6 * c + 6 * c * c)]
        columns += [math.sqrt(30) * first * s * np.sin(azimuth), twice * np.sin(2 * azimuth)]
    if terms > 9:
        # The fitter of RTIBuilder has s² instead of s³ here. Normals of its files, read in this way, are as good.
        thrice, twice = 2 * math.sqrt(35) * s**3, -math.sqrt(210) * first * s * s
        once = 2 * math.sqrt(21) * s * second
        columns += [thrice * np.cos(3 * azimuth), twice * np.cos(2 * azimuth), once * np.cos(azimuth)]
        columns += [math.sqrt(3.5) * (-1 + 12 * c - 30 * c**2 + 20 * c**3)]
        columns += [once * np.sin(azimuth), twice * np.sin(2 * azimuth), thrice * np.sin(3 * azimuth)]
    return np.stack(columns, axis=1) / math.sqrt(math.pi)


class _Reader:
    """Reads a file from the beginning to the end."""

    def __init__(self, path: Path, contents: mmap) -> None:
        self.path, self.contents, self.position = path, contents, 0

    def line(self) -> str:
        """Return the next line."""
        end = self.contents.find(b"\n", self.position, self.position + MAX_LINE)
        if end < 0:
            raise ValueError("a line of its header has no end")
        line, self.position = self.contents[self.position : end], end + 1
        return line.decode("ascii", "replace").strip()

    def bytes(self, shape: tuple[int, ...]) -> UInt8:
        """Return the next bytes."""
        count = math.prod(shape)
        data = np.frombuffer(self.contents[self.position : self.position + count], np.uint8)
        self.position += count
        return data.reshape(shape)

    def check_size(self, shape: tuple[int, int], stored: int) -> None:
        """Raise if an image cannot be read: bytes for each pixel, and normals, albedo and residual as floats."""
        if min(shape) < 1:
            raise unusable(self.path, f"claims {shape[1]} × {shape[0]} pixels; it is damaged")
        check_image_size(self.path, *shape, stored + 28)

    def check_complete(self, shape: tuple[int, int], pixel_bytes: int) -> None:
        """Raise if the file holds fewer bytes of pixels than its header claims."""
        present, claimed = len(self.contents) - self.position, math.prod(shape) * pixel_bytes
        if present < claimed:
            size = f"{shape[1]} × {shape[0]}"
            raise unusable(self.path, f"is incomplete: {present} of the {claimed} bytes of its {size} pixels")

    @staticmethod
    def check_coefficients(scale: tuple[float, ...], bias: tuple[float, ...]) -> None:
        """Raise if scale or bias cannot be those of an image."""
        if not np.all(np.abs([scale, bias]) <= MAX_COEFFICIENT):
            raise ValueError(f"scale or bias is not a number up to {MAX_COEFFICIENT:g}")


class _HarmonicsReader(_Reader):
    """Reads an RTI file of hemispherical harmonics."""

    def header(self) -> RTIHeader:
        lines: list[list[int]] = []
        while len(lines) < 3:
            line = self.line()
            if line and not line.startswith("#"):
                lines.append([int(word) for word in line.split()])
        if [len(line) for line in lines[1:]] != [3, 3]:
            raise ValueError("its header does not have three numbers on the second and third line")
        (kind, *_), (columns, rows, bands), (terms, basis, size) = lines
        if kind != 3:
            what = KINDS.get(kind, f"kind {kind}")
            raise unusable(
                self.path, f"is an RTI file of {what}, not of hemispherical harmonics (3); save it as HSH or PTM"
            )
        terms = HARMONICS.get(terms, terms)
        if terms not in HARMONICS.values() or bands != 3 or basis != 2 or size != 1:
            raise unusable(
                self.path,
                f"has {terms} terms of {size} bytes in {bands} channels, basis {basis}; expected 4, 9 or 16 terms of "
                "one byte in three channels, basis 2 (red, green and blue apart), as RTIBuilder writes them",
            )
        self.check_size((rows, columns), 3 * terms)
        scale, bias = (struct.unpack(f"<{terms}f", self.bytes((4 * terms,)).tobytes()) for _ in range(2))
        self.check_coefficients(scale, bias)
        return RTIHeader("HSH", (rows, columns), terms, scale, bias)

    def model(self) -> RTIModel:
        header = self.header()
        self.check_complete(header.shape, 3 * header.terms)
        coefficients = np.moveaxis(self.bytes((*header.shape, 3, header.terms)), 2, 0)
        scale = np.array(header.scale) / 255
        basis = partial(harmonics, terms=header.terms)
        return RTIModel(header, coefficients, None, scale, np.array(header.bias), basis)


@dataclass(frozen=True)
class _Plane:
    """How a plane of a compressed file is stored: its prediction from another plane, and sizes in bytes."""

    flags: int
    order: int
    reference: int
    size: int
    corrections: int


class _PolynomialReader(_Reader):
    """Reads a PTM file."""

    def header(self) -> RTIHeader:
        version, name = self.line(), self.line()
        if version != "PTM_1.2":
            raise unusable(self.path, f"is a PTM file of version {version[:20]!r}, not PTM_1.2; {CONVERT}")
        if name not in POLYNOMIALS:
            raise unusable(self.path, f"is of the format {name[:40]!r}, not one of {', '.join(POLYNOMIALS)}; {CONVERT}")
        columns, rows = (int(word) for word in self._words(2))
        scale = tuple(float(word) for word in self._words(PTM_TERMS))
        bias = tuple(float(word) for word in self._words(PTM_TERMS))
        # The bias of a coefficient that is the same everywhere, whose scale is 0, may be any number.
        self.check_coefficients(scale, tuple(np.multiply(scale, bias).tolist()))
        polynomials, _ = POLYNOMIALS[name]
        self.check_size((rows, columns), _pixel_bytes(polynomials))
        return RTIHeader(name, (rows, columns), PTM_TERMS, scale, bias)

    def model(self) -> RTIModel:
        header = self.header()
        polynomials, compressed = POLYNOMIALS[header.format]
        read = self._compressed if compressed else self._plain
        coefficients, colour = read(header.shape, polynomials)
        scale = np.array(header.scale) / 255
        return RTIModel(
            header,
            coefficients[:, ::-1],
            None if colour is None else colour[::-1],
            scale,
            -scale * header.bias,
            polynomial,
        )

    def _plain(self, shape: tuple[int, int], polynomials: int) -> tuple[UInt8, UInt8 | None]:
        self._end_of_line()
        self.check_complete(shape, _pixel_bytes(polynomials))
        coefficients = self.bytes((polynomials, *shape, PTM_TERMS))
        return coefficients, self.bytes((*shape, 3)) if polynomials == 1 else None

    def _compressed(self, shape: tuple[int, int], polynomials: int) -> tuple[UInt8, UInt8 | None]:
        count = _pixel_bytes(polynomials)
        stored = self._plane_table(count)
        self._end_of_line()
        planes, corrections = [], []
        for plane in stored:
            planes.append(self._jpeg(plane.size, shape))
            corrections.append(self.bytes((plane.corrections // 5, 5)))
        for index in sorted(range(count), key=lambda index: stored[index].order):
            _predict(planes, index, stored[index], corrections[index])
        coefficients = np.stack(planes[: PTM_TERMS * polynomials], axis=-1).reshape(*shape, polynomials, PTM_TERMS)
        colour = np.stack(planes[PTM_TERMS:], axis=-1) if polynomials == 1 else None
        return np.moveaxis(coefficients, 2, 0), colour

    def _plane_table(self, count: int) -> list[_Plane]:
        """Return how the planes are stored. The header has a list of numbers for each of eight properties."""
        self._words(1)  # quality of the compression
        flags, right, up, order, reference, size, corrections = (
            [int(word) for word in self._words(count)] for _ in range(7)
        )
        if any(flag & ~1 for flag in flags) or any(right) or any(up):
            raise unusable(self.path, f"its planes are predicted with motion vectors, which are not read; {CONVERT}")
        if sorted(order) != list(range(count)) or not all(-1 <= plane < count for plane in reference):
            raise ValueError("the order of its planes makes no sense")
        if min(size) < 0 or min(corrections) < 0:
            raise ValueError("sizes are negative")
        return [_Plane(*each) for each in zip(flags, order, reference, size, corrections, strict=True)]

    def _jpeg(self, size: int, shape: tuple[int, int]) -> UInt8:
        import imagecodecs

        stream = self.contents[self.position : self.position + size]
        if len(stream) < size or b"\xff\xd9" not in stream[-16:]:
            raise unusable(self.path, "is incomplete: a JPEG image in it has no end")
        self.position += size
        plane = np.asarray(imagecodecs.jpeg8_decode(stream))
        if plane.shape != shape:
            raise ValueError(f"a plane has {plane.shape} instead of {shape} pixels")
        return plane.astype(np.uint8)

    def _words(self, count: int) -> list[str]:
        """Return the next words of the header, separated by any white space."""
        words = []
        for _ in range(count):
            found = WORD.match(self.contents, self.position)
            if found is None:
                raise ValueError("its header ends too early")
            words.append(found[1].decode("ascii"))
            self.position = found.end()
        return words

    def _end_of_line(self) -> None:
        """Skip the end of the last line of the header, after which pixels begin."""
        found = re.compile(rb"[ \t]*\r?\n").match(self.contents, self.position)
        if found is None:
            raise ValueError("no pixels follow its header")
        self.position = found.end()


def _pixel_bytes(polynomials: int) -> int:
    return PTM_TERMS * polynomials + (3 if polynomials == 1 else 0)


def _predict(planes: list[UInt8], index: int, plane: _Plane, corrections: UInt8) -> None:
    """Add the plane that a plane was predicted from, modulo 256, and replace single pixels, in place."""
    if plane.reference >= 0:
        reference = planes[plane.reference]
        predicted = 255 - reference if plane.flags & 1 else reference
        planes[index] = (planes[index].astype(np.int16) + predicted - 128).astype(np.uint8)
    places = corrections[:, :4].astype(np.int64) @ (256 ** np.arange(3, -1, -1))
    inside = places < planes[index].size
    planes[index].reshape(-1)[places[inside]] = corrections[inside, 4]


#: What reads a file, by its format as :func:`.formats.file_format` names it.
RTI_FORMATS: dict[str, type[_PolynomialReader | _HarmonicsReader]] = {"PTM": _PolynomialReader, "RTI": _HarmonicsReader}
