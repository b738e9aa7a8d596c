"""All data sets, by name or recognised by the layout of a folder."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.evaluation.datasets.dataset import Dataset, OpenDataset
from normalmesh.evaluation.datasets.diligent import Diligent
from normalmesh.evaluation.datasets.diligent_mv import DiligentMV
from normalmesh.evaluation.datasets.harvard import Harvard
from normalmesh.evaluation.datasets.luces import Luces
from normalmesh.evaluation.datasets.plain_folders import PlainFolders
from normalmesh.evaluation.datasets.rgbn import Rgbn

#: All data sets, those with the most specific files first: a folder belongs to the first that recognises it.
DATASETS: tuple[Dataset, ...] = (DiligentMV(), Diligent(), Luces(), Harvard(), PlainFolders(), Rgbn())


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
