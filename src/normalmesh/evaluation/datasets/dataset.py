"""Dataset: name, download address and folder layout of a data set, and loading of its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import dedent, indent

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.evaluation.cases import Case

CAMERAS = ("perspective", "orthographic")


@dataclass(frozen=True)
class Dataset:
    """A data set on disk. Nothing is downloaded; cases are read on demand."""

    name: str  # on the command line, such as "diligent-mv"
    title: str
    address: str  # of the download
    layout: str  # the files that are read, as a directory tree
    find: Callable[[Path], dict[str, Path]]  # folder or file of each case by name, for the folder of the objects
    read: Callable[[str, Path, str], Case]  # a case, given its name, its folder or file, and a camera
    inner: tuple[str, ...] = ()  # subfolders that may contain the objects: archives differ in their top-level folders
    cameras: tuple[str, ...] = CAMERAS  # with which cases can be loaded, the default first
    cameras_of: Callable[[Path], tuple[str, ...]] | None = None  # the same for the folder or file of a case

    def names(self, folder: str | PathLike[str], camera: str | None = None) -> list[str]:
        """Return the names of the cases in a folder; see :meth:`OpenDataset.names`."""
        return OpenDataset(self, Path(folder)).names(camera)

    def load(self, folder: str | PathLike[str], name: str, camera: str | None = None) -> Case:
        """Load one case of a folder; see :meth:`OpenDataset.load`."""
        return OpenDataset(self, Path(folder)).load(name, camera)

    def recognises(self, folder: str | PathLike[str]) -> bool:
        """Return whether a folder has the layout of this data set."""
        return bool(OpenDataset(self, Path(folder)).places())

    def description(self) -> str:
        """Return title, address and layout as text."""
        return f"{self.title}, {self.address}\n{indent(dedent(self.layout).strip(), '    ')}"


@dataclass(frozen=True)
class OpenDataset:
    """A data set and its folder."""

    dataset: Dataset
    folder: Path

    @property
    def cameras(self) -> tuple[str, ...]:
        """``"perspective"``, ``"orthographic"`` or both, the default first."""
        return self.dataset.cameras

    def names(self, camera: str | None = None) -> list[str]:
        """Return the names of all cases, or of those for a camera, without opening files."""
        places = self._places_for(camera)
        return [name for name, place in places.items() if camera is None or camera in self._cameras_of(place)]

    def group(self, name: str) -> str:
        """Return the group of a case, which tables average over: the object of a view, else the case itself."""
        return name.partition("/")[0]

    def load(self, name: str, camera: str | None = None) -> Case:
        """Load one case, by default with the first of :attr:`cameras`.

        If a perspective case is loaded as orthographic, its normals are unchanged and the pixel size is the mean depth
        divided by the focal length, so that errors have the unit of the depth.
        """
        places, title = self._places_for(camera), self.dataset.title
        if name not in places:
            raise NormalMeshError(
                f"{title} in {path_text(self.folder)} has no case {name!r}; its cases are {', '.join(places)}"
            )
        cameras = self._cameras_of(places[name])
        if camera is not None and camera not in cameras:
            raise NormalMeshError(f"the camera of {name} of {title} must be {' or '.join(cameras)}, not {camera!r}")
        try:
            return self.dataset.read(name, places[name], camera or cameras[0])
        except MissingFileError as error:
            raise NormalMeshError(f"{error}; expected:\n{self.dataset.description()}") from None

    def cases(self, camera: str | None = None, names: Iterable[str] | None = None) -> Iterator[Case]:
        """Load the named cases, or all for the camera, one at a time."""
        for name in self.names(camera) if names is None else names:
            yield self.load(name, camera)

    def places(self) -> dict[str, Path]:
        """Return the folder or file of each case by name; empty if the folder holds no such data set."""
        for root in (self.folder, *(self.folder / inner for inner in self.dataset.inner)):
            if root.is_dir() and (places := self.dataset.find(root)):
                return places
        return {}

    def _places_for(self, camera: str | None) -> dict[str, Path]:
        if camera not in (None, *CAMERAS):
            raise NormalMeshError(f"camera must be {' or '.join(CAMERAS)}, not {camera!r}")
        places = self.places()
        if not places:
            found = f"this is not {self.dataset.title}" if self.folder.is_dir() else "there is no such folder"
            raise NormalMeshError(
                f"{path_text(self.folder)}: {found}; download it and point --data to its folder:\n"
                f"{self.dataset.description()}"
            )
        return places

    def _cameras_of(self, place: Path) -> tuple[str, ...]:
        return self.cameras if self.dataset.cameras_of is None else self.dataset.cameras_of(place)


class MissingFileError(NormalMeshError):
    """A case lacks a file."""


def first_file(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the first of these files that exists, or None."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def required_file(folder: Path, *names: str) -> Path:
    """Return the first of these files that exists, or raise an error."""
    if (path := first_file(folder, names)) is not None:
        return path
    others = f" (nor {', '.join(names[1:])})" if names[1:] else ""
    raise MissingFileError(f"{path_text(folder / names[0])}: there is no such file{others}")
