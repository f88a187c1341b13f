"""Numbers are scaled once, by the training nodes of the split at hand, whoever asks."""

import pytest
import torch

import unspool as us
from unspool import datasets, study, train
from unspool.train import TrialLoader
from unspool.train.scaling import Scaling


@pytest.fixture(scope="module")
def data():
    made = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    random = torch.Generator().manual_seed(0)
    numbers = torch.stack([1000 + 50 * torch.randn(60, generator=random), torch.full((60,), 7.0)], 1)
    numbers[-1] = torch.nan  # unknown
    return datasets.from_tensors(made.edge_index, made.features, targets=numbers)


@pytest.mark.parametrize("seed", range(4))
def test_the_training_nodes_of_this_split_alone_decide(data, seed):
    split = datasets.splits.repetition(data, seed)
    task = train.Task.of(data.with_split(split))
    known = task.target[split.train]
    assert torch.allclose(known.mean(0), torch.zeros(2), atol=1e-5)
    assert torch.allclose(known.std(0, correction=0), torch.tensor([1.0, 0.0]), atol=1e-5)
    # Other nodes may say what they like.
    shouted = data.targets.clone()
    shouted[split.test] *= 1e3
    again = Scaling.of(shouted, split.train)
    assert torch.equal(again.centre, task.scaling.centre)
    assert torch.equal(again.scale, task.scaling.scale)
    back = task.scaling.undo(task.target)[:-1]
    assert torch.allclose(back, data.targets[:-1], rtol=1e-5)


@pytest.mark.parametrize("normalise", [False, True])
def test_every_trial_of_a_study_has_the_task_of_its_own_split(data, normalise):
    loader = TrialLoader(data)
    for seed in range(4):
        found = loader.task(seed, normalise)
        alone = train.Task.of(data.with_split(datasets.splits.repetition(data, seed)))
        assert torch.equal(found.target.nan_to_num(), alone.target.nan_to_num())
        assert torch.equal(found.train, alone.train)


def test_other_losses_see_numbers_as_they_came(data):
    one = datasets.from_tensors(data.edge_index, data.features, targets=data.targets[:, :1])
    for loss in (train.Ranking(), torch.nn.functional.l1_loss):
        task = train.Task.of(one, loss)
        assert task.scaling is None
        assert torch.equal(task.target.nan_to_num(), one.targets.nan_to_num())


def test_a_task_is_scaled_once_and_keeps_its_scale_on_the_way(data):
    task = train.Task.of(data)
    assert task.scaled() is task
    assert task.to("cpu").scaling is task.scaling


def test_trials_of_different_splits_are_stacked_and_each_is_what_it_is_alone(data):
    one = datasets.from_tensors(data.edge_index, data.features, targets=data.targets[:, :1])
    space = study.grid(us.models.GCN, seed=range(3), hidden=8, epochs=12)
    rows = study.run(space, one, device="cpu").rows
    for row in rows:
        alone = study.run(
            study.grid(us.models.GCN, seed=row.trial["seed"], hidden=8, epochs=12),
            one,
            device="cpu",
        )
        assert row.result.epoch == alone.rows[0].result.epoch
        assert row.result.test_score == pytest.approx(alone.rows[0].result.test_score, rel=1e-4)
