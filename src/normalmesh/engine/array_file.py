"""Array files: named arrays in one file, which is there as a whole or not at all.

A file is a line of JSON (the length of the file; name, type, shape and position of each array), padded, and the bytes
of the arrays. The same arrays give the same bytes. Arrays can be mapped into memory instead of being read.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.runtime.temporary_files import new_file, steps, temporary_path

#: What a file begins with; the number is that of the format.
MAGIC = b'{"normalmesh arrays": 1'
#: Arrays begin at multiples of this number of bytes.
ALIGNED = 64
#: Suffix of files that are being written, after the machine and the process that write them.
PARTIAL = ".part"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ArrayFile(Mapping[str, NDArray[Any]]):
    """A file of named arrays: a handle that takes little to send, and that loads arrays by their names."""

    path: Path

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.load(name)[name]

    def __iter__(self) -> Iterator[str]:
        with open(self.path, "rb") as file:
            return iter(_header(file, self.path)[0]["arrays"])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def exists(self) -> bool:
        """Whether the file is there, with the length that it should have."""
        try:
            with open(self.path, "rb") as file:
                return bool(_header(file, self.path)[0]["bytes"] == os.fstat(file.fileno()).st_size)
        except (FileNotFoundError, NormalMeshError):
            return False

    def load(self, *names: str, mapped: bool = False) -> Arrays:
        """Return the arrays, or some of them.

        Parameters
        ----------
        names
            Names of the arrays; by default all.
        mapped
            Map them into memory, read-only, so that only those parts are read from disk that are used.
        """
        with open(self.path, "rb") as file:
            header, start = _header(file, self.path)
            return {
                name: self._array(file, header["arrays"][name], start, mapped) for name in names or header["arrays"]
            }

    def save(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the file, beside its place first. It is on the disk when this returns."""
        with temporary_path(self.path.parent, f".{socket.gethostname()}.{os.getpid()}{PARTIAL}") as temporary:
            with new_file(temporary) as file:
                _write(file, arrays)
                file.flush()
                os.fsync(file.fileno())
            with steps:
                os.replace(temporary, self.path)

    def _array(self, file: BinaryIO, entry: dict[str, Any], start: int, mapped: bool) -> NDArray[Any]:
        dtype, shape, offset = np.dtype(entry["type"]), tuple(entry["shape"]), start + entry["offset"]
        if mapped and 0 not in shape:
            return np.memmap(self.path, dtype, "r", offset, shape)
        array = np.empty(shape, dtype)
        file.seek(offset)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
            raise NormalMeshError(f"{path_text(self.path)} is too short: remove it, and start again")
        return array


def _write(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    entries: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        assert not array.dtype.hasobject, f"{name} holds objects"
        offset = _aligned(end)
        entries[name] = {"type": array.dtype.str, "shape": array.shape, "offset": offset}
        end = offset + array.nbytes
    # The length of the header depends on the length of the file, which it contains: the first has room for the second.
    room = _aligned(len(_header_text(entries, 0)) + 20)
    file.write(_header_text(entries, room + end).ljust(room - 1) + b"\n")
    for name, array in arrays.items():
        file.write(bytes(room + entries[name]["offset"] - file.tell()))
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _header_text(entries: dict[str, Any], length: int) -> bytes:
    return MAGIC + f', "bytes": {length}, "arrays": {json.dumps(entries)}}}'.encode()


def _header(file: BinaryIO, path: Path) -> tuple[dict[str, Any], int]:
    """Return what the first line of a file says, and the position after it."""
    line = file.readline()
    if not line.startswith(MAGIC) or not line.endswith(b"\n"):
        raise NormalMeshError(f"{path_text(path)} is not a file of arrays: remove it, and start again")
    return json.loads(line), len(line)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNED) * ALIGNED
