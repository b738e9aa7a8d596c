"""Descriptions: what a reconstruction depends on, as values that JSON can hold, by name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import normalmesh
from normalmesh.errors import shape_text

#: Number of digits of a hash.
DIGITS = 16
#: Largest number that is described by its digits.
MAX_INT = 1 << 64
#: Largest number of items of a list that are described one by one.
FEW = 8


def description_of(name: str, value: object) -> dict[str, object]:
    """Describe a value under a name; the parts of records and dictionaries under names with dots.

    Arrays and long lists are described by a hash, files by path, size and time, folders by those of all files in them.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and abs(value) > MAX_INT:  # Python does not write out endless numbers
        return {name: f"a number of {value.bit_length()} bits"}
    if value is None or isinstance(value, bool | int | float | str):
        return {name: value}
    if isinstance(value, np.ndarray):
        values = np.ascontiguousarray(value).reshape(-1)
        content = "objects" if value.dtype.hasobject else f"hash {_hash(values.view(np.uint8).data)}"
        return {name: f"{value.dtype} {shape_text(value.shape)}, {content}"}
    if isinstance(value, bytes):
        return {name: f"hash {_hash(value)}"}
    if isinstance(value, Path):
        return _file(name, value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: type(value).__name__} | described_parts(parts, f"{name}.")
    if isinstance(value, Mapping):
        return described_parts(value, f"{name}.")
    if isinstance(value, list | tuple):
        items = described_parts(dict(enumerate(value)), f"{name}.")
        return items if len(value) <= FEW else {name: f"{len(value)} items, hash {_hash(json.dumps(items).encode())}"}
    if type(value).__reduce__ is not object.__reduce__:  # such as an array on disk, which pickles as what defines it
        return {name: type(value).__name__} | described_parts(dict(enumerate(value.__reduce__()[1])), f"{name}.")
    text = str(value)
    return {name: type(value).__name__ if " at 0x" in text else text}  # addresses differ each time


def described_parts(parts: Mapping[Any, object], prefix: str = "") -> dict[str, object]:
    """Describe values under their names after a prefix."""
    found: dict[str, object] = {}
    for part, value in parts.items():
        found |= description_of(f"{prefix}{part}", value)
    return found


def _file(name: str, path: Path) -> dict[str, object]:
    """Describe a file, or all that a folder holds, by what is read quickly."""
    if path.is_dir():
        return {name: str(path.absolute()), f"{name}.files": _files_hash(path)}
    status = path.stat() if path.exists() else None
    known = {} if status is None else {f"{name}.bytes": status.st_size, f"{name}.changed": status.st_mtime_ns}
    return {name: str(path.absolute()), **known}


def _files_hash(root: Path) -> str:
    """Return the number of files below a folder, and a hash of their names, sizes and times."""
    files = []
    for folder, _, names in os.walk(root.absolute(), followlinks=True):
        for name in names:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):  # a link that leads nowhere
                status = os.stat(path)
                files.append((path, status.st_size, status.st_mtime_ns))
    return f"{len(files)} files, hash {_hash(json.dumps(sorted(files)).encode())}"


def _hash(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


@cache
def code_description() -> str:
    """Return the release of normalmesh, and a hash of its source: other code may give other results."""
    digest = hashlib.sha256()
    root = Path(normalmesh.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return f"{normalmesh.__version__}, source {digest.hexdigest()[:DIGITS]}"
