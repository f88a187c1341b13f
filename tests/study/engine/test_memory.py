"""Memory is measured unless a named model surely fits; modules of one's own are always measured."""

import pytest
import torch
from torch import nn

import unspool as us
from unspool import datasets, train
from unspool.study.engine.memory import surely_fits
from unspool.train import PreparedTrial, Trial

DATA = datasets.contextual_sbm(nodes=60, classes=2, seed=0)


class Own(nn.Module):
    """Whatever its settings are."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings


@pytest.mark.parametrize("settings", [{"hidden": (8, 8)}, {"hidden": None}, {"hidden": 8, "depth": None}, None, 3])
def test_modules_of_ones_own_are_measured(settings):
    trial = Trial(us.models.GCN)
    assert not surely_fits(PreparedTrial(trial, Own(settings), train.Task.of(DATA)), 2, free=1e15)


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_named_models_fit_into_plenty_and_never_into_nothing(kind):
    trial = Trial(kind)
    member = PreparedTrial(trial, trial.build(DATA.features.shape[1], 2), train.Task.of(DATA))
    assert not surely_fits(member, 100, free=0.0)
    assert surely_fits(member, 100, free=1e15) is (kind is not us.models.SGC)  # it has no width


def test_wide_dense_features_count():
    trial = Trial(us.models.GCN, {"hidden": 8})
    wide = datasets.from_tensors(DATA.edge_index, torch.ones(60, 5000), DATA.labels).with_split(lambda d: DATA.split)
    member = PreparedTrial(trial, trial.build(5000, 2), train.Task.of(wide))
    assert not surely_fits(member, 100, free=100 * 2 * 4 * 60 * 5000)
