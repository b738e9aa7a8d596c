"""The paper's data, where somebody has downloaded it: which sets there are, and their cases one by one."""

from normalmesh.evaluation.datasets.catalogue import DATASETS, find_dataset, open_dataset
from normalmesh.evaluation.datasets.dataset import Dataset

__all__ = ["DATASETS", "Dataset", "find_dataset", "open_dataset"]
