"""What is said of packing is what the engine does, and every trial that trains by itself has its reason."""

import threading

import pytest
import torch
from torch import nn

import unspool as us
from unspool import datasets, train
from unspool.ops.stacked_features import Form
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine import memory
from unspool.study.engine.batching import open_batch
from unspool.study.engine.packing import packing
from unspool.study.engine.tracker import MemoryTracker
from unspool.train import TaskKind, TrainConfig, Trial, TrialLoader


class Locked(nn.Module):
    """A network that holds what cannot be written out."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.only, self.lock = us.nn.Linear(in_features, out_features), threading.Lock()

    def forward(self, x, graph):
        return graph @ self.only(x)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


@pytest.fixture(scope="module")
def loader(data):
    return TrialLoader(data)


def seeds(kind, settings=None, many=3, **config):
    return [Trial(kind, settings or {}, TrainConfig(epochs=2, **config), seed=seed) for seed in range(many)]


@pytest.mark.parametrize(
    ("trials", "word"),
    [
        (seeds(us.models.MLP, optimiser=torch.optim.SGD), "SGD"),
        (seeds(us.models.MLP, precision=train.Precision.BFLOAT16), "bfloat16"),
        (seeds(us.models.MLP, lr_schedule=train.Rates.COSINE, lr_epochs=2), "schedule"),
        (seeds(us.models.MLP, clip=1.0), "clipped"),
        (seeds(us.models.GCN, batch_size=5), "batches"),
        (seeds(us.models.GCN, upper="ce under drop_edges(0.1)"), "graph of its own"),
        (seeds(us.models.APPNP, lower_level=train.LowerLevel.EXACT), "exactly"),
        (seeds(us.models.AirGNN, {"adjoint": us.Checkpointed(every=2)}), "checkpointed"),
    ],
)
def test_a_reason_for_each(trials, word, loader):
    (group,) = packing(trials, loader.prepare).groups
    assert group.trials == 3
    assert group.alone is not None
    assert word in group.alone


def test_reasons_of_losses_and_modules(data, loader):
    (links,) = packing(seeds(us.models.GCN), TrialLoader(data, kind=TaskKind.LINKS).prepare).groups
    assert links.alone is not None
    assert "Link" in links.alone
    (locked,) = packing(seeds(Locked), loader.prepare).groups
    assert locked.alone is not None
    assert "compared" in locked.alone


def test_it_says_what_the_engine_does(loader):
    trials = [
        *seeds(us.models.GCN, {"depth": 2}), *seeds(us.models.GCN, {"depth": 4}, many=2), *seeds(us.models.APPNP), *seeds(us.models.MLP, clip=1.0, many=2),
    ]  # fmt: skip
    opened: list[tuple[type, int]] = []

    def watched(members):
        batch = open_batch(members)
        opened.append((type(batch), len(members)))
        return batch

    us.study.train_trials(trials, loader.prepare, MemoryTracker(), open_batch=watched)
    told = packing(trials, loader.prepare)
    assert sorted(many for kind, many in opened if kind is StackedBatch) == sorted(one.trials for one in told.stacks)
    assert all(kind is StackedBatch for kind, _ in opened)  # who trains by itself is never asked for a stack
    assert [(one.models, one.trials) for one in told.groups if one.alone is not None] == [(("MLP",), 2)]
    assert {one.settings.get("depth") for one in told.stacks if one.models == ("GCN",)} == {2, 4}


def test_memory_decides_how_many_of_a_stack_train_at_once(loader, monkeypatch):
    """Depths, widths and classes each have a stack of their own; where four of one fit, no batch is larger and no trial is left out."""
    monkeypatch.setattr(memory, "SMALL", 0)  # graphs of any size are measured
    monkeypatch.setattr(memory, "_resident_peak", lambda member, open_batch: (20.0, 30.0))  # of two, and of three
    monkeypatch.setattr(memory, "_available", lambda: 50.0)
    trials = [
        *seeds(us.models.GCN, {"depth": 2, "hidden": 4}, many=6), *seeds(us.models.GCN, {"depth": 3, "hidden": 4}, many=5),
        *seeds(us.models.GCN, {"depth": 3, "hidden": 6}), *seeds(us.models.APPNP, {"hidden": 4}),
    ]  # fmt: skip
    told = packing(trials, loader.prepare)
    assert [one.trials for one in told.stacks] == [6, 5, 3, 3]
    widths = {(one.settings["depth"], one.settings["hidden"]) for one in told.stacks if one.models == ("GCN",)}
    assert widths == {(2, 4), (3, 4), (3, 6)}
    opened, tracker = list[int](), MemoryTracker()
    us.study.train_trials(
        trials, loader.prepare, tracker, open_batch=lambda members: opened.append(len(members)) or open_batch(members)
    )
    assert sorted(opened) == [3, 3, 4, 4]  # a slot whose trial has ended takes the next one
    assert (set(tracker.results), tracker.failures) == (set(trials), {})


def test_a_trial_that_cannot_be_built_hides_no_stack(loader):
    trials = [Trial(us.models.GCN, {"dropout": rate}, TrainConfig(epochs=2)) for rate in (1.5, 0.2, 0.3)]
    told = packing(trials, loader.prepare)
    assert sum(one.trials for one in told.groups) == 3
    assert told.stacks
    (bad,) = packing(trials[:1], loader.prepare).groups
    assert bad.alone is not None
    assert "built" in bad.alone


def test_the_form_of_sparse_features():
    loader = TrialLoader(datasets.load("citeseer"))
    assert packing([Trial(us.models.SGC)], loader.prepare).form is Form.SPARSE


class Drawn(nn.Module):
    """A random tensor that is no buffer."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.only, self.signs = us.nn.Linear(in_features, out_features), torch.rand(out_features)

    def forward(self, x, graph):
        return graph @ self.only(x) * self.signs


def test_networks_that_differ_from_seed_to_seed_are_not_called_a_stack(loader):
    (group,) = packing(seeds(Drawn), loader.prepare).groups
    assert "neither a parameter nor a buffer is another in each trial" in str(group.alone)
