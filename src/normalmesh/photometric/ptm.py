"""Polynomial texture maps (.ptm): brightness as a biquadratic polynomial of the light direction.

The format is that of Malzbender and Gelb, "Polynomial Texture Map (.ptm) File Format", version 1.2, HP Laboratories
2001. Rows are stored from the bottom to the top.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float, UInt8
from normalmesh.files.formats import mapped, reading, unusable
from normalmesh.photometric.rti_model import RTIHeader, RTIModel, check_coefficients, check_complete, check_rti_size

#: Polynomials of each format, and whether its planes are JPEG images. The colours of luminance formats follow.
POLYNOMIALS = {
    "PTM_FORMAT_RGB": (3, False),
    "PTM_FORMAT_LRGB": (1, False),
    "PTM_FORMAT_JPEG_RGB": (3, True),
    "PTM_FORMAT_JPEG_LRGB": (1, True),
}
#: Coefficients of a polynomial, of u², v², uv, u, v and 1.
TERMS = 6
#: Header lines are shorter than this number of bytes.
MAX_LINE = 4096


def read_ptm(path: Path) -> RTIModel:
    """Read a PTM file, or raise :class:`NormalMeshError`."""
    with reading(path, "PTM"), mapped(path) as contents:
        return _Reader(path, contents).model()


def read_ptm_size(path: Path) -> tuple[int, int]:
    """Return rows and columns of a PTM file, after a check of its size."""
    with reading(path, "PTM"), mapped(path) as contents:
        return _Reader(path, contents).header().shape


def polynomial(directions: Float) -> Float:
    """Return the terms (K, 6) of the polynomial for unit directions (K, 3) to lights."""
    u, v = directions[:, 0], directions[:, 1]
    return np.stack([u * u, v * v, u * v, u, v, np.ones_like(u)], axis=1)


@dataclass(frozen=True)
class _Plane:
    """How a plane of a compressed file is stored: its prediction from another plane, and sizes in bytes."""

    flags: int
    order: int
    reference: int
    size: int
    corrections: int


class _Reader:
    """Reads a file from the beginning to the end."""

    def __init__(self, path: Path, contents: mmap) -> None:
        self.path, self.contents, self.position = path, contents, 0

    def header(self) -> RTIHeader:
        version, name = self._line(), self._line()
        if version != "PTM_1.2":
            raise unusable(self.path, f"is a PTM file of version {version[:20]!r}, not PTM_1.2; {CONVERT}")
        if name not in POLYNOMIALS:
            raise unusable(self.path, f"is of the format {name[:40]!r}, not one of {', '.join(POLYNOMIALS)}; {CONVERT}")
        columns, rows = (int(word) for word in self._words(2))
        scale = tuple(float(word) for word in self._words(TERMS))
        bias = tuple(float(word) for word in self._words(TERMS))
        # The bias of a coefficient that is the same everywhere, whose scale is 0, may be any number.
        check_coefficients(scale, tuple(np.multiply(scale, bias).tolist()))
        polynomials, _ = POLYNOMIALS[name]
        check_rti_size(self.path, (rows, columns), _pixel_bytes(polynomials))
        return RTIHeader(name, (rows, columns), TERMS, scale, bias)

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
        check_complete(self.path, len(self.contents) - self.position, shape, _pixel_bytes(polynomials))
        coefficients = self._bytes((polynomials, *shape, TERMS))
        return coefficients, self._bytes((*shape, 3)) if polynomials == 1 else None

    def _compressed(self, shape: tuple[int, int], polynomials: int) -> tuple[UInt8, UInt8 | None]:
        count = _pixel_bytes(polynomials)
        stored = self._plane_table(count)
        self._end_of_line()
        planes, corrections = [], []
        for plane in stored:
            planes.append(self._jpeg(plane.size, shape))
            corrections.append(self._bytes((plane.corrections // 5, 5)))
        for index in sorted(range(count), key=lambda index: stored[index].order):
            _predict(planes, index, stored[index], corrections[index])
        coefficients = np.stack(planes[: TERMS * polynomials], axis=-1).reshape(*shape, polynomials, TERMS)
        colour = np.stack(planes[TERMS:], axis=-1) if polynomials == 1 else None
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

    def _line(self) -> str:
        end = self.contents.find(b"\n", self.position, self.position + MAX_LINE)
        if end < 0:
            raise ValueError("a line of its header has no end")
        line, self.position = self.contents[self.position : end], end + 1
        return line.decode("ascii", "replace").strip()

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

    def _bytes(self, shape: tuple[int, ...]) -> UInt8:
        count = int(np.prod(shape))
        data = np.frombuffer(self.contents[self.position : self.position + count], np.uint8)
        self.position += count
        return data.reshape(shape)


#: A word of the header, which is shorter than this; white space before it.
WORD = re.compile(rb"\s*([-+.0-9eE]{1,40})(?=\s)")
#: What to do with files that are not read.
CONVERT = "save it as PTM_1.2 with PTM_FORMAT_LRGB, by PTM Viewer, RTIBuilder or Relight"


def _pixel_bytes(polynomials: int) -> int:
    return TERMS * polynomials + (3 if polynomials == 1 else 0)


def _predict(planes: list[UInt8], index: int, plane: _Plane, corrections: UInt8) -> None:
    """Add the plane that a plane was predicted from, modulo 256, and replace single pixels, in place."""
    if plane.reference >= 0:
        reference = planes[plane.reference]
        predicted = 255 - reference if plane.flags & 1 else reference
        planes[index] = (planes[index].astype(np.int16) + predicted - 128).astype(np.uint8)
    places = corrections[:, :4].astype(np.int64) @ (256 ** np.arange(3, -1, -1))
    inside = places < planes[index].size
    planes[index].reshape(-1)[places[inside]] = corrections[inside, 4]
