"""Dataset: what a data set is called, where it is from, how its folder looks, and how its cases are loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import dedent, indent

from normalmesh.errors import NormalMeshError
from normalmesh.evaluation.cases import Case

CAMERAS = ("perspective", "orthographic")


class Dataset(ABC):
    """A data set on disk. Nothing is downloaded; a case is read when it is asked for.

    Attributes
    ----------
    name
        What the command line calls it, such as ``"diligent-mv"``.
    title
        What people call it.
    address
        Where it can be downloaded.
    layout
        The files that are read, as a tree.
    inner
        Where in the folder the objects may be, if not in the folder itself: archives bring folders of their own.
    cameras
        ``"perspective"``, ``"orthographic"`` or both: how the cases may be loaded, the default first.
    """

    name: str
    title: str
    address: str
    layout: str
    inner: tuple[str, ...] = ()
    cameras: tuple[str, ...] = CAMERAS

    def names(self, folder: str | PathLike[str], camera: str | None = None) -> list[str]:
        """Names of the cases in a folder, in the order of tables: all, or those for a camera. No file is opened."""
        _check_camera(camera)
        places = self._places_or_error(Path(folder))
        return [name for name, place in places.items() if camera is None or camera in self._cameras(place)]

    def group(self, name: str) -> str:
        """What tables average over: the object of a view, else the case itself."""
        return name.partition("/")[0]

    def load(self, folder: str | PathLike[str], name: str, camera: str | None = None) -> Case:
        """One case.

        Parameters
        ----------
        folder
            The folder of the whole data set.
        name
            One of :meth:`names`.
        camera
            ``"perspective"`` or ``"orthographic"``; default: the first of :attr:`cameras`. Orthographic cases of a
            perspective camera keep their normals and take the mean depth over the focal length for the size of a
            pixel, so that errors are in the unit of the depth.

        Raises
        ------
        NormalMeshError
            The data set, the case or a part of it is missing or cannot be used; the message names the file.
        """
        _check_camera(camera)
        places = self._places_or_error(Path(folder))
        if name not in places:
            raise NormalMeshError(f"{self.title} in {folder} has no case {name!r}; it has {', '.join(places)}")
        cameras = self._cameras(places[name])
        if camera is not None and camera not in cameras:
            raise NormalMeshError(f"{name} of {self.title} can be {' or '.join(cameras)}, not {camera!r}")
        return self._load(name, places[name], camera or cameras[0])

    def cases(
        self, folder: str | PathLike[str], camera: str | None = None, names: Iterable[str] | None = None
    ) -> Iterator[Case]:
        """The named cases, or all that there are for the camera, each loaded when its turn comes."""
        for name in self.names(folder, camera) if names is None else names:
            yield self.load(folder, name, camera)

    def recognises(self, folder: str | PathLike[str]) -> bool:
        """Whether a folder looks like this data set."""
        return bool(self._places(Path(folder)))

    def description(self) -> str:
        """Title, address and layout, for people."""
        return f"{self.title}, {self.address}\n{indent(dedent(self.layout).strip(), '    ')}"

    @abstractmethod
    def _places_in(self, root: Path) -> dict[str, Path]:
        """Name of each case → its folder or file, for the folder that holds the objects; empty where there are none."""

    @abstractmethod
    def _load(self, name: str, place: Path, camera: str) -> Case:
        """The case at a place."""

    def _cameras(self, place: Path) -> tuple[str, ...]:
        """How the case at a place may be loaded, the default first."""
        return self.cameras

    def _piece(self, folder: Path, *names: str) -> Path:
        """The first of these files that is there, or an error that says what was expected."""
        for name in names:
            if (folder / name).is_file():
                return folder / name
        others = f" (nor {', '.join(names[1:])})" if names[1:] else ""
        raise NormalMeshError(f"{folder / names[0]}: there is no such file{others}; expected is\n{self.description()}")

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
                f"{folder}: {found}; download it and point --data to its folder:\n{self.description()}"
            )
        return places


@dataclass(frozen=True)
class OpenDataset:
    """A data set and the folder that holds it."""

    dataset: Dataset
    folder: Path

    @property
    def cameras(self) -> tuple[str, ...]:
        """``"perspective"``, ``"orthographic"`` or both, the default first."""
        return self.dataset.cameras

    def names(self, camera: str | None = None) -> list[str]:
        """Names of all cases, or of those for a camera. No file is opened."""
        return self.dataset.names(self.folder, camera)

    def group(self, name: str) -> str:
        """What tables average over: the object of a view, else the case itself."""
        return self.dataset.group(name)

    def load(self, name: str, camera: str | None = None) -> Case:
        """One case; see :meth:`Dataset.load`."""
        return self.dataset.load(self.folder, name, camera)

    def cases(self, camera: str | None = None, names: Iterable[str] | None = None) -> Iterator[Case]:
        """The named cases, or all that there are for the camera, each loaded when its turn comes."""
        return self.dataset.cases(self.folder, camera, names)


def _check_camera(camera: str | None) -> None:
    if camera not in (None, *CAMERAS):
        raise NormalMeshError(f"camera must be {' or '.join(CAMERAS)}, not {camera!r}")


def first_file(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that is there."""
    return next((folder / name for name in names if (folder / name).is_file()), None)
