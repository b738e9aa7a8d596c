"""The data sets of the paper, read from downloaded folders."""

from normalmesh.evaluation.datasets.catalogue import DATASETS, Dataset, OpenDataset, find_dataset, open_dataset

__all__ = ["DATASETS", "Dataset", "OpenDataset", "find_dataset", "open_dataset"]
