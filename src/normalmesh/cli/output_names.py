"""Where ``-o`` of ``normalmesh reconstruct`` leads: files, folders, and names made of those of the inputs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from normalmesh.errors import path_text

#: Placeholder for the name of an input without folder and suffix.
STEM = "{stem}"


@dataclass(frozen=True)
class OutputName:
    """What follows one ``-o``.

    Attributes
    ----------
    text
        As given: a file, the folder of 3D Tiles, a folder for the GLB files of several inputs; or any of them with
        ``{stem}`` in its name.
    inputs
        Number of inputs.
    named
        Whether the only input was given by its name, not by a pattern.
    """

    text: str
    inputs: int
    named: bool

    def __post_init__(self) -> None:
        from normalmesh.files.encoding import DEPTH_SUFFIXES
        from normalmesh.output.solid_writing import SOLID_SUFFIXES

        if not self.text:
            raise click.UsageError("the name after -o is empty")
        path = Path(self.text)
        is_file = path.suffix.lower() in (*SOLID_SUFFIXES, *DEPTH_SUFFIXES) or path.exists()
        if (
            self.inputs > 1
            and STEM not in self.text
            and not self._ends_with_separator
            and not path.is_dir()
            and is_file
        ):
            raise click.UsageError(
                f"{path_text(self.text)} is not a folder: -o must be a folder, or contain {STEM}, if there are "
                f"{self.inputs} inputs"
            )

    @property
    def _ends_with_separator(self) -> bool:
        return self.text.endswith(("/", os.sep))

    def path(self, source: Path, suffix: str = ".glb") -> tuple[Path, Path | None]:
        """Return the output of an input, with this suffix in a folder, and the folder to be created for it, if any."""
        from normalmesh.output.tileset import TILESET

        text = self.text.replace(STEM, source.stem)
        path = Path(text)
        if STEM in self.text:
            target = path / TILESET if self._is_tileset(text) else path
            return target, path.parent
        if self.named and self._is_tileset(text):
            return path / TILESET, None
        if path.is_dir() or self._ends_with_separator or self.inputs > 1:
            return path / f"{source.stem}{suffix}", path
        return path, None

    def _is_tileset(self, text: str) -> bool:
        """Check whether a name is a folder of 3D Tiles: it ends with a separator, or has them now."""
        from normalmesh.output.tileset import is_tileset_folder

        return self._ends_with_separator or is_tileset_folder(Path(text))
