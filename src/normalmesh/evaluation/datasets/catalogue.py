"""All data sets, by name or recognised by the layout of a folder."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.evaluation.datasets import diligent_mv, picture_folders
from normalmesh.evaluation.datasets.dataset import Dataset, OpenDataset

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
    for dataset in DATASETS:
        if dataset.recognises(path):
            return OpenDataset(dataset, path)
    found = "contains no known data set" if path.is_dir() else "there is no such folder"
    known = "\n\n".join(dataset.description() for dataset in DATASETS)
    raise NormalMeshError(f"{path_text(path)}: {found}. Point --data to the folder of one of these:\n\n{known}")
