"""Training from hops on the disk is training on the graph, to rounding, masks included; and needs neither graph nor whole matrix."""

import pytest
import torch

import unspool as us
from unspool import datasets, hops, study, train
from unspool.errors import IncompatibleError
from unspool.train import TaskKind, TrainConfig, Trial, TrialLoader
from unspool.train.baselines import Baseline, Skipped, measure_baselines
from unspool.train.evaluation import evaluate_trained

pytestmark = pytest.mark.long

KINDS = [us.models.SGC, us.models.GraphFirstGPRGNN, us.models.GraphFirstUGDGNN, us.models.SIGN, us.models.MLP]


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=80, classes=3, seed=0)


@pytest.fixture(scope="module")
def stored(data, tmp_path_factory):
    place = tmp_path_factory.mktemp("hops") / "h"
    hops.write(data.graph, data.features, 4, place, facts=hops.NodeFacts.of(data))
    return hops.dataset(place)


def trial(kind, seed=3, **how):
    settings = {"hidden": 8} if "hidden" in kind.schema else {}
    return Trial(kind, settings, TrainConfig(**{"epochs": 12, **how}), seed)


def near(one, other, tolerance=1e-3):
    for a, b in zip(one.history, other.history, strict=True):
        assert a.epoch == b.epoch
        assert (a.train_loss, a.valid_loss) == pytest.approx((b.train_loss, b.valid_loss), rel=tolerance)


@pytest.mark.parametrize("size", [None, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_that_on_the_graph(kind, size, data, stored):
    """The same splits, batches and masks: 36 nodes by their numbers, alone or among all."""
    on_disk = train.train_trial(trial(kind, batch_size=size), stored)[1]
    near(on_disk, train.train_trial(trial(kind, batch_size=size), data)[1])


def test_a_run_that_was_cut_off_goes_on_to_the_same_numbers(stored, tmp_path):
    kind = us.models.GraphFirstUGDGNN
    model, whole = train.train_trial(trial(kind, batch_size=7), stored)
    train.train_trial(trial(kind, batch_size=7, epochs=5), stored, snapshot=tmp_path / "run.pt")
    again, run = train.train_trial(trial(kind, batch_size=7), stored, snapshot=tmp_path / "run.pt")
    assert run.history == whole.history
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))


def test_a_snapshot_belongs_to_its_hops(data, stored, tmp_path):
    kind = us.models.SIGN
    train.train_trial(trial(kind, epochs=3), stored, snapshot=tmp_path / "run.pt")
    facts = hops.NodeFacts.of(data)
    hops.write(data.graph, data.features * 1.5, 4, tmp_path / "other", facts=facts)
    with pytest.raises(ValueError, match="began on other data"):
        train.train_trial(trial(kind), hops.dataset(tmp_path / "other"), snapshot=tmp_path / "run.pt")


def test_keys_are_those_of_the_folder(data, stored, tmp_path):
    loader = TrialLoader(stored)
    same = TrialLoader(hops.dataset(stored.features.file.parent, check=False))
    assert loader.fingerprint == same.fingerprint
    one = trial(us.models.SIGN)
    hops.write(data.graph, data.features, 2, tmp_path / "h", facts=hops.NodeFacts.of(data))
    others = [TrialLoader(data), TrialLoader(hops.dataset(tmp_path / "h"))]
    assert len({one.key(found.fingerprint) for found in (loader, *others)}) == 3


def test_studies_give_what_a_trial_gives_alone(stored):
    trials = [trial(us.models.SIGN, seed=seed, batch_size=size) for seed in (0, 1) for size in (None, 9)]
    rows = study.run(trials, stored).rows
    assert len(rows) == 4
    for row in rows:
        one = next(t for t in trials if (t.seed, t.config.batch_size) == (row.trial["seed"], row.trial["config"]["batch_size"]))  # fmt: skip
        assert row.result.valid_loss == train.train_trial(one, stored)[1].best.valid_loss


def test_what_stands_beside_the_score_is_measured(data, stored):
    loader, one = TrialLoader(stored), trial(us.models.GraphFirstGPRGNN, seed=0)
    model, run = train.train_trial(one, loader)
    found = evaluate_trained(model, loader, one)
    assert found.classes.accuracy == pytest.approx(run.best.test_score, abs=1e-6)
    beside = measure_baselines(one, loader, [0])
    assert beside.of(Baseline.GRAPH).skipped is Skipped.NO_EDGES
    assert beside.mean(Baseline.FEATURES) == pytest.approx(measure_baselines(one, TrialLoader(data), [0]).mean(Baseline.FEATURES), abs=0.1)  # fmt: skip


def test_only_rows_that_are_asked_for_are_read(stored, monkeypatch):
    seen, real = [], us.hops.StoredHops.take
    monkeypatch.setattr(us.hops.StoredHops, "take", lambda self, rows, depth=None: (seen.append((rows.numel(), depth)), real(self, rows, depth))[1])  # fmt: skip
    train.train_trial(trial(us.models.GraphFirstGPRGNN, epochs=1, batch_size=10), stored)
    split = stored.split
    assert sorted(many for many, _ in seen) == sorted([*_dealt(split.train.numel(), 10), split.valid.numel(), split.test.numel()])  # fmt: skip
    assert {depth for _, depth in seen} == {4}


def _dealt(many, size):
    return [part.numel() for part in torch.arange(many).tensor_split(-(-many // size))]


def test_a_module_of_ones_own_may_read_rows_itself(stored):
    class Plain(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.layer = torch.nn.Linear(inputs, outputs)

        def forward(self, x, graph=None, rows=None):
            rows = torch.arange(x.shape[0]) if rows is None else rows
            return self.layer(x.take(rows)[:, -1])

    assert len(train.train_trial(Trial(Plain, config=TrainConfig(epochs=3, batch_size=9)), stored)[1].history) == 3


def test_what_does_not_go_from_stored_hops_is_refused(stored):
    class Blind(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.layer = torch.nn.Linear(inputs, outputs)

        def forward(self, x, graph):
            return self.layer(x)

    first = us.models.GraphFirstGPRGNN
    refusals = [
        (lambda: train.train_trial(trial(us.models.GPRGNN), stored), "GPRGNN cannot use stored hops: its encoder is more than a matrix"),
        (lambda: train.train_trial(Trial(Blind), stored), "Blind cannot use stored hops: its forward takes no rows="),
        (lambda: train.train_trial(trial(first, upper="ce + consistency(views=2)"), stored), "upper=... looks at all nodes in every step, and hops on the disk"),
        (lambda: train.train_trial(trial(first), stored, hyper=train.Hyper()), "hyper=... looks at all nodes in every step"),
        (lambda: train.train_trial(Trial(first, normalise_rows=True), stored), "which cannot be row-normalised, as they have seen the graph"),
        (lambda: train.train_trial(Trial(first, {"depth": 5}), stored), "hop 5 is wanted, and hops 0 to 4 are stored"),
        (lambda: TrialLoader(stored, kind=TaskKind.LINKS), "the data are hops on the disk"),
    ]  # fmt: skip
    for ask, sentence in refusals:
        with pytest.raises(IncompatibleError, match=sentence):
            ask()


def test_ranks_are_learnt_from_all_rows_at_once(data, tmp_path):
    numbers = hops.NodeFacts.read(data.nodes, labels=torch.arange(data.nodes) / 7, split=data.split)
    hops.write(data.graph, data.features, 1, tmp_path / "h", facts=numbers)
    loader = TrialLoader(hops.dataset(tmp_path / "h"), kind=TaskKind.RANKING)
    one = Trial(us.models.SIGN, {"depth": 1, "hidden": 4}, TrainConfig(epochs=2))
    assert len(train.train_trial(one, loader)[1].history) == 2
    with pytest.raises(IncompatibleError, match="Ranking compares every two items"):
        train.train_trial(Trial(us.models.SIGN, {"depth": 1}, TrainConfig(batch_size=8)), loader)


@pytest.mark.slow
def test_lbfgs_takes_all_training_rows_at_once(stored):
    how = {"optimiser": torch.optim.LBFGS, "weight_decay": 0, "epochs": 3}
    assert len(train.train_trial(trial(us.models.SGC, **how), stored)[1].history) == 3


def test_estimators_take_stored_hops_as_features(data, stored):
    labels = data.labels.clone()
    labels[data.split.test] = -1
    how = {"model": "GraphFirstGPRGNN", "hidden": 8, "epochs": 12, "seed": 3}
    on_graph = us.NodeClassifier(**how).fit(data.features, labels, graph=data.graph)
    found = us.NodeClassifier(**how).fit(stored.features, labels)
    near(found.run_, on_graph.run_)
    assert (found.predict() == on_graph.predict()).all()
    assert (on_graph.predict(stored.features) == on_graph.predict()).all()
    assert (found.predict(data.features, graph=data.graph) == found.predict()).all()
    bound = us.NodeClassifier(**how, features=stored.features, batch_size=9)
    bound.fit(data.split.train, data.labels[data.split.train])
    assert bound.predict([4, 2]).tolist() == bound.predict()[[4, 2]].tolist()
    assert bound.score(data.split.test, data.labels[data.split.test]) > 0.5
    numbers = us.NodeRegressor("SIGN", hidden=8, epochs=5, features=stored.features, batch_size=9)
    assert numbers.fit(data.split.train, torch.randn(data.split.train.numel())).predict([1]).shape == (1,)
    for make, sentence in (
        (lambda: us.NodeClassifier("GCN").fit(stored.features, labels), "GCN cannot use stored hops"),
        (lambda: us.NodeClassifier("SIGN").fit(stored.features, labels, graph=data.graph), "leave graph=... out"),
        (lambda: us.NodeClassifier("SIGN", normalise_rows=True).fit(stored.features, labels), "cannot be row-normalised"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            make()


def test_a_model_is_kept_and_found_again(stored, tmp_path):
    from unspool.train.run_folder import RunFolder

    runs = RunFolder(tmp_path / "out", trial(us.models.SIGN, batch_size=9), TrialLoader(stored))
    run = runs.train(0)
    model = us.load(runs.place(0))
    assert model.card["data"]["hash"] == stored.hash
    output = model(stored.features, rows=stored.split.test)
    right = (output.argmax(1) == stored.labels[stored.split.test]).float().mean()
    assert float(right) == pytest.approx(run.best.test_score)
