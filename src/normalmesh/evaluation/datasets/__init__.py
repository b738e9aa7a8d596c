"""The data sets of the paper, read from downloaded folders."""

from normalmesh.evaluation.datasets.catalogue import DATASETS, find_dataset, open_dataset
from normalmesh.evaluation.datasets.dataset import Dataset, OpenDataset

__all__ = ["DATASETS", "Dataset", "OpenDataset", "find_dataset", "open_dataset"]
