"""All data sets, by name or recognised by the layout of a folder, and loading of their cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import dedent, indent

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets import diligent_mv, picture_folders
from normalmesh.evaluation.datasets.case_assembly import CAMERAS, MissingFileError


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


#: All data sets, those with the most specific files first: a folder belongs to the first that recognises it.
DATASETS = (
    Dataset(
        name="diligent-mv",
        title="DiLiGenT-MV",
        address="https://sites.google.com/site/photometricstereodata/mv",
        layout="""
        DiLiGenT-MV/mvpmsData/
            bearPNG/                 and buddhaPNG, cowPNG, pot2PNG, readingPNG
                Calib_Results.mat    KK, Rc_1, Tc_1 ... Rc_20, Tc_20
                mesh_Gt.ply
                view_01/             to view_20
                    Normal_gt.mat    Normal_gt (rows, columns, 3)
                    mask.png
        """,
        inner=("mvpmsData", "DiLiGenT-MV/mvpmsData", "DiLiGenT-MV"),
        find=diligent_mv.find,
        read=diligent_mv.read,
    ),
    Dataset(
        name="diligent",
        title="DiLiGenT",
        address="https://sites.google.com/site/photometricstereodata/single",
        layout="""
        DiLiGenT/pmsData/
            bearPNG/                 and ballPNG, buddhaPNG, catPNG, ...
                Normal_gt.mat        Normal_gt (rows, columns, 3)
                mask.png
                K.txt                optional: 3×3 intrinsics, pixel centres at integers
            diligent_depth_GT/       optional, here or one level up
                bear_gt.mat          depth_gt (rows, columns), mm
        """,
        inner=("pmsData", "DiLiGenT/pmsData", "DiLiGenT"),
        find=picture_folders.find_diligent,
        read=picture_folders.read_diligent,
    ),
    Dataset(
        name="luces",
        title="LUCES",
        address="http://www.robertomecca.com/luces.html",
        layout="""
        LUCES/data/
            Bell/                    and Ball, Bowl, Buddha, Bunny, Cup, ...
                led_params.txt       line 2: N_img nrows ncols f x0 y0 mean_distance
                normals.png          16-bit RGB
                mask.png
                zgt.npz              zgt (rows, columns), mm
        """,
        inner=("data", "LUCES/data", "Luces/data", "LUCES"),
        find=picture_folders.find_luces,
        read=picture_folders.read_luces,
    ),
    Dataset(
        name="harvard",
        title="the photometric stereo data set of Harvard (PSData)",
        address="https://vision.seas.harvard.edu/qsfs/Data.html",
        layout="""
        PSData/
            cat/                     and frog, hippo, lizard, pig, scholar, turtle
                result.mat           n (rows, columns, 3)
        """,
        inner=("PSData",),
        find=picture_folders.find_harvard,
        read=picture_folders.read_harvard,
        cameras=("orthographic",),
    ),
    Dataset(
        name="folders",
        title="plain folders, one per case",
        address="your own data",
        layout="""
        cases/
            vase/                    any name
                normals.png          or .exr, .tif, .npy, .npz, .mat
                mask.png             optional; default: the alpha channel, or all pixels that are not black
                K.txt                optional: 3×3 intrinsics, pixel centres at integers; default: orthographic
                depth.npz            optional: depth (rows, columns); or .npy, .exr, .tif, .mat
                meta.json            optional: {"units": "mm"}
        """,
        find=picture_folders.find_folders,
        read=picture_folders.read_folder,
        cameras_of=picture_folders.cameras_of_folder,
    ),
    Dataset(
        name="rgbn",
        title="RGBN",
        address="https://gfx.cs.princeton.edu/gfx/proj/rgbn/",
        layout="""
        RGBN/
            pinecone-normals.png     or pinecone/normals.png, normals/pinecone.png, pinecone_n.png; also TIFF, JPEG, EXR
            pinecone-mask.png        optional; the colour pictures are not read
        """,
        find=picture_folders.find_rgbn,
        read=picture_folders.read_rgbn,
        cameras=("orthographic",),
    ),
)


def find_dataset(name: str) -> Dataset:
    """Return the data set with a name, such as ``"diligent-mv"``."""
    for dataset in DATASETS:
        if dataset.name == name.strip().lower():
            return dataset
    raise NormalMeshError(f"unknown data set {name!r}; known: {', '.join(each.name for each in DATASETS)}")


def open_dataset(folder: str | PathLike[str]) -> OpenDataset:
    """Return the data set in a folder, recognised by its layout.

    Raises
    ------
    NormalMeshError
        If the folder does not exist or contains no known data set; the message has the address and layout of each.
    """
    path = Path(folder)
    for opened in (OpenDataset(dataset, path) for dataset in DATASETS):
        if opened.places():
            return opened
    found = "contains no known data set" if path.is_dir() else "there is no such folder"
    known = "\n\n".join(dataset.description() for dataset in DATASETS)
    raise NormalMeshError(f"{path_text(path)}: {found}. Point --data to the folder of one of these:\n\n{known}")
