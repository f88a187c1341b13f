"""Runs in several threads: each of them the run that it would be alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.train import TaskKind, Trial, TrialLoader

pytestmark = pytest.mark.long


THREADS, RUNS = 8, 24


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=90, classes=3, seed=1)


class Drawing(torch.nn.Module):
    """A module of a user's own, which draws from torch's generator in every epoch."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.inner, self.dropout = us.models.SGC(in_features, out_features), torch.nn.Dropout(0.5)

    def forward(self, x, graph):
        return self.inner(self.dropout(x), graph)


KINDS = {
    "ours": (us.models.GCN, {"hidden": 8, "dropout": 0.5}, None),
    "links": (us.models.GCN, {"hidden": 8}, TaskKind.LINKS),
    "own": (Drawing, {}, None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_runs_in_threads_are_the_runs_alone(data, kind):
    model, settings, task = KINDS[kind]
    loader, trial = TrialLoader(data, kind=task), Trial(model, settings, train.TrainConfig(epochs=4))

    def one(seed):
        made, run = train.train_trial(trial.with_seed(seed % 4), loader)
        return [value.tolist() for value in made.state_dict().values()], run.history

    alone = [one(seed) for seed in range(4)]
    before = torch.get_rng_state()
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, range(RUNS)))
    assert sum(found[seed] == alone[seed % 4] for seed in range(RUNS)) == RUNS
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_trials_and_estimators_in_threads_are_those_alone(data):
    y = data.labels.numpy()

    def fitted(seed):
        made = us.estimator.NodeClassifier(us.models.SGC, epochs=3, seed=seed % 3)
        return made.fit(data.features, y, graph=data.graph).model_.state_dict()

    def built(seed):
        return Trial(us.models.GCN, {"hidden": 8}, seed=seed % 3).build(5, 2).state_dict()

    for one in (fitted, built):
        alone = [one(seed) for seed in range(3)]
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(one, range(RUNS)))
        for seed, state in enumerate(found):
            assert all(torch.equal(value, alone[seed % 3][name]) for name, value in state.items())
