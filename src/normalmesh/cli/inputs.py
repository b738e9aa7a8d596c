"""The inputs of ``normalmesh reconstruct``: expand file patterns, and find the files that belong to each input."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from normalmesh.cli.output_names import STEM, OutputName
from normalmesh.errors import path_text

#: Suffix of preview pictures.
PREVIEW = ".preview.png"


@dataclass(frozen=True)
class Task:
    """An input, the files read with it, and its outputs: the first one, further ones, and folders to be created."""

    source: Path
    output: Path
    further: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    mask: str | None = None
    texture: Path | None = None
    prior: Path | None = None
    jump_lines: Path | None = None
    depth: Path | None = None
    jumps: Path | None = None

    @property
    def outputs(self) -> tuple[Path, ...]:
        """All outputs of ``-o``."""
        return self.output, *self.further


def tasks_of(
    names: Sequence[str], outputs: Sequence[str], companions: dict[str, str | None], suffix: str = ".glb"
) -> list[Task]:
    """Return one task for each input.

    Parameters
    ----------
    names
        Files and file patterns.
    outputs
        Mesh files, heights, folders of 3D Tiles, or folders for the meshes of several inputs; none: next to each input.
    companions
        Mask, texture, prior, depth, lines and picture of jumps, by field of `Task`.
    suffix
        Of outputs whose name is not given.

    ``{stem}`` in outputs and companions is replaced by the stem of the input.
    """
    sources = _sources(names)
    named = len(sources) == 1 and [str(source) for source in sources] == [str(Path(name)) for name in names]
    targets = [OutputName(output, len(sources), named) for output in outputs]
    for option in ("depth", "jumps"):
        if len(sources) > 1 and companions.get(option) and STEM not in str(companions[option]):
            raise click.UsageError(f"--{option} must contain {STEM} if there are several inputs")
    return [_task(source, targets, companions, suffix) for source in sources]


def _task(source: Path, targets: Sequence[OutputName], companions: dict[str, str | None], suffix: str) -> Task:
    found = [target.path(source, suffix) for target in targets] or [(source.with_suffix(suffix), None)]
    folders = tuple(folder for _, folder in found if folder is not None)
    named = {kind: None if name is None else name.replace(STEM, source.stem) for kind, name in companions.items()}
    mask = named.pop("mask", None)
    paths = {kind: None if name is None else Path(name) for kind, name in named.items()}
    return Task(source, found[0][0], tuple(path for path, _ in found[1:]), folders, mask, **paths)


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
    files = [file for file in files if file.is_file() and not _is_output(file)]
    if not files:
        raise click.UsageError(f"no file matches {name!r}")
    return files


def _is_output(file: Path) -> bool:
    """Check whether a file that a pattern matches is a picture or heights that this command wrote."""
    from normalmesh.files.height_png import is_height_png

    return file.name.endswith(PREVIEW) or is_height_png(file)


def _is_zarr(folder: Path) -> bool:
    from normalmesh.files.zarr_windows import SIGNS

    return any((folder / sign).is_file() for sign in SIGNS)
