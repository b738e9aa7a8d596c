"""Detecting the format of a file from its first bytes, and reporting files that cannot be used."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normalmesh.errors import NormalMeshError, escaped, path_text
from normalmesh.files.clashes import note_input

#: First bytes of a file and its format. Suffixes are ignored: files are renamed more often than converted.
SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"\x76\x2f\x31\x01", "EXR"),
    (b"\x93NUMPY", "NPY"),
    (b"PK\x03\x04", "NPZ"),
    (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (b"PTM_1", "PTM"),
    (b"#HSH", "RTI"),
    # Not read: the name is for the message.
    (b"#?RADIANCE", "Radiance HDR"),
    (b"#?RGBE", "Radiance HDR"),
    (b"GIF8", "GIF"),
    (b"8BPS", "PSD"),
    (b"DDS ", "DDS"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
)

#: Lengths of the second header of a BMP file.
BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
#: Kinds of images in a TGA file: palette, colours or grey, plain or run-length encoded; and its suffixes.
TGA_KINDS, TGA_SUFFIXES = (1, 2, 3, 9, 10, 11), (".tga", ".icb", ".vda", ".vst")

#: Maximum length of a reason, which may quote a file; enough for messages of this package and of decoders.
MAX_REASON = 500
#: Maximum size in bytes of a text: about ten million control points.
MAX_TEXT_SIZE = 1 << 28


def unusable(path: Path, reason: str) -> NormalMeshError:
    """Return the error for a file: its name, then the reason, on one line."""
    line = escaped(" ".join(reason.split()))
    return NormalMeshError(f"{path_text(path)}: {line if len(line) <= MAX_REASON else line[:MAX_REASON] + ' …'}")


def unknown_format(path: Path, name: str | None, expected: str) -> NormalMeshError:
    """Return the error for a file whose format, as :func:`file_format` names it, is none of those expected."""
    if name == "HDF5" and "MAT" in expected:
        return unusable(path, "is a MAT file of version 7.3 (HDF5), which is not read; in Matlab, save(..., '-v7')")
    return unusable(path, f"is {f'a {name} file' if name else 'of an unknown format'}; expected {expected}")


def file_format(path: Path) -> str | None:
    """Return the format, such as PNG or MAT, or None if it is unknown; raise if there is no file, or nothing in it."""
    head = _first_bytes(path)
    for signature, name in SIGNATURES:
        if head.startswith(signature):
            return name
    # A MAT file of version 5 begins with free text; its version and byte order follow at a fixed place.
    if head[124:128] in (b"\x00\x01IM", b"\x01\x00MI"):
        return "MAT"
    if head[124:128] in (b"\x00\x02IM", b"\x02\x00MI"):
        return "HDF5"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in BMP_HEADERS:
        return "BMP"
    return "TGA" if _is_tga(path, head) else None


def _is_tga(path: Path, head: bytes) -> bool:
    """Return whether a file is a TGA: it has no signature, but a strict header, and mostly a footer or its suffix."""
    if len(head) < 18 or head[1] > 1 or head[2] not in TGA_KINDS or head[16] not in (8, 15, 16, 24, 32):
        return False
    if not any(head[12:14]) or not any(head[14:16]):
        return False
    if path.suffix.lower() in TGA_SUFFIXES:
        return True
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 18, 0))
        return file.read().startswith(b"TRUEVISION-XFILE")


def _first_bytes(path: Path) -> bytes:
    """Return the first 128 bytes, or raise an error with the reason why there are none."""
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise unusable(path, "is a folder, not a file; NormalMap.open reads folders of Zarr")
        # Opening a pipe may wait forever, and a device never ends.
        if not stat.S_ISREG(kind):
            raise unusable(path, "is not an ordinary file; save what it holds to one first")
        with path.open("rb") as file:
            head = file.read(128)
    except FileNotFoundError:
        raise unusable(path, "there is no such file") from None
    except OSError as error:
        raise unusable(path, f"cannot be opened: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, NormalMeshError):
            raise
        raise unusable(path, f"is no name of a file: {error}") from error
    if not head:
        raise unusable(path, "the file is empty")
    note_input(path)
    return head


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn any exception of a decoder on a damaged file into an error that names the file."""
    try:
        yield
    except NormalMeshError:
        raise
    except MemoryError as error:
        raise unusable(path, f"memory ran out while it was read as {what}; crop it, or halve its resolution") from error
    # Decoders raise all kinds of exceptions on damaged data, some of them plain Exception.
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        raise unusable(path, f"cannot be read as {what}; it is damaged or incomplete ({reason})") from error


def read_text(path: Path, expected: str, *, latin: bool = False) -> str:
    """Return the text of a file, or raise an error that names what was expected.

    ``latin`` allows Latin-1, in which programs on Windows write names, where a file is not UTF-8.
    """
    if file_format(path) is not None:
        raise unusable(path, f"is no text: expected {expected}")
    if path.stat().st_size > MAX_TEXT_SIZE:
        raise unusable(path, f"is too long for text of this kind: expected {expected}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        if latin and "\0" not in (text := path.read_text(encoding="latin-1")):
            return text
        raise unusable(path, f"is no text in UTF-8: expected {expected}") from None
    except OSError as error:
        raise unusable(path, f"cannot be read: {error.strerror or error}") from error


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Map the contents of a file into memory, without a copy."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents:
        yield contents
