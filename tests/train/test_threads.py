"""Runs in several threads: each of them the run that it would be alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.study import Trial

THREADS, RUNS = 8, 24


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=90, classes=3, seed=1)


class Drawing(torch.nn.Module):
    """A module of a user's own, which draws from torch's generator in every epoch."""

    def __init__(self, features):
        super().__init__()
        self.inner, self.dropout = us.models.SGC(features, 3), torch.nn.Dropout(0.5)

    def forward(self, x, graph):
        return self.inner(self.dropout(x), graph)


def build(data, kind):
    features = data.features.shape[1]
    return {
        "ours": lambda: us.models.GCN(features, 3, hidden=8, dropout=0.5),
        "links": lambda: us.models.GCN(features, 4, hidden=8),
        "own": lambda: Drawing(features),
    }[kind]


@pytest.mark.parametrize("kind", ["ours", "links", "own"])
def test_runs_in_threads_are_the_runs_alone(data, kind):
    task = train.link_task(data) if kind == "links" else train.Task.of(data)

    def one(seed):
        model, run = train.run_seed(build(data, kind), seed % 4, task, train.Plan(epochs=4))
        return [value.tolist() for value in model.state_dict().values()], run.history

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
