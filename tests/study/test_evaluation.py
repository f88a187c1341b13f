"""Settings from elsewhere: each has its outcome, in the order in which they were given, whatever went wrong with others."""

import math

import pytest
from torch import nn

import unspool as us
from unspool import datasets
from unspool.study import Measure, Store, grid
from unspool.study.evaluation import evaluate
from unspool.train import Ending, TaskKind, Trial, TrialLoader


class Fragile(nn.Module):
    """Raises, or blows up, if asked to."""

    def __init__(self, in_features, out_features, *, kind="good"):
        super().__init__()
        self.kind, self.only = kind, us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        if self.kind == "raises":
            raise RuntimeError("no such thing")
        return self.only(x) * (math.nan if self.kind == "diverges" else 1.0)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def setting(dropout):
    return grid(us.models.GPRGNN, seed=range(2), hidden=6, depth=1, epochs=5, dropout=dropout)


def test_spaces_or_trials_in_their_order(data, tmp_path):
    spaces = [setting(dropout) for dropout in (0.1, 0.8, 0.1)]
    listed = [space.trials(data.name) for space in spaces]
    one = evaluate(spaces, data, device="cpu", store=tmp_path / "study.db")
    two = evaluate(listed, data, device="cpu", store=tmp_path / "study.db")
    assert one == two  # from the store
    assert one[0] == one[2] != one[1]
    assert evaluate([], data) == []


def test_outcomes_are_those_of_a_run(data):
    (outcome,) = evaluate([setting(0.5)], data, device="cpu")
    results = [row.result for row in us.study.run(setting(0.5), data, device="cpu").rows]
    assert outcome.valid.values == tuple(r.valid_score for r in results)
    assert outcome.test.values == tuple(r.test_score for r in results)
    assert outcome.seeds == (0, 1)


def test_what_goes_wrong_stays_where_it_went_wrong(data):
    spaces = [grid(Fragile, kind=kind, epochs=2) for kind in ("good", "raises", "diverges")]
    # Each setting is right by itself, and they do not fit together.
    spaces.append(grid(us.models.GPRGNN, start=us.models.HopStart.WARM))
    spaces.append([Trial(us.models.GPRGNN, {"depth": -1}, seed=seed) for seed in range(2)])
    good, raises, diverges, unfit, wrong = evaluate(spaces, data, seeds=range(2), device="cpu")
    assert 0 <= good.value() <= 1
    assert good.value(Measure.VALID_LOSS) == good.loss.mean
    assert raises.failures == ("RuntimeError: no such thing",) * 2
    assert diverges.diverged
    assert {result.ending for result in diverges.results} == {Ending.DIVERGED}
    assert "cannot be built" in unfit.failures[0]
    assert "depth=-1" in wrong.failures[0]
    assert all(math.isnan(outcome.value()) for outcome in (raises, diverges, unfit, wrong))


def test_a_loader_says_what_is_predicted(data):
    loader = TrialLoader(data, kind=TaskKind.LINKS)
    (outcome,) = evaluate([setting(0.5)], loader)
    results = [row.result for row in us.study.run(setting(0.5), loader).rows]
    assert outcome.valid.values == tuple(r.valid_score for r in results)
    assert outcome.seeds == (0, 1)


def test_what_another_has_in_work_is_waited_for(data, tmp_path):
    """The other gives its trial back while we wait."""
    path, waited = tmp_path / "study.db", []
    with Store(path) as other:
        keys = other.add(setting(0.3).trials(data.name), TrialLoader(data).record)
        assert other.claim(keys[:1], 1) == keys[:1]

        def watch(progress):
            waited.append(progress.done)
            if len(waited) > 4:
                other.release(keys)

        (outcome,) = evaluate([setting(0.3)], data, store=path, device="cpu", watch=watch)
    assert outcome.seeds == (0, 1)
    assert len(waited) > 4
