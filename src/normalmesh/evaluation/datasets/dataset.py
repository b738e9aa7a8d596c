"""Dataset: name, download address and folder layout of a data set, and loading of its cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import dedent, indent

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.evaluation.cases import Case

CAMERAS = ("perspective", "orthographic")


class Dataset(ABC):
    """A data set on disk. Nothing is downloaded; cases are read on demand.

    Attributes
    ----------
    name
        Name on the command line, such as ``"diligent-mv"``.
    title
        Full name.
    address
        Download address.
    layout
        The files that are read, as a directory tree.
    inner
        Subfolders that may contain the objects, because archives differ in their top-level folders.
    cameras
        Cameras with which cases can be loaded: ``"perspective"``, ``"orthographic"`` or both, the default first.
    """

    name: str
    title: str
    address: str
    layout: str
    inner: tuple[str, ...] = ()
    cameras: tuple[str, ...] = CAMERAS

    def names(self, folder: str | PathLike[str], camera: str | None = None) -> list[str]:
        """Return the names of the cases in a folder, all or those for a camera, without opening files."""
        _check_camera(camera)
        places = self._places_or_error(Path(folder))
        return [name for name, place in places.items() if camera is None or camera in self._cameras(place)]

    def group(self, name: str) -> str:
        """Return the group of a case, which tables average over: the object of a view, else the case itself."""
        return name.partition("/")[0]

    def load(self, folder: str | PathLike[str], name: str, camera: str | None = None) -> Case:
        """Load one case.

        Parameters
        ----------
        folder
            The folder of the whole data set.
        name
            One of :meth:`names`.
        camera
            ``"perspective"`` or ``"orthographic"``; default: the first of :attr:`cameras`. If a perspective case is
            loaded as orthographic, its normals are unchanged and the pixel size is the mean depth divided by the focal
            length, so that errors have the unit of the depth.

        Raises
        ------
        NormalMeshError
            If the data set, the case or a file of it is missing or unusable; the message names the file.
        """
        _check_camera(camera)
        places = self._places_or_error(Path(folder))
        if name not in places:
            raise NormalMeshError(
                f"{self.title} in {path_text(folder)} has no case {name!r}; its cases are {', '.join(places)}"
            )
        cameras = self._cameras(places[name])
        if camera is not None and camera not in cameras:
            raise NormalMeshError(
                f"the camera of {name} of {self.title} must be {' or '.join(cameras)}, not {camera!r}"
            )
        return self._load(name, places[name], camera or cameras[0])

    def cases(
        self, folder: str | PathLike[str], camera: str | None = None, names: Iterable[str] | None = None
    ) -> Iterator[Case]:
        """Load the named cases, or all for the camera, one at a time."""
        for name in self.names(folder, camera) if names is None else names:
            yield self.load(folder, name, camera)

    def recognises(self, folder: str | PathLike[str]) -> bool:
        """Return whether a folder has the layout of this data set."""
        return bool(self._places(Path(folder)))

    def description(self) -> str:
        """Return title, address and layout as text."""
        return f"{self.title}, {self.address}\n{indent(dedent(self.layout).strip(), '    ')}"

    @abstractmethod
    def _places_in(self, root: Path) -> dict[str, Path]:
        """Return the folder or file of each case by name, for the folder of the objects; empty if there are none."""

    @abstractmethod
    def _load(self, name: str, place: Path, camera: str) -> Case:
        """Load the case in a folder or file."""

    def _cameras(self, place: Path) -> tuple[str, ...]:
        """Return the cameras with which a case can be loaded, the default first."""
        return self.cameras

    def _file(self, folder: Path, *names: str) -> Path:
        """Return the first of these files that exists, or raise an error with the expected layout."""
        for name in names:
            if (folder / name).is_file():
                return folder / name
        others = f" (nor {', '.join(names[1:])})" if names[1:] else ""
        raise NormalMeshError(
            f"{path_text(folder / names[0])}: there is no such file{others}; expected:\n{self.description()}"
        )

    def _places(self, folder: Path) -> dict[str, Path]:
        for root in (folder, *(folder / inner for inner in self.inner)):
            if root.is_dir() and (places := self._places_in(root)):
                return places
        return {}

    def _places_or_error(self, folder: Path) -> dict[str, Path]:
        places = self._places(folder)
        if not places:
            found = "there is no such folder" if not folder.is_dir() else f"this is not {self.title}"
            raise NormalMeshError(
                f"{path_text(folder)}: {found}; download it and point --data to its folder:\n{self.description()}"
            )
        return places


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
        return self.dataset.names(self.folder, camera)

    def group(self, name: str) -> str:
        """Return the group of a case, which tables average over: the object of a view, else the case itself."""
        return self.dataset.group(name)

    def load(self, name: str, camera: str | None = None) -> Case:
        """Load one case; see :meth:`Dataset.load`."""
        return self.dataset.load(self.folder, name, camera)

    def cases(self, camera: str | None = None, names: Iterable[str] | None = None) -> Iterator[Case]:
        """Load the named cases, or all for the camera, one at a time."""
        return self.dataset.cases(self.folder, camera, names)


def _check_camera(camera: str | None) -> None:
    if camera not in (None, *CAMERAS):
        raise NormalMeshError(f"camera must be {' or '.join(CAMERAS)}, not {camera!r}")


def first_file(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the first of these files that exists, or None."""
    return next((folder / name for name in names if (folder / name).is_file()), None)
