"""Memory is measured unless a named model surely fits; modules of one's own are always measured."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import unspool as us
from unspool import datasets, train
from unspool.study.engine.memory import settle, surely_fits
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


def test_features_that_are_denoised_count_in_every_view_though_they_came_sparse():
    def member(signal, upper):
        trial = Trial(us.models.StableGNN, {"hidden": 8, "signal": signal}, train.TrainConfig(upper=upper))
        return PreparedTrial(trial, trial.build(2000, 2), replace(task, x=us.ops.SparseFeatures.from_tensor(wide)))

    wide = torch.eye(60, 2000)
    task = train.Task.of(DATA)
    four, one, hidden = (
        member(us.models.Signal.FEATURES, "ce + consistency(views=4)"),
        member(us.models.Signal.FEATURES, "ce + consistency(views=1)"),
        member(us.models.Signal.HIDDEN, "ce + consistency(views=4)"),
    )
    enough = 2 * 2 * 100 * 4 * 16 * 60 * 2000  # twice what one view of the features takes
    assert surely_fits(one, 100, free=enough)
    assert not surely_fits(four, 100, free=enough)
    assert surely_fits(hidden, 100, free=enough)


@pytest.mark.parametrize(("faults", "works"), [(0, True), (1, True), (2, False)])
def test_what_a_batch_leaves_behind_is_told_from_a_device_that_is_lost(faults, works, monkeypatch):
    left = [RuntimeError("CUDA error: an illegal memory access was encountered")] * faults

    def wait(device):
        if left:
            raise left.pop()

    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    assert settle(torch.device("cuda")) is works
