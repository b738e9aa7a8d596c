"""Hemispherical harmonics (.rti): brightness as a sum of harmonics of the light direction.

The format ``#HSH1.2`` is what RTIBuilder and RTIViewer of Cultural Heritage Imaging write and read; the basis is that
of Gautron, Křivánek, Pattanaik and Bouatouch, "A Novel Hemispherical Basis for Accurate and Efficient Rendering", 2004.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from mmap import mmap
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float
from normalmesh.files.formats import mapped, reading, unusable
from normalmesh.photometric.rti_model import RTIHeader, RTIModel, check_coefficients, check_complete, check_rti_size

#: Kinds of files by the number on the first line that is no comment.
KINDS = {1: "PTM", 2: "spherical harmonics", 4: "an adaptive basis"}
#: Numbers of terms that are read, by their order, which some files give instead.
TERMS = {1: 4, 2: 9, 3: 16}
#: Maximum length of the header in bytes.
MAX_HEADER = 1 << 16


def read_hsh(path: Path) -> RTIModel:
    """Read an RTI file of hemispherical harmonics, or raise :class:`NormalMeshError`."""
    with reading(path, "RTI"), mapped(path) as contents:
        header, position = _header(path, contents)
        pixel_bytes = 3 * header.terms
        check_complete(path, len(contents) - position, header.shape, pixel_bytes)
        size = math.prod(header.shape) * pixel_bytes
        data = np.frombuffer(contents[position : position + size], np.uint8)
    coefficients = np.moveaxis(data.reshape(*header.shape, 3, header.terms), 2, 0)
    scale = np.array(header.scale) / 255
    return RTIModel(header, coefficients, None, scale, np.array(header.bias), partial(harmonics, terms=header.terms))


def read_hsh_size(path: Path) -> tuple[int, int]:
    """Return rows and columns of an RTI file, after a check of its size."""
    with reading(path, "RTI"), mapped(path) as contents:
        return _header(path, contents)[0].shape


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


def _header(path: Path, contents: mmap) -> tuple[RTIHeader, int]:
    """Return the header, and the position of the pixels."""
    lines, position = _lines(contents)
    (kind, *_), (columns, rows, bands), (terms, basis, size) = lines
    if kind != 3:
        what = KINDS.get(kind, f"kind {kind}")
        raise unusable(path, f"is an RTI file of {what}, not of hemispherical harmonics (3); save it as HSH or PTM")
    terms = TERMS.get(terms, terms)
    if terms not in TERMS.values() or bands != 3 or basis != 2 or size != 1:
        raise unusable(
            path,
            f"has {terms} terms of {size} bytes in {bands} channels, basis {basis}; expected 4, 9 or 16 terms of one "
            "byte in three channels, basis 2 (red, green and blue apart), as RTIBuilder writes them",
        )
    check_rti_size(path, (rows, columns), 3 * terms)
    scale, bias = (struct.unpack_from(f"<{terms}f", contents, position + 4 * terms * part) for part in range(2))
    check_coefficients(scale, bias)
    return RTIHeader("HSH", (rows, columns), terms, scale, bias), position + 8 * terms


def _lines(contents: mmap) -> tuple[list[list[int]], int]:
    """Return the numbers on the three lines of the header that are no comments, and the position after them."""
    lines: list[list[int]] = []
    position = 0
    while len(lines) < 3:
        end = contents.find(b"\n", position, MAX_HEADER)
        if end < 0:
            raise ValueError("its header has no end")
        line, position = contents[position:end].strip(), end + 1
        if line and not line.startswith(b"#"):
            lines.append([int(word) for word in line.split()])
    if [len(line) for line in lines[1:]] != [3, 3]:
        raise ValueError("its header does not have three numbers on the second and third line")
    return lines, position
