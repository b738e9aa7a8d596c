"""The inputs of ``normalmesh reconstruct``: expand file patterns, and find the files that belong to each input."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from normalmesh.errors import path_text

#: Placeholder for the name of an input without folder and suffix.
STEM = "{stem}"
#: Suffix of preview pictures, which patterns do not match.
PREVIEW = ".preview.png"


@dataclass(frozen=True)
class Task:
    """An input, the files read with it, and the output file. ``make_folder``: create the output folder if needed."""

    source: Path
    output: Path
    make_folder: bool = False
    mask: str | None = None
    texture: Path | None = None
    prior: Path | None = None
    jump_lines: Path | None = None
    depth: Path | None = None
    jumps: Path | None = None


def tasks_of(
    names: Sequence[str], output: str | None, companions: dict[str, str | None], suffix: str = ".glb"
) -> list[Task]:
    """Return one task for each input.

    Parameters
    ----------
    names
        Files and file patterns.
    output
        A mesh file, the folder of 3D Tiles, or a folder for the meshes of several inputs; None: next to each input.
    companions
        Mask, texture, prior, depth, lines and picture of jumps, by field of `Task`; ``{stem}`` in them is replaced by
        the stem of the input.
    suffix
        Of outputs whose name is not given.
    """
    sources = _sources(names)
    single = sources if [str(source) for source in sources] == [str(Path(name)) for name in names] else []
    tileset = _tileset(output) if len(single) == 1 else None
    folder = None if tileset else _folder(output, len(sources))
    for option in ("depth", "jumps"):
        if len(sources) > 1 and companions.get(option) and STEM not in str(companions[option]):
            raise click.UsageError(f"--{option} must contain {STEM} if there are several inputs")
    tasks = []
    for source in sources:
        target = source.with_suffix(suffix) if folder is None else folder / f"{source.stem}{suffix}"
        if folder is None and output is not None:
            target = tileset or Path(output)
        tasks.append(_task(source, target, folder is not None, companions))
    return tasks


def _task(source: Path, target: Path, make_folder: bool, companions: dict[str, str | None]) -> Task:
    named = {kind: None if name is None else name.replace(STEM, source.stem) for kind, name in companions.items()}
    mask = named.pop("mask", None)
    paths = {kind: None if name is None else Path(name) for kind, name in named.items()}
    return Task(source, target, make_folder, mask, **paths)


def _sources(names: Sequence[str]) -> list[Path]:
    """Return the files that match the names and patterns, without duplicates."""
    found: dict[Path, Path] = {}
    for name in names:
        for path in _matches(name):
            found.setdefault(path.absolute(), path)
    return list(found.values())


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir() and not _is_zarr(path):
        raise click.UsageError(f"{path_text(name)} is a folder: give its normal maps, such as {str(path / '*.png')!r}")
    # The name of a file may contain brackets.
    if path.exists() or not glob.has_magic(name):
        return [path]
    files = [Path(match) for match in sorted(glob.glob(os.path.expanduser(name), recursive=True))]
    files = [file for file in files if file.is_file() and not file.name.endswith(PREVIEW)]
    if not files:
        raise click.UsageError(f"no file matches {name!r}")
    return files


def _is_zarr(folder: Path) -> bool:
    from normalmesh.files.zarr_windows import SIGNS

    return any((folder / sign).is_file() for sign in SIGNS)


def _tileset(output: str | None) -> Path | None:
    """Return the description of 3D Tiles if the output is their folder: it ends with a separator, or has them now."""
    from normalmesh.files.tileset import TILESET, is_tileset_folder

    if not output or not (output.endswith(("/", os.sep)) or is_tileset_folder(Path(output))):
        return None
    return Path(output) / TILESET


def _folder(output: str | None, count: int) -> Path | None:
    """Return the output folder, or None if the outputs go next to the inputs or to one file."""
    if output is None:
        return None
    if not output:
        raise click.UsageError("the name after -o is empty")
    path = Path(output)
    if path.is_dir() or output.endswith(("/", os.sep)):
        return path
    if count == 1:
        return None
    from normalmesh.files.mesh_formats import WRITTEN_SUFFIXES

    if path.suffix.lower() in WRITTEN_SUFFIXES or path.exists():
        raise click.UsageError(f"{path_text(output)} is not a folder: -o must be a folder if there are {count} inputs")
    return path
