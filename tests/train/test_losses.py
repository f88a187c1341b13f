"""Upper losses against plain formulas, links without leaks, any loss and any optimiser."""

import itertools
import math

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.train import TrainConfig, Trial, TrialLoader
from unspool.train.loss import area_under_curve


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=90, classes=3, seed=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ties", [False, True])
def test_auc_counts_pairs(seed, ties):
    generator = torch.Generator().manual_seed(seed)
    value = torch.randn(40, generator=generator, dtype=torch.float64)
    value = (3 * value).round() if ties else value
    yes = (torch.rand(40, generator=generator) > 0.6).long()
    pairs = [(a, b) for a in range(40) for b in range(40) if yes[a] and not yes[b]]
    share = sum(1.0 if value[a] > value[b] else 0.5 if value[a] == value[b] else 0.0 for a, b in pairs) / len(pairs)
    assert float(area_under_curve(value, yes)) == pytest.approx(share, abs=1e-12)
    assert float(train.Ranking().score(value[:, None], yes)) == pytest.approx(share, abs=1e-12)


def test_ranking_is_the_mean_over_ordered_pairs():
    generator = torch.Generator().manual_seed(0)
    out = torch.randn(12, 1, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.randint(0, 4, (12,), generator=generator)
    pairs = [(i, j) for i, j in itertools.product(range(12), repeat=2) if target[i] > target[j]]
    plain = sum(torch.log1p(torch.exp(out[j, 0] - out[i, 0])) for i, j in pairs) / len(pairs)
    loss = train.Ranking().loss(out, target)
    assert float(loss.detach()) == pytest.approx(float(plain.detach()), rel=1e-12)
    (a,), (b,) = torch.autograd.grad(loss, out), torch.autograd.grad(plain, out)
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_links_that_are_asked_for_are_not_in_the_graph(data):
    task = train.link_task(data, valid=0.1, test=0.2, seed=3)
    pairs, dense = task.loss.pairs, task.graph.to_dense()
    held = torch.cat([task.valid, task.test])
    assert dense[pairs[held, 0], pairs[held, 1]].abs().max() == 0
    assert dense[pairs[held, 1], pairs[held, 0]].abs().max() == 0
    links = task.train[task.target[task.train] == 1]
    assert dense[pairs[links, 0], pairs[links, 1]].min() > 0
    parts = [set(getattr(task, p).tolist()) for p in ("train", "valid", "test")]
    assert len(set.union(*parts)) == sum(map(len, parts)) == len(pairs)
    # Pairs that stand for "no" are links nowhere in the whole graph, and every pair occurs once.
    whole = data.graph.to_dense()
    no = pairs[task.target == 0]
    assert whole[no[:, 0], no[:, 1]].abs().max() == 0
    assert len({tuple(p) for p in pairs.tolist()}) == len(pairs)
    for part in ("train", "valid", "test"):
        ids = getattr(task, part)
        assert int((task.target[ids] == 1).sum()) * 2 == len(ids)


def test_links_are_learnt(data):
    task, scores = train.link_task(data, valid=0.1, test=0.2), []
    for seed in range(2):
        with train.seeded(seed):
            model = us.models.GPRGNN(data.features.shape[1], 16, depth=4)
            scores.append(train.fit(model, task, TrainConfig(epochs=60)).best.test_score)
    assert sum(scores) / 2 > 0.6


def test_links_are_learnt_by_trials(data):
    loader = TrialLoader(data, kind=train.TaskKind.LINKS)
    runs = train.repeat(Trial(us.models.GCN, config=TrainConfig(epochs=60)), loader, seeds=2)
    assert runs.score_name == "AUC"
    assert runs.mean > 0.6


def test_seeds_look_for_other_links(data):
    loader = TrialLoader(data, kind=train.TaskKind.LINKS)
    one, other = loader.task(seed=1), loader.task(seed=2)
    assert not torch.equal(one.loss.pairs[one.test], other.loss.pairs[other.test])
    for seed, task in ((1, one), (2, other)):
        alone = train.link_task(data, seed=seed)
        assert torch.equal(task.loss.pairs, alone.loss.pairs)
        assert torch.equal(task.test, alone.test)


def test_a_full_graph_has_no_links_to_stand_against():
    pairs = torch.tensor(list(itertools.combinations(range(8), 2))).T
    full = datasets.from_tensors(pairs, torch.eye(8), directed=False)
    with pytest.raises(ValueError, match="links more than half of all pairs of its 8 nodes"):
        train.link_task(full)


@pytest.mark.parametrize(("valid", "test"), [(0.0, 0.1), (0.6, 0.5), (-0.1, 0.1)])
def test_bad_shares_of_links(data, valid, test):
    with pytest.raises(ValueError, match="shares of the links lie between 0 and 1"):
        train.link_task(data, valid=valid, test=test)


def test_any_callable_is_a_loss(data):
    split = data.split
    calls = []

    def loss(output, target):
        calls.append(output.shape[0])
        return torch.nn.functional.cross_entropy(output, target)

    own = train.Task(data.features, data.graph, data.labels, split.train, split.valid, split.test, loss)
    plain = train.Task.of(data)
    histories = []
    for task in (own, plain):
        torch.manual_seed(0)
        model = us.models.GCN(data.features.shape[1], 3, hidden=8)
        histories.append(train.fit(model, task, TrainConfig(epochs=8)).history)
    assert [e.train_loss for e in histories[0]] == [e.train_loss for e in histories[1]]
    assert all(e.valid_score == -e.valid_loss for e in histories[0])
    assert len(split.train) in calls


def test_losses_that_are_none(data):
    split = data.split
    parts = (data.features, data.graph, data.labels, split.train, split.valid, split.test)
    with pytest.raises(TypeError, match=r"loss=CrossEntropy is the class; give an instance, CrossEntropy\(\)"):
        train.Task(*parts, train.CrossEntropy)
    with pytest.raises(TypeError, match="loss='mse': expected a Loss"):
        train.Task(*parts, "mse")
    task = train.Task(*parts, lambda output, target: output)
    with pytest.raises(TypeError, match="the loss is a tensor of shape"):
        train.fit(us.models.MLP(data.features.shape[1], 3), task, TrainConfig(epochs=1))


def test_parts_that_cannot_be_scored_are_named(data):
    split, yes = data.split, torch.zeros_like(data.labels)
    parts = (data.features, data.graph, yes, split.train, split.valid, split.test)
    with pytest.raises(ValueError, match="the train set holds only no: AUC compares yes with no"):
        train.Task(*parts, train.Binary())
    with pytest.raises(ValueError, match="all targets of the train set are equal"):
        train.Task(*parts, train.Ranking())
    number = torch.arange(float(data.nodes))[:, None]
    number[split.test[0]] = torch.nan
    with pytest.raises(ValueError, match=f"node {int(split.test[0])} is in the test set but has no number"):
        train.Task(*parts[:2], number, *parts[3:], train.Regression())
    with pytest.raises(ValueError, match="names item 900, but there are 90 targets"):
        train.Task(*parts[:2], data.labels, torch.tensor([900]), *parts[4:])


OPTIMISERS = [
    torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam, torch.optim.LBFGS,
    lambda groups, lr: torch.optim.SGD(groups, lr=lr, momentum=0.9),
]  # fmt: skip


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda o: getattr(o, "__name__", "own"))
def test_any_optimiser(data, optimiser):
    torch.manual_seed(0)
    model = us.models.GCN(data.features.shape[1], 3, hidden=8, dropout=0.0)
    run = train.fit(model, train.Task.of(data), TrainConfig(lr=0.05, weight_decay=0.0, epochs=15, optimiser=optimiser))
    assert run.history[-1].train_loss < run.history[0].train_loss


def test_decay_that_an_optimiser_does_not_know_is_refused(data):
    model = us.models.GCN(data.features.shape[1], 3)
    with pytest.raises(ValueError, match="LBFGS has no weight decay; give weight_decay=0"):
        train.fit(model, train.Task.of(data), TrainConfig(weight_decay=1e-3, optimiser=torch.optim.LBFGS))


#: One of each kind of propagation; the others learn in bfloat16 in the release check.
HALVED = (us.models.SGC, us.models.UGDGNN, us.models.GCN, us.models.AirGNN, us.models.ElasticGNN, us.models.SignedGNN)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in HALVED else pytest.mark.slow, id=kind.__name__)
        for kind in us.models.MODELS
    ],
)
def test_bfloat16_learns_what_float32_learns(data, kind):
    scores = []
    for precision in train.Precision:
        torch.manual_seed(0)
        model = kind(data.features.shape[1], 3)
        run = train.fit(model, train.Task.of(data), TrainConfig(epochs=40, precision=precision))
        assert all(p.dtype == torch.float32 for p in model.parameters())
        scores.append(run.history[-1].train_loss)
    assert scores[0] != scores[1] or kind is us.models.SGC  # SGC's layers are sparse products, which stay in float32
    assert scores[1] == pytest.approx(scores[0], rel=0.1, abs=0.05)


def test_a_seed_gives_the_same_run_alone_or_among_others(data):
    trial = Trial(us.models.APPNP, {"hidden": 8}, TrainConfig(epochs=6), seed=1)
    torch.manual_seed(77)
    before = torch.get_rng_state()
    together = train.repeat(trial, data, seeds=[4, 2, 9])
    assert torch.equal(torch.get_rng_state(), before)
    alone = train.repeat(trial, data, seeds=[2])
    assert together.runs[1].history == alone.runs[0].history
    assert together.mean == pytest.approx(sum(together.test) / 3)
    with pytest.raises(ValueError, match="no seeds"):
        train.repeat(trial, data, seeds=0)


class Noisy(torch.nn.Module):
    """A module that draws from torch's own generator, as users' modules do."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return self.linear(torch.nn.functional.dropout(graph @ x, 0.5, self.training))


class CutOff(BaseException):
    pass


def test_modules_with_torchs_own_dropout_continue_to_the_same_numbers(data, tmp_path):
    trial = Trial(Noisy, config=TrainConfig(epochs=10), seed=3)
    expected = train.train_trial(trial, data)[1]

    def watch(now, best):
        if now.epoch == 4:
            raise CutOff

    with pytest.raises(CutOff):
        train.train_trial(trial, data, watch=watch, snapshot=tmp_path / "run.pt", snapshot_every=0.0)
    assert train.train_trial(trial, data, snapshot=tmp_path / "run.pt")[1].history == expected.history


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lr": 0.02}, "began with lr 0.01, not 0.02"),
        ({"weight_decay": 0.1}, "began with weight_decay 0.0005, not 0.1"),
        ({"monitor": train.Monitor.LAST_EPOCH}, "began with monitor valid_loss, not last_epoch"),
        ({"optimiser": torch.optim.SGD}, "began with optimiser Adam, not SGD"),
        ({"precision": train.Precision.BFLOAT16}, "began with precision full, not bfloat16"),
        ({"patience": 7}, "began with patience 100, not 7"),
    ],
)
def test_a_snapshot_is_not_continued_under_another_configuration(data, tmp_path, change, sentence):
    task, file = train.Task.of(data), tmp_path / "run.pt"
    model = us.models.GCN(data.features.shape[1], 3, hidden=4)
    train.fit(model, task, TrainConfig(epochs=2), snapshot=file)
    with pytest.raises(ValueError, match=sentence):
        train.fit(model, task, TrainConfig(epochs=4, **change), snapshot=file)
    other = data.with_split(lambda d: datasets.splits.random(d.labels, seed=5))
    with pytest.raises(ValueError, match="began on other data"):
        train.fit(model, train.Task.of(other), TrainConfig(epochs=4), snapshot=file)
    assert len(train.fit(model, task, TrainConfig(epochs=4), snapshot=file).history) == 4  # more epochs are welcome


def test_the_exact_lower_level_trains(data):
    """APPNP solved exactly is PPNP: the same runs from the same weights."""
    config = TrainConfig(epochs=10)
    trials = (
        Trial(us.models.APPNP, {"hidden": 8}, config.replace(lower_level=train.LowerLevel.EXACT)),
        Trial(us.models.PPNP, {"hidden": 8}, config),
    )
    assert trials[0].build(4, 3).solved_exactly
    histories = [train.train_trial(trial, data)[1].history for trial in trials]
    for a, b in zip(*histories, strict=True):
        assert a.train_loss == pytest.approx(b.train_loss, rel=1e-4)


def test_what_cannot_be_solved_exactly_says_so():
    exact = TrainConfig(lower_level=train.LowerLevel.EXACT)
    with pytest.raises(us.IncompatibleError, match="GPRGNN cannot be solved exactly"):
        Trial(us.models.GPRGNN, config=exact).build(4, 3)
    with pytest.raises(
        us.IncompatibleError, match=r"Noisy cannot be solved exactly: it is not an unspool\.models\.Model"
    ):
        Trial(Noisy, config=exact).build(4, 3)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30])
def test_equal_numbers_have_no_r2(data, value):
    """0.1 is here because the mean of equal numbers may be off by a rounding error; R² was −1.8e36."""
    split, number = data.split, torch.randn(data.nodes, 1)
    number[split.test] = value
    with pytest.raises(ValueError, match=r"^the test set holds only .*: R² .*; choose another split$"):
        train.Task(data.features, data.graph, number, split.train, split.valid, split.test, train.Regression())
    assert bool(train.Regression().score(torch.randn(7, 1), torch.full((7, 1), value)).isnan())


@pytest.mark.parametrize("monitor", list(train.Monitor))
def test_where_the_validation_score_is_not_defined_the_loss_chooses(data, monitor):
    split, number = data.split, torch.randn(data.nodes, 1)
    number[split.valid] = 0.5
    task = train.Task(data.features, data.graph, number, split.train, split.valid, split.test, train.Regression())
    model = us.models.MLP(data.features.shape[1], 1, hidden=4)
    run = train.fit(model, task, train.TrainConfig(epochs=12, lr=0.05, monitor=monitor))
    assert all(math.isnan(epoch.valid_score) for epoch in run.history)
    trained = monitor is train.Monitor.TRAIN_LOSS
    least = min(run.history, key=lambda epoch: epoch.train_loss if trained else epoch.valid_loss)
    assert run.best == (run.history[-1] if monitor is train.Monitor.LAST_EPOCH else least)


def test_one_class_alone_is_not_learnt(data):
    split, labels = data.split, torch.zeros_like(data.labels)
    with pytest.raises(ValueError, match=r"^the train set holds one class alone \(number 0\)"):
        train.Task(data.features, data.graph, labels, split.train, split.valid, split.test)


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_equal_numbers_have_no_order(part):
    with pytest.raises(ValueError, match=f"^all targets of the {part} set are equal: there is nothing to rank"):
        train.Ranking().check(torch.ones(3), torch.arange(3), part)
