"""A space of seconds: few structures, few epochs, one small data set under a split that no label draws."""

import tomllib
from importlib import resources
from pathlib import Path

import pytest
import torch

from unspool import datasets
from unspool.datasets import Split

SPACE = """
datasets = ["small"]
search_seed = 100
final_seed = 30
final_seeds = 2
epochs = 6
patience = 6
shares = [0.6, 0.4]
together = 1
common = 2
averaged = { StableGNN = 2, GRAND = 1 }
budget.small = { structures = 2, numbers = 3, stages = [[1, 3]], last = 2 }
[structure]
steps = ["uniform", "learnt"]
signal = ["hidden"]
depth = [2, 3]
hidden = [8]
batch_norm = [false]
labels = ["ce", "class_mass"]
views = [2]
normalise_rows = [false]
[numbers]
lr = [0.01, 0.05]
weight_decay = [0.0, 5e-4]
dropout = [0.0, 0.5]
head_dropout = [0.2]
teleport = [0.1]
monitor = ["valid_score", "valid_loss"]
weight = [0.5, 2.5]
warm_up = [0, 5]
temperature = [0.5]
confidence = [0.0, 0.5]
drop_nodes = [0.5]
strength = [0.5]
[entries.StableGNN]
[entries.GRAND]
steps = ["uniform"]
labels = ["ce"]
[sets.small]
"""


@pytest.fixture
def space(tmp_path, monkeypatch):
    """The file of the space, in the place of the one that ships."""
    folder = tmp_path / "package" / "experiments"
    folder.mkdir(parents=True)
    real = resources.files("unspool.reproduce") / "experiments" / "published.toml"
    (folder / "published.toml").write_text(real.read_text(encoding="utf-8"), encoding="utf-8")
    file = folder / "lead.toml"
    file.write_text(SPACE, encoding="utf-8")
    assert tomllib.loads(SPACE)["sets"] == {"small": {}}
    monkeypatch.setattr(resources, "files", lambda _: folder.parent)
    return file


@pytest.fixture
def small(monkeypatch):
    """The data set; what `load` gives from now on, whatever is asked for."""
    drawn = datasets.contextual_sbm(nodes=90, classes=3, signal=0.7, degree=4, seed=0)
    order = torch.randperm(90, generator=torch.Generator().manual_seed(1))
    data = drawn.with_split(Split(order[:15], order[15:45], order[45:], 90, name="fixed"))
    held = {"data": data}
    monkeypatch.setattr("unspool.reproduce.lead.run.data_sets.load", lambda name, root: held["data"])
    return held


@pytest.fixture
def out(tmp_path):
    return Path(tmp_path / "out")
