"""Training: the same seed gives the same run, cut-off runs end alike, epochs are chosen and stopped as the plan says."""

import math
from dataclasses import replace

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.files import write_sealed
from unspool.ops.features import SparseFeatures
from unspool.train.fit import Diverged
from unspool.train.plan import Plan, Select, Stop
from unspool.train.record import Epoch


@pytest.fixture(scope="module")
def task():
    return train.Task.of(datasets.contextual_sbm(nodes=60, classes=3, seed=0))


def model(task, seed=0, **settings):
    torch.manual_seed(seed)
    return us.models.GPRGNN(task.x.shape[1], 3, hidden=8, depth=3, **settings)


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_same_seed_same_run(task):
    first, second = model(task), model(task)
    a, b = (train.fit(m, task, Plan(epochs=15)) for m in (first, second))
    assert a.history == b.history
    assert same(first, second)


class CutOff(BaseException):
    """What kill -9 looks like from inside: nothing after it runs."""


@pytest.mark.parametrize("at", [1, 2, 7, 14])
def test_a_cut_off_run_ends_like_one_that_was_not(task, tmp_path, at):
    whole = model(task)
    expected = train.fit(whole, task, Plan(epochs=15))

    def watch(now, best):
        if now.epoch == at:
            raise CutOff

    file = tmp_path / "run.pt"
    with pytest.raises(CutOff):
        train.fit(model(task), task, Plan(epochs=15), watch=watch, snapshot=file, every=0.0)
    again = model(task, seed=5)
    run = train.fit(again, task, Plan(epochs=15), snapshot=file) if file.exists() else None
    if run is None:  # cut off before the first snapshot: nothing to continue
        assert at == 1
        return
    assert run.history == expected.history
    assert run.best == expected.best
    assert same(again, whole)


def test_the_best_epoch_is_kept(task):
    made = model(task)
    seen = []
    run = train.fit(made, task, Plan(epochs=20, rate=0.05), watch=lambda now, best: seen.append((now, best)))
    assert run.best.valid_loss == min(e.valid_loss for e in run.history)
    assert [now.epoch for now, _ in seen] == list(range(1, 21))
    with torch.no_grad():
        out = made(task.x, task.graph)
    loss = task.loss.loss(out[task.valid], task.target[task.valid])
    assert float(loss) == pytest.approx(run.best.valid_loss, rel=1e-6)
    assert not made.training


def history(losses, scores=None):
    scores = [0.5] * len(losses) if scores is None else scores
    return [Epoch(i + 1, 1.0, v, s, 0.0) for i, (v, s) in enumerate(zip(losses, scores, strict=True))]


def chosen(plan, epochs):
    best = None
    for epoch in epochs:
        best = epoch if plan.better(epoch, best) else best
    return best.epoch


def test_selection_rules():
    epochs = history([3.0, 1.0, 2.0, 1.0], [0.1, 0.4, 0.6, 0.6])
    assert chosen(Plan(select=Select.VALIDATION_LOSS), epochs) == 2
    assert chosen(Plan(select=Select.VALIDATION_ACCURACY), epochs) == 4  # equal scores: the lower loss
    assert chosen(Plan(select=Select.LAST), epochs) == 4


def test_stopping_rules():
    epochs = history([3.0, 2.0, 2.5, 2.5])
    assert Plan(stop=Stop.PATIENCE, patience=2).ended(epochs, epochs[1])
    assert not Plan(stop=Stop.PATIENCE, patience=3).ended(epochs, epochs[1])
    assert not Plan(stop=Stop.NEVER, patience=1).ended(epochs, epochs[0])
    rising = history([1.0, 1.0, 1.0, 1.1])
    assert Plan(stop=Stop.ABOVE_MEAN, patience=3).ended(rising, rising[0])
    assert not Plan(stop=Stop.ABOVE_MEAN, patience=3, earliest=10).ended(rising, rising[0])
    falling = history([1.0, 1.0, 1.0, 0.9])
    assert not Plan(stop=Stop.ABOVE_MEAN, patience=3).ended(falling, falling[3])


def test_patience_ends_a_run(task):
    run = train.fit(model(task), task, Plan(rate=0.5, epochs=200, stop=Stop.PATIENCE, patience=3))
    assert len(run.history) == run.best.epoch + 3
    assert "3 epochs" in run.reason


def test_decay_goes_where_the_plan_says(task):
    made = model(task)
    groups = Plan(decay={"first": 0.1}).groups(made)
    assert {g["weight_decay"]: len(g["params"]) for g in groups} == {
        0.1: len(made.parameter_groups()["first"]),
        0.0: len(list(made.parameters())) - len(made.parameter_groups()["first"]),
    }
    with pytest.raises(TypeError, match=r"Linear has no parameter_groups\(\); give one number"):
        Plan(decay={"first": 0.1}).groups(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", us.models.MODELS)
def test_one_number_decays_all_but_hop_coefficients(kind):
    made, plan = kind(5, 3), Plan(decay=0.1)
    left = {id(p) for p in made.parameter_groups().get("hops", [])}
    found = {id(p): g["weight_decay"] for g in plan.groups(made) for p in g["params"]}
    assert found == {id(p): 0.0 if id(p) in left else 0.1 for p in made.parameters() if p.requires_grad}
    whole = Plan(decay=dict.fromkeys((*made.parameter_groups(), "hops"), 0.1)).groups(made)
    assert [g["weight_decay"] for g in whole] == [0.1]  # who wants all of them decayed says so


def test_a_module_without_groups_is_decayed_whole():
    (group,) = Plan(decay=0.1).groups(torch.nn.Linear(2, 2))
    assert (len(group["params"]), group["weight_decay"]) == (2, 0.1)


def test_interrupting_keeps_the_best(task):
    def watch(now, best):
        if now.epoch == 5:
            raise KeyboardInterrupt

    run = train.fit(model(task), task, Plan(epochs=50), watch=watch)
    assert run.reason == "interrupted"
    assert len(run.history) == 5


def test_divergence_is_named(task):
    with pytest.raises(Diverged, match=r"in epoch \d+: the learning rate 1e\+30 is probably too large"):
        train.fit(model(task), task, Plan(rate=1e30, epochs=20))


def test_a_snapshot_is_not_continued_with_a_model_of_other_settings(task, tmp_path):
    """Masks and teleports leave no trace in the weights."""
    file, features = tmp_path / "run.pt", task.x.shape[1]
    once, each = (us.models.UGDGNN(features, 3, propagation_dropout=0.5, masks=masks) for masks in us.models.Masks)
    train.fit(once, task, Plan(epochs=2), snapshot=file)
    with pytest.raises(ValueError, match=r"began with the model's masks Masks\.ONCE, not Masks\.EACH_HOP"):
        train.fit(each, task, Plan(epochs=3), snapshot=file)
    content = torch.load(file, weights_only=True)
    content["about"] = {name: value for name, value in content["about"].items() if not name.startswith("the model's")}
    write_sealed(file, lambda where: torch.save(content, where))  # as it was before settings were written down
    assert len(train.fit(once, task, Plan(epochs=3), snapshot=file).history) == 3


def test_damaged_or_foreign_snapshots_are_named(task, tmp_path):
    file = tmp_path / "run.pt"
    file.write_bytes(b"not a snapshot")
    with pytest.raises(ValueError, match=r"run.pt cannot be continued .* remove it to start anew"):
        train.fit(model(task), task, Plan(epochs=2), snapshot=file)
    file.unlink()
    train.fit(model(task), task, Plan(epochs=2), snapshot=file)
    other = us.models.GCN(task.x.shape[1], 3, hidden=4)
    with pytest.raises(ValueError, match="began with the model's hidden 8, not 4"):
        train.fit(other, task, Plan(epochs=2), snapshot=file)
    other.settings = {}  # a module of one's own has none
    with pytest.raises(ValueError, match="belongs to another model"):
        train.fit(other, task, Plan(epochs=2), snapshot=file)


def moved(values):
    """The same numbers but for the last bit of one of them."""
    changed = values.clone()
    changed.view(-1)[-1] = torch.nextafter(changed.view(-1)[-1], torch.tensor(9.0))
    return changed


OTHERS = {
    "a feature": lambda data: replace(data, features=moved(data.features)),
    "edges": lambda data: replace(data, edge_index=data.edge_index[:, (data.edge_index != 7).all(0)]),
    "the ends of an edge": lambda data: replace(data, edge_index=data.edge_index.clone().fill_diagonal_(5)),
    "a weight": lambda data: replace(data, edge_weight=torch.arange(data.edge_index.shape[1]) / 100 + 1),
    "the labels": lambda data: replace(data, labels=(data.labels + 1) % 3),
    "the split": lambda data: data.with_split(datasets.splits.random(data.labels, seed=7)),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("form", [lambda x: x, SparseFeatures.from_tensor], ids=["dense", "sparse"])
def test_a_snapshot_is_not_continued_on_changed_data(tmp_path, what, form):
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    before, after, again = (
        train.Task.of(replace(one, features=form(one.features))) for one in (data, OTHERS[what](data), data)
    )
    file = tmp_path / "run.pt"
    train.fit(model(before), before, Plan(epochs=2), snapshot=file)
    with pytest.raises(ValueError, match=r"run\.pt began on other data"):
        train.fit(model(after), after, Plan(epochs=3), snapshot=file)
    assert len(train.fit(model(again), again, Plan(epochs=3), snapshot=file).history) == 3


@pytest.mark.parametrize("every", [math.nan, math.inf, -1.0])
def test_seconds_between_snapshots_are_finite(task, tmp_path, every):
    with pytest.raises(ValueError, match="seconds between snapshots are a finite number"):
        train.fit(model(task), task, Plan(epochs=2), snapshot=tmp_path / "run.pt", every=every)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": 0.0}, "rate=0.0: a learning rate is a positive number"),
        ({"rate": math.nan}, "a learning rate is a positive number"),
        ({"epochs": 0}, "epochs=0: training needs at least one"),
        ({"patience": 0}, "patience=0: expected at least one epoch"),
    ],
)
def test_bad_plans_are_named(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        Plan(**changes)


def test_bad_tasks_are_named(task):
    none = torch.empty(0, dtype=torch.int64)
    parts = (task.x, task.graph, task.target, task.train, task.valid, task.test)
    with pytest.raises(ValueError, match="the train set is empty: nothing can be learnt"):
        train.Task(*parts[:3], none, *parts[4:])
    with pytest.raises(ValueError, match="10 targets for 60 nodes"):
        train.Task(*parts[:2], task.target[:10], *parts[3:])
    target = task.target.clone()
    target[task.valid[0]] = -1
    with pytest.raises(ValueError, match=f"node {int(task.valid[0])} is in the valid set but has no label"):
        train.Task(*parts[:2], target, *parts[3:])


def test_losses_against_plain_formulas():
    generator = torch.Generator().manual_seed(0)
    out, yes = torch.randn(30, 1, generator=generator), (torch.rand(30, generator=generator) > 0.5).long()
    pairs = [(a, b) for a in range(30) for b in range(30) if yes[a] == 1 and yes[b] == 0]
    auc = sum(float(out[a] > out[b]) for a, b in pairs) / len(pairs)
    assert float(train.Binary().score(out, yes)) == pytest.approx(auc)
    target = torch.randn(30, 1, generator=generator)
    r2 = 1 - float((out - target).square().sum() / (target - target.mean()).square().sum())
    assert float(train.Regression().score(out, target)) == pytest.approx(r2, rel=1e-5)


def test_regression_trains():
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    target = data.labels.double()[:, None].float()
    split = data.split
    task = train.Task(data.features, data.graph, target, split.train, split.valid, split.test, train.Regression())
    torch.manual_seed(0)
    run = train.fit(us.models.APPNP(data.features.shape[1], 1), task, Plan(epochs=60, rate=0.02))
    assert run.history[-1].train_loss < run.history[0].train_loss


def test_an_interrupted_run_continues_to_the_same_numbers(task, tmp_path, monkeypatch):
    """Even when the interrupt comes after the step and before its record."""
    whole = model(task)
    expected = train.fit(whole, task, Plan(epochs=12))
    made, calls, file = model(task), [0], tmp_path / "run.pt"
    score = type(task.loss).score

    def cut(self, output, target):
        calls[0] += 1
        if calls[0] == 13:
            raise KeyboardInterrupt
        return score(self, output, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(task.loss), "score", cut)
        assert train.fit(made, task, Plan(epochs=12), snapshot=file, every=0.0).reason == "interrupted"
    again = model(task, seed=3)
    assert train.fit(again, task, Plan(epochs=12), snapshot=file).history == expected.history
    assert same(again, whole)


def test_a_dataset_in_the_place_of_a_task_is_named():
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    made = us.models.MLP(data.features.shape[1], 3)
    with pytest.raises(TypeError, match=r"Dataset is no task: give train\.Task\.of\(data\)"):
        train.fit(made, data, Plan(epochs=2))
