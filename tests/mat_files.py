"""Assemble MAT files (level 5) from their elements, also invalid ones that no program writes."""

from __future__ import annotations

import struct


def mat_element(kind: int, content: bytes) -> bytes:
    """Return a data element of a type, padded to eight bytes."""
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def mat_array(name: bytes, shape: tuple[int, ...], content: bytes, array_class: int = 6) -> bytes:
    """Return an array; class 6 is double, class 1 is cell."""
    flags = mat_element(6, struct.pack("<II", array_class, 0))
    dimensions = mat_element(5, struct.pack(f"<{len(shape)}i", *shape))
    return mat_element(14, flags + dimensions + mat_element(1, name) + content)


def mat_file(*elements: bytes) -> bytes:
    """Return a file with a header and the given elements."""
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(elements)
