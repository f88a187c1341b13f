"""Who may share a batch: what models compute decides, not what they are called."""

import pytest
import torch
from torch import nn

import unspool as us
from unspool import datasets, train
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine.batching import Alone, open_batch, signature, sort_trials
from unspool.train import LowerLevel, TaskKind, TrainConfig, Trial, TrialLoader


class Own(nn.Module):
    """What a user may write."""

    def __init__(self, in_features, out_features, *, width=6, dropout=0.3, slope=0.5):
        super().__init__()
        self.only, self.drop, self.slope = us.nn.Linear(in_features, out_features), us.nn.Dropout(dropout), slope

    def forward(self, x, graph):
        return nn.functional.leaky_relu(graph @ self.only(self.drop(x)), self.slope)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


@pytest.fixture(scope="module")
def loader(data):
    return TrialLoader(data)


@pytest.mark.parametrize(
    ("kind", "settings", "other", "same"),
    [
        (us.models.UGDGNN, {"depth": 2}, {"depth": 3}, False),
        (us.models.UGDGNN, {"dropout": 0.2}, {"dropout": 0.7}, True),
        (us.models.UGDGNN, {"dropout": 0.0}, {"dropout": 0.7}, False),
        (us.models.APPNP, {"teleport": 0.2}, {"teleport": 0.7}, True),
        (us.models.GPRGNN, {"teleport": 0.2}, {"teleport": 0.7}, True),
        (us.models.GPRGNN, {"dropout": 0.2}, {"dropout": 0.7}, True),
        (us.models.GCNII, {"teleport": 0.2, "strength": 0.5}, {"teleport": 0.7, "strength": 1.0}, True),
        (us.models.AirGNN, {"residual": 0.2}, {"residual": 0.7}, True),
        (us.models.ElasticGNN, {"lambda1": 0.2}, {"lambda1": 0.7}, True),
        (us.models.PGNN, {"p": 1.5}, {"p": 2.5}, False),
        (us.models.GCN, {"bias": True}, {"bias": False}, False),
        (Own, {"slope": 0.2}, {"slope": 0.7}, False),
        (Own, {"dropout": 0.2}, {"dropout": 0.7}, True),
    ],
)
def test_what_must_agree(kind, settings, other, same, loader):
    one, two = Trial(kind, settings), Trial(kind, other, TrainConfig(lr=0.3, weight_decay=0.1), seed=5)
    assert (signature(loader.prepare(one)) == signature(loader.prepare(two))) is same
    assert len(sort_trials([one, two], loader.prepare)) == (1 if same else 2)


def test_a_setting_that_is_said_at_its_default_changes_no_signature(loader):
    said = Trial(us.models.GCN, {"hidden": 64, "dropout": 0.5})
    assert signature(loader.prepare(Trial(us.models.GCN))) == signature(loader.prepare(said))


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(optimiser=torch.optim.SGD), TrainConfig(precision=train.Precision.BFLOAT16),
        TrainConfig(lower_level=LowerLevel.EXACT),
    ],
)  # fmt: skip
def test_what_does_not_stack_is_sorted_apart(config, loader):
    some = [Trial(us.models.APPNP, {"teleport": 0.1 * k}, config, seed=k) for k in (1, 2)]
    plain = [Trial(us.models.APPNP, {"teleport": 0.1 * k}, seed=k) for k in (1, 2)]
    assert all(isinstance(signature(loader.prepare(trial)), Alone) for trial in some)
    groups = sort_trials([some[0], plain[0], some[1], plain[1]], loader.prepare)
    assert plain in groups
    assert {trial for group in groups for trial in group} == {*some, *plain}


def test_batches_by_what_they_hold(loader):
    stacked = [loader.prepare(Trial(us.models.GCN, seed=seed)) for seed in range(2)]
    assert isinstance(open_batch(stacked), StackedBatch)
    assert isinstance(open_batch(stacked[:1]), SingleTrial)  # a stack of one on the CPU gains nothing
    assert isinstance(open_batch([loader.prepare(Trial(us.models.PPNP))]), SingleTrial)


def test_links_train_one_by_one(data):
    loader = TrialLoader(data, kind=TaskKind.LINKS)
    assert isinstance(signature(loader.prepare(Trial(us.models.GCN))), Alone)


def test_other_data_other_batches(loader):
    trial = Trial(us.models.GCN)
    other = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
    assert signature(loader.prepare(trial)) != signature(other.prepare(trial))  # not the same tensors
    rows = Trial(us.models.GCN, normalise_rows=True)
    assert signature(loader.prepare(trial)) != signature(loader.prepare(rows))
    assert signature(loader.prepare(rows)) == signature(loader.prepare(rows.with_seed(3)))


def test_an_exact_lower_level_shares_no_batch_with_steps(loader):
    steps, exact = (
        loader.prepare(Trial(us.models.APPNP, config=TrainConfig(lower_level=level))) for level in LowerLevel
    )
    assert not isinstance(signature(steps), Alone)
    assert isinstance(signature(exact), Alone)


def test_trials_that_cannot_be_built_are_sorted_too(loader):
    bad = Trial(us.models.GCN, {"dropout": 1.5})
    groups = sort_trials(
        [Trial(us.models.GCN, {"dropout": 0.2}), bad, Trial(us.models.GCN, {"dropout": 0.3})], loader.prepare
    )
    assert sum(map(len, groups)) == 3
