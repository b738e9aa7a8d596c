"""Reading arrays of numbers from MAT files of version 5 to 7. Of anything else only names are read."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import shape_text
from normalmesh.files.formats import mapped

#: Types of numbers in a file, by their codes.
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
#: Types of arrays in the memory of Matlab: a file may store them in a smaller type.
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
#: Cells, structs, objects, text and sparse arrays: their names are at the same place.
OTHERS = (1, 2, 3, 4, 5)
LOGICAL, COMPLEX = 0x200, 0x800
#: Maximum size in bytes of the header of a variable: flags, dimensions and a name of at most 63 letters.
HEAD = 4096


@dataclass(frozen=True)
class Variable:
    """An array of numbers in a file; or anything else, complex numbers, too: then it has no shape."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    place: int  # of its element in the file
    size: int
    is_compressed: bool
    start: int  # where its values begin in the element, decompressed


def list_variables(path: Path) -> dict[str, Variable]:
    """Return all variables by name; an array of numbers rather than anything else of the same name."""
    with mapped(path) as contents:
        order = _byte_order(contents)
        variables, position = {}, 128
        while position + 8 <= len(contents):
            kind, size = struct.unpack_from(f"{order}II", contents, position)
            if size > len(contents) - position - 8:
                raise ValueError("its end is missing")
            variable = _variable(contents, order, kind, position + 8, size)
            if variable is not None and (variable.shape or variable.name not in variables):
                variables[variable.name] = variable
            position += 8 + size
        if position < len(contents):
            raise ValueError("its end is missing")
    return variables


def read_variable(path: Path, variable: Variable) -> NDArray[np.generic]:
    """Return the numbers of one array; files are in column-major order."""
    if not variable.shape:
        raise ValueError(f"{variable.name} is no array of numbers")
    with mapped(path) as contents:
        order = _byte_order(contents)
        content = contents[variable.place : variable.place + variable.size]
    # A number takes at most eight bytes in a file, whatever its type in memory.
    count = int(np.prod(variable.shape))
    content = _opened(content, variable.is_compressed, variable.start + 8 + 8 * count)
    kind, begin, end = _element(content, order, variable.start)
    values = np.frombuffer(content[begin:end], order + TYPES[kind])
    if len(values) != count:
        raise ValueError(f"{variable.name} holds {len(values)} numbers, not {shape_text(variable.shape)}")
    return values.astype(variable.dtype, copy=False).reshape(variable.shape, order="F")


def _byte_order(contents: mmap) -> str:
    return "<" if contents[126:128] == b"IM" else ">"


def _variable(contents: mmap, order: str, kind: int, place: int, size: int) -> Variable | None:
    """Return the variable of an element; None if it has no name."""
    if kind not in (MATRIX, COMPRESSED):
        raise ValueError(f"element {kind} is no variable")
    # A compressed element holds another element with its own tag.
    head = _opened(contents[place : place + min(size, HEAD)], kind == COMPRESSED, HEAD)
    _, begin, end = _element(head, order, 8 if kind == COMPRESSED else 0)
    flags = struct.unpack_from(f"{order}I", head, begin)[0]
    dtype = CLASSES.get(flags & 0xFF)
    if dtype is None and flags & 0xFF not in OTHERS:
        return None
    _, begin, end = _element(head, order, _padded(end))
    shape = struct.unpack(f"{order}{(end - begin) // 4}i", head[begin:end])
    if min(shape, default=-1) < 0:
        raise ValueError(f"dimensions are {shape_text(shape)}")
    _, begin, end = _element(head, order, _padded(end))
    name = head[begin:end].decode("latin1")
    if dtype is None or flags & COMPLEX:
        shape, dtype = (), "O"
    kind_of_number = np.dtype(np.bool_ if flags & LOGICAL else dtype)
    return Variable(name, shape, kind_of_number, place, size, kind == COMPRESSED, _padded(end))


def _opened(content: bytes, is_compressed: bool, most: int) -> bytes:
    """Return at most ``size`` bytes of an element, decompressed."""
    return zlib.decompressobj().decompress(content, most) if is_compressed else content


def _element(content: bytes, order: str, position: int) -> tuple[int, int, int]:
    """Return type, start and end of a part of a variable; short contents share eight bytes with their tag."""
    tag, size = struct.unpack_from(f"{order}II", content, position)
    kind, begin = tag, position + 8
    if tag >> 16:
        kind, size, begin = tag & 0xFFFF, tag >> 16, position + 4
    if size > len(content) - begin or (tag >> 16 and size > 4):
        raise ValueError("its end is missing")
    return kind, begin, begin + size


def _padded(position: int) -> int:
    """Round up to a multiple of eight bytes, where the next part begins."""
    return position + -position % 8
