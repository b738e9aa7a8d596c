"""The paper's data, where somebody has downloaded it: which sets there are, and their cases one by one."""

from normalmesh.evaluation.datasets.catalogue import DATASETS, find_dataset, open_dataset
from normalmesh.evaluation.datasets.dataset import Dataset, OpenDataset

__all__ = ["DATASETS", "Dataset", "OpenDataset", "find_dataset", "open_dataset"]
