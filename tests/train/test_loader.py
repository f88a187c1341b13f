"""Trials made ready: data once, splits by seed, tasks that share their tensors, fingerprints that tell data, splits and losses apart."""

import itertools
from dataclasses import replace

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.train import DataRecord, TaskKind, TrainConfig, Trial, TrialLoader


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=3, seed=0)


@pytest.fixture(scope="module")
def fixed(data):
    """With a split that stands alone."""
    split = data.split
    own = datasets.Split(split.train, split.valid, split.test, nodes=60)
    return datasets.from_tensors(data.edge_index, data.features, labels=data.labels, split=own)


def test_where_splits_are_drawn_each_seed_has_its_own(data):
    loader = TrialLoader(data)
    for seed in range(3):
        expected = datasets.splits.repetition(data, seed)
        task = loader.task(seed)
        assert loader.split(seed).hash == expected.hash
        assert torch.equal(task.train, expected.train)
        assert torch.equal(task.test, expected.test)
    assert len({loader.split(seed).hash for seed in range(3)}) == 3


def test_a_split_that_stands_alone_is_the_same_for_all_seeds(fixed):
    loader = TrialLoader(fixed)
    assert len({loader.split(seed).hash for seed in range(3)}) == 1
    assert loader.task(0) is loader.task(1)


def test_tasks_share_their_tensors(data):
    loader = TrialLoader(data)
    one, other, rows = loader.task(0), loader.task(1), loader.task(0, normalise_rows=True)
    assert one.x is other.x
    assert one.graph is other.graph is rows.graph
    assert one.target is other.target is rows.target
    assert one.loss is other.loss is rows.loss
    assert loader.task(0) is one
    assert not torch.equal(rows.x, one.x)
    assert torch.equal(rows.x, data.row_normalised().features)


def test_a_prepared_trial_is_what_train_trial_trains(data):
    loader, trial = (
        TrialLoader(data),
        Trial(us.models.GPRGNN, {"hidden": 8}, TrainConfig(epochs=4), seed=3, normalise_rows=True),
    )
    torch.manual_seed(9)
    before = torch.get_rng_state()
    ready = loader.prepare(trial)
    assert torch.equal(torch.get_rng_state(), before)
    assert ready.trial is trial
    assert ready.task is loader.task(3, normalise_rows=True)
    assert ready.model.out_features == loader.outputs == 3
    built = trial.build(data.features.shape[1], 3)
    assert all(
        torch.equal(a, b) for a, b in zip(ready.model.state_dict().values(), built.state_dict().values(), strict=True)
    )
    with train.seeded(None):
        torch.set_rng_state(ready.generator)
        run = train.fit(ready.model, ready.task, trial.config)
    assert run.history == train.train_trial(trial, loader)[1].history


def test_fingerprints_tell_data_splits_and_losses_apart(data, fixed):
    moved = data.features.clone()
    moved[0, 0] = torch.nextafter(moved[0, 0], torch.tensor(9.0))
    other = fixed.with_split(datasets.splits.random(data.labels, seed=7))
    found = [
        TrialLoader(data), TrialLoader(replace(data, features=moved)), TrialLoader(fixed), TrialLoader(other),
        TrialLoader(data, kind=TaskKind.LINKS), TrialLoader(data, loss=torch.nn.functional.cross_entropy),
    ]  # fmt: skip
    for a, b in itertools.combinations(found, 2):
        assert a.fingerprint != b.fingerprint
    again = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    assert TrialLoader(again).fingerprint == found[0].fingerprint
    assert TrialLoader(data, loss=train.CrossEntropy()).fingerprint == found[0].fingerprint


def test_what_is_kept_of_the_data(data):
    expected = DataRecord(
        data.name.lower(), TrialLoader(data).fingerprint, score="accuracy", kind="classes", source=None
    )
    assert TrialLoader(data).record == expected
    assert TrialLoader(data, kind=TaskKind.LINKS).record.kind == "links"
    named = TrialLoader("citeseer")
    assert named.record.source == {"dataset": "citeseer"}
    assert (named.name, named.record.name) == ("citeseer", "citeseer")
    assert TrialLoader(data, source={"nodes": "nodes.csv"}).record.source == {"nodes": "nodes.csv"}


def test_a_loss_of_ones_own_takes_the_place_of_the_usual(data):
    def loss(output, target):
        return torch.nn.functional.cross_entropy(output, target, label_smoothing=0.1)

    loader = TrialLoader(data, loss=loss)
    assert isinstance(loader.task().loss, train.Own)
    assert loader.outputs == 3
    usual, own = (
        train.train_trial(Trial(us.models.SGC, config=TrainConfig(epochs=2)), one)[1] for one in (data, loader)
    )
    assert usual.history != own.history


@pytest.mark.parametrize("given", [None, 3, ["cora"], us.graph.ring(3)])
def test_what_is_not_a_dataset_is_named(given):
    with pytest.raises(TypeError, match="is not a dataset: give a name such as 'cora'"):
        TrialLoader(given)


def test_data_without_a_split_say_so(data):
    bare = replace(data, split=None)
    with pytest.raises(ValueError, match="has no split"):
        TrialLoader(bare)
