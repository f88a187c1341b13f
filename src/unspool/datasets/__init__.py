"""Graphs with features, labels and splits: by name, from generators, or from files of your own.

>>> from unspool import datasets
>>> data = datasets.load("citeseer")  # ships with the package
>>> data.features, data.graph, data.split
(SparseFeatures(...), Graph(...), Split(public: 120 train, 500 valid, 1000 test of 3327 nodes, ...))
"""

from unspool.datasets import splits
from unspool.datasets.checking import DataCheck, FileCheck, check, check_files
from unspool.datasets.dataset import Dataset
from unspool.datasets.files import from_files
from unspool.datasets.generate import contextual_sbm, grid, sensor
from unspool.datasets.named_sets import Entry, catalogue, load
from unspool.datasets.own import from_networkx, from_pyg, from_scipy, from_tensors
from unspool.datasets.split import Split
from unspool.datasets.statistics import Statistics, table3

__all__ = [
    "DataCheck",
    "Dataset",
    "Entry",
    "FileCheck",
    "Split",
    "Statistics",
    "catalogue",
    "check",
    "check_files",
    "contextual_sbm",
    "from_files",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "from_tensors",
    "grid",
    "load",
    "sensor",
    "splits",
    "table3",
]
