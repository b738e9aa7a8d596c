"""Array files: named arrays in one file, which is there as a whole or not at all, and which tells if it is damaged.

A file is a check sum and a line of JSON (name, type and shape of each array), then the bytes and the check sum of each
array. The same arrays give the same bytes.
"""

from __future__ import annotations

import json
import os
import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.runtime.temporary_files import new_file, steps, temporary_path

#: What a file begins with; the number is that of the format.
MAGIC = b"normalmesh arrays 2 "
#: Number of bytes before the JSON, and of the check sum of an array.
HEAD, CHECK = len(MAGIC) + 9, 4

#: Arrays by name, in memory or in a file.
Arrays = Mapping[str, NDArray[Any]]
#: What does the tasks of a stage, and returns their results: :meth:`.Engine.run`.
Run = Callable[..., Mapping[Any, Arrays]]
#: Name, type and shape of an array.
Entry = tuple[str, str, list[int]]


@dataclass(frozen=True)
class ArrayFile(Mapping[str, NDArray[Any]]):
    """A file of named arrays: a handle that takes little to send, and that loads arrays by their names.

    What is loaded is checked; :class:`NormalMeshError` is raised if it is not what was saved.
    """

    path: Path

    def __getitem__(self, name: str) -> NDArray[Any]:
        with open(self.path, "rb") as file:
            for found, dtype, shape in self._entries(file):
                if found == name:
                    return self._array(file, dtype, shape)
                file.seek(np.dtype(dtype).itemsize * int(np.prod(shape)) + CHECK, os.SEEK_CUR)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        with open(self.path, "rb") as file:
            return iter([name for name, _, _ in self._entries(file)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def is_whole(self) -> bool:
        """Whether the file is there, and all that was saved is in it. This reads all of it."""
        try:
            for name in self:
                self[name]
        except (OSError, NormalMeshError):
            return False
        return True

    def save(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the file, beside its place first. It is on the disk when this returns."""
        with temporary_path(self.path.parent) as temporary:
            with new_file(temporary) as file:
                entries = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
                file.write(_headed(json.dumps(entries).encode() + b"\n"))
                for name, array in arrays.items():
                    assert not array.dtype.hasobject, f"{name} holds objects"
                    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
                    file.write(content)
                    file.write(_check_sum(content))
                file.flush()
                os.fsync(file.fileno())
            with steps:
                os.replace(temporary, self.path)

    def _entries(self, file: BinaryIO) -> list[Entry]:
        """Return what the first line of a file says."""
        line = file.readline()
        if line != _headed(line[HEAD:]):
            raise self._damaged()
        entries: list[Entry] = json.loads(line[HEAD:])
        return entries

    def _array(self, file: BinaryIO, dtype: str, shape: list[int]) -> NDArray[Any]:
        """Return the array at the position of a file."""
        array = np.empty(shape, dtype)
        content = array.reshape(-1).view(np.uint8).data
        file.readinto(content)  # type: ignore[attr-defined]
        if file.read(CHECK) != _check_sum(content):
            raise self._damaged()
        return array

    def _damaged(self) -> NormalMeshError:
        return NormalMeshError(f"{path_text(self.path)} is damaged: start again, and it is made anew")


def _headed(text: bytes) -> bytes:
    return MAGIC + b"%08x " % zlib.crc32(text) + text


def _check_sum(content: memoryview) -> bytes:
    return zlib.crc32(content).to_bytes(CHECK, "little")


def packed(value: object) -> dict[str, NDArray[Any]]:
    """Return a value that is no array, such as a record, as an array of bytes by name."""
    return {"pickled": np.frombuffer(pickle.dumps(value), np.uint8)}


def unpacked(arrays: Arrays) -> Any:
    """Return the value of :func:`packed`."""
    return pickle.loads(arrays["pickled"].tobytes())
