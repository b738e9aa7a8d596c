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
    jumps: Path | None = None


def tasks_of(names: Sequence[str], output: str | None, companions: dict[str, str | None]) -> list[Task]:
    """Return one task for each input.

    Parameters
    ----------
    names
        Files and file patterns.
    output
        A mesh file, or a folder if there are several inputs; None: next to each input.
    companions
        Mask, texture, prior, lines and picture of jumps, by field of `Task`; ``{stem}`` in them is replaced by the
        stem of the input.
    """
    sources = _sources(names)
    folder = _folder(output, len(sources))
    if len(sources) > 1 and companions.get("jumps") and STEM not in str(companions["jumps"]):
        raise click.UsageError(f"--jumps must contain {STEM} if there are several inputs")
    tasks = []
    for source in sources:
        target = source.with_suffix(".glb") if folder is None else folder / f"{source.stem}.glb"
        if folder is None and output is not None:
            target = Path(output)
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
