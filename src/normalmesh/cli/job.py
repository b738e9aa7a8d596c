"""Job: one input of ``normalmesh reconstruct``, with the files read and written for it, and the options of all inputs.

File patterns are expanded, and ``{stem}`` in names is replaced by the name of each input.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

import normalmesh as nm
from normalmesh.cli.settings import NEEDS_PERSPECTIVE, Settings
from normalmesh.errors import path_text
from normalmesh.files.encoding import DEPTH_SUFFIXES
from normalmesh.files.height_png import is_height_png
from normalmesh.files.windowed_arrays import can_be_opened
from normalmesh.files.zarr_windows import SIGNS
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.mesh_writing import SOLID_SUFFIXES
from normalmesh.output.tileset import TILESET, is_tileset_folder

#: Suffix of preview pictures.
PREVIEW = ".preview.png"
#: Placeholder for the name of an input without folder and suffix.
STEM = "{stem}"


@dataclass(frozen=True)
class Job:
    """An input, its outputs, the folders to be created for them, the files read or written with it, and the options."""

    source: Path
    outputs: tuple[Path, ...]
    folders: tuple[Path, ...]
    settings: Settings
    mask: Path | None = None
    texture: Path | None = None
    prior: Path | None = None
    jump_lines: Path | None = None
    depth: Path | None = None
    jumps: Path | None = None

    @property
    def output(self) -> Path:
        """The first output."""
        return self.outputs[0]

    @property
    def inputs(self) -> list[Path | str | None]:
        """All files that are read."""
        return [self.source, self.mask, self.texture, self.prior, self.jump_lines, self.settings.camera]

    def normal_map(self) -> NormalMap | MapOnDisk:
        """Return the map: in tiles, one that stays on disk, if its format can be read in windows."""
        stays_on_disk = self.settings.tiles and can_be_opened(self.source)
        read = NormalMap.open if stays_on_disk else nm.read_normal_map
        camera = self.settings.camera_argument(self.source)
        return read(self.source, self.mask, camera, self.settings.convention, alpha=self.settings.alpha)

    def check(self) -> None:
        """Raise a usage error for files that contradict the options."""
        for conflict in self._conflicts():
            raise click.UsageError(conflict)

    def _conflicts(self) -> Iterator[str]:
        settings = self.settings
        # The camera may be in the file of a map.
        may_hold_camera = not settings.has_camera and self.source.suffix.lower() == ".npz"
        if settings.distance is not None and not settings.is_perspective and not may_hold_camera:
            yield NEEDS_PERSPECTIVE
        if settings.continuous and self.jump_lines is not None:
            yield "give only one of --continuous, --jump-lines"
        if settings.continuous and self.jumps is not None:
            yield "--continuous cuts nothing that --jumps could draw: give only one of them"
        if settings.flatten is not None and self.prior is not None:
            yield "--flatten takes away what --prior determines: give only one of them"
        if settings.solid is not None and self.texture is not None:
            yield "a solid has no texture: leave out --texture or --solid"
        # Options of GLB files, where no surface is written to one.
        for name in ["--scale"] * (settings.scale not in (None, "auto")) + ["--no-centre"] * settings.no_centre:
            if settings.solid is not None:
                yield f"{name} has no effect on a solid: leave it out; --width scales a solid"
            if not any(output.suffix.lower() == ".glb" for output in self.outputs):
                yield f"{name} is for GLB files only: write one with -o, or leave {name} out"


def jobs_of(
    names: Sequence[str], outputs: Sequence[str], companions: Mapping[str, str | None], settings: Settings
) -> list[Job]:
    """Return one job for each input that files and patterns name.

    ``outputs`` are mesh files, heights, folders of 3D Tiles, or folders for the meshes of several inputs; none: next to
    each input. ``companions`` are mask, texture, prior, depth, lines and picture of jumps, by field of `Job`.
    ``{stem}`` in both is replaced by the stem of the input.
    """
    sources = _sources(names)
    named = len(sources) == 1 and [str(source) for source in sources] == [str(Path(name)) for name in names]
    for output in outputs:
        _check_output_name(output, len(sources))
    for option in ("depth", "jumps"):
        if len(sources) > 1 and companions.get(option) and STEM not in str(companions[option]):
            raise click.UsageError(f"--{option} must contain {STEM} if there are several inputs")
    suffix = ".glb" if settings.solid is None else ".stl"
    jobs = []
    for source in sources:
        found = [_output_path(output, source, suffix, len(sources), named) for output in outputs]
        paths, folders = zip(*(found or [(source.with_suffix(suffix), None)]), strict=True)
        files = {kind: Path(name.replace(STEM, source.stem)) for kind, name in companions.items() if name is not None}
        jobs.append(Job(source, paths, tuple(filter(None, folders)), settings, **files))
    return jobs


def _check_output_name(text: str, inputs: int) -> None:
    """Raise a usage error if what follows ``-o`` cannot be the output of so many inputs."""
    if not text:
        raise click.UsageError("the name after -o is empty")
    path = Path(text)
    may_be_folder = STEM in text or _ends_with_separator(text) or path.is_dir()
    is_file = path.suffix.lower() in (*SOLID_SUFFIXES, *DEPTH_SUFFIXES) or path.exists()
    if inputs > 1 and is_file and not may_be_folder:
        raise click.UsageError(
            f"{path_text(text)} is not a folder: -o must be a folder, or contain {STEM}, if there are {inputs} inputs"
        )


def _output_path(text: str, source: Path, suffix: str, inputs: int, named: bool) -> tuple[Path, Path | None]:
    """Return the output of an input, with this suffix in a folder, and the folder to be created for it, if any.

    ``text`` follows ``-o``: a file, the folder of 3D Tiles, a folder for the GLB files of several inputs; or any of
    them with ``{stem}`` in its name. ``named`` is whether the only input was given by its name, not by a pattern.
    """
    path = Path(text.replace(STEM, source.stem))
    # The name of a folder of 3D Tiles ends with a separator, or it has them now.
    is_tileset = _ends_with_separator(text) or is_tileset_folder(path)
    if STEM in text:
        return (path / TILESET if is_tileset else path), path.parent
    if named and is_tileset:
        return path / TILESET, None
    if path.is_dir() or _ends_with_separator(text) or inputs > 1:
        return path / f"{source.stem}{suffix}", path
    return path, None


def _ends_with_separator(text: str) -> bool:
    return text.endswith(("/", os.sep))


def _sources(names: Sequence[str]) -> list[Path]:
    """Return the files that match the names and patterns, without duplicates."""
    found: dict[Path, Path] = {}
    for name in names:
        for path in _matches(name):
            found.setdefault(path.absolute(), path)
    return list(found.values())


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir() and not any((path / sign).is_file() for sign in SIGNS):
        raise click.UsageError(f"{path_text(name)} is a folder: give its normal maps, such as {str(path / '*.png')!r}")
    # The name of a file may contain brackets.
    if path.exists() or not glob.has_magic(name):
        return [path]
    files = [Path(match) for match in sorted(glob.glob(os.path.expanduser(name), recursive=True))]
    # Not the pictures and heights that this command wrote.
    files = [file for file in files if file.is_file() and not (file.name.endswith(PREVIEW) or is_height_png(file))]
    if not files:
        raise click.UsageError(f"no file matches {name!r}")
    return files
