"""Training: the same seed gives the same run, cut-off runs end alike, epochs are chosen and stopped as the config says."""

import math
from dataclasses import dataclass, replace

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.files import write_sealed
from unspool.ops.features import SparseFeatures
from unspool.train import Diverged, Ending, Epoch, Monitor, Stop, TrainConfig, Trial, TrialLoader


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
    a, b = (train.fit(m, task, TrainConfig(epochs=15)) for m in (first, second))
    assert a.history == b.history
    assert same(first, second)


class CutOff(BaseException):
    """What kill -9 looks like from inside: nothing after it runs."""


@pytest.mark.parametrize("at", [1, 2, 7, 14])
def test_a_cut_off_run_ends_like_one_that_was_not(task, tmp_path, at):
    whole = model(task)
    expected = train.fit(whole, task, TrainConfig(epochs=15))

    def watch(now, best):
        if now.epoch == at:
            raise CutOff

    file = tmp_path / "run.pt"
    with pytest.raises(CutOff):
        train.fit(model(task), task, TrainConfig(epochs=15), watch=watch, snapshot=file, snapshot_every=0.0)
    again = model(task, seed=5)
    run = train.fit(again, task, TrainConfig(epochs=15), snapshot=file) if file.exists() else None
    if run is None:  # cut off before the first snapshot: nothing to continue
        assert at == 1
        return
    assert run.history == expected.history
    assert run.best == expected.best
    assert same(again, whole)


def test_the_best_epoch_is_kept(task):
    made = model(task)
    seen = []
    run = train.fit(made, task, TrainConfig(epochs=20, lr=0.05), watch=lambda now, best: seen.append((now, best)))
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


def chosen(config, epochs):
    best = None
    for epoch in epochs:
        best = epoch if config.better(epoch, best) else best
    return best.epoch


def test_selection_rules():
    epochs = history([3.0, 1.0, 2.0, 1.0], [0.1, 0.4, 0.6, 0.6])
    assert chosen(TrainConfig(monitor=Monitor.VALID_LOSS), epochs) == 2
    assert chosen(TrainConfig(monitor=Monitor.VALID_SCORE), epochs) == 4  # equal scores: the lower loss
    assert chosen(TrainConfig(monitor=Monitor.LAST_EPOCH), epochs) == 4


def test_stopping_rules():
    epochs = history([3.0, 2.0, 2.5, 2.5])
    assert TrainConfig(stop=Stop.PATIENCE, patience=2).ended(epochs, epochs[1])
    assert not TrainConfig(stop=Stop.PATIENCE, patience=3).ended(epochs, epochs[1])
    assert not TrainConfig(stop=Stop.NEVER, patience=1).ended(epochs, epochs[0])
    rising = history([1.0, 1.0, 1.0, 1.1])
    assert TrainConfig(stop=Stop.ABOVE_MEAN, patience=3).ended(rising, rising[0])
    assert not TrainConfig(stop=Stop.ABOVE_MEAN, patience=3, min_epochs=10).ended(rising, rising[0])
    falling = history([1.0, 1.0, 1.0, 0.9])
    assert not TrainConfig(stop=Stop.ABOVE_MEAN, patience=3).ended(falling, falling[3])


def test_patience_ends_a_run(task):
    run = train.fit(model(task), task, TrainConfig(lr=0.5, epochs=200, stop=Stop.PATIENCE, patience=3))
    assert len(run.history) == run.best.epoch + 3
    assert run.ending is run.result.ending is Ending.STOPPED
    assert "(stopped early)" in str(run)


def test_a_run_that_is_not_stopped_goes_through_all_epochs(task):
    run = train.fit(model(task), task, TrainConfig(epochs=4, stop=Stop.NEVER))
    assert run.ending is Ending.ALL_EPOCHS
    best, result = run.best, run.result
    assert (result.epoch, result.epochs, result.seconds) == (best.epoch, 4, run.seconds)
    assert (result.train_loss, result.valid_loss, result.valid_score, result.test_score) == (
        best.train_loss, best.valid_loss, best.valid_score, best.test_score,
    )  # fmt: skip


def test_restarting_leaves_an_old_snapshot_until_there_is_a_new_one(task, tmp_path):
    file, config = tmp_path / "run.pt", TrainConfig(epochs=6)
    expected = train.fit(model(task), task, config, snapshot=file)
    old = file.read_bytes()

    def watch(now, best):
        assert file.read_bytes() == old
        if now.epoch == 3:
            raise CutOff

    with pytest.raises(CutOff):
        train.fit(model(task, seed=4), task, config, snapshot=file, watch=watch, restart=True)
    assert file.read_bytes() == old
    again = train.fit(model(task), task, config, snapshot=file, restart=True)
    assert again.history == expected.history


def test_decay_goes_where_the_configuration_says(task):
    made = model(task)
    groups = TrainConfig(weight_decay={"first": 0.1}).parameter_groups(made)
    assert {g["weight_decay"]: len(g["params"]) for g in groups} == {
        0.1: len(made.parameter_groups()["first"]),
        0.0: len(list(made.parameters())) - len(made.parameter_groups()["first"]),
    }
    with pytest.raises(TypeError, match=r"Linear has no parameter_groups\(\); give one number"):
        TrainConfig(weight_decay={"first": 0.1}).parameter_groups(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", us.models.MODELS)
def test_one_number_decays_all_but_hop_coefficients(kind):
    made, config = kind(5, 3), TrainConfig(weight_decay=0.1)
    left = {id(p) for p in made.parameter_groups().get("hops", [])}
    found = {id(p): g["weight_decay"] for g in config.parameter_groups(made) for p in g["params"]}
    assert found == {id(p): 0.0 if id(p) in left else 0.1 for p in made.parameters() if p.requires_grad}
    whole = TrainConfig(weight_decay=dict.fromkeys((*made.parameter_groups(), "hops"), 0.1)).parameter_groups(made)
    assert [g["weight_decay"] for g in whole] == [0.1]  # who wants all of them decayed says so


def test_a_module_without_groups_is_decayed_whole():
    (group,) = TrainConfig(weight_decay=0.1).parameter_groups(torch.nn.Linear(2, 2))
    assert (len(group["params"]), group["weight_decay"]) == (2, 0.1)


def test_interrupting_keeps_the_best(task):
    def watch(now, best):
        if now.epoch == 5:
            raise KeyboardInterrupt

    run = train.fit(model(task), task, TrainConfig(epochs=50), watch=watch)
    assert run.ending is Ending.INTERRUPTED
    assert len(run.history) == 5


def test_divergence_is_named(task):
    with pytest.raises(Diverged, match=r"in epoch \d+: the learning rate 1e\+30 is probably too large"):
        train.fit(model(task), task, TrainConfig(lr=1e30, epochs=20))


def test_a_snapshot_is_not_continued_with_a_model_of_other_settings(task, tmp_path):
    """Masks and teleports leave no trace in the weights."""
    file, features = tmp_path / "run.pt", task.x.shape[1]
    once, each = (us.models.UGDGNN(features, 3, propagation_dropout=0.5, masks=masks) for masks in us.models.Masks)
    train.fit(once, task, TrainConfig(epochs=2), snapshot=file)
    with pytest.raises(ValueError, match=r"began with masks once, not each_hop; continue it as it began"):
        train.fit(each, task, TrainConfig(epochs=3), snapshot=file)
    assert len(train.fit(once, task, TrainConfig(epochs=3), snapshot=file).history) == 3
    content = torch.load(file, weights_only=True)
    del content["about"]["settings"]["masks"]
    write_sealed(file, lambda where: torch.save(content, where))
    with pytest.raises(ValueError, match="began with masks None, not once"):  # nothing is taken for granted
        train.fit(once, task, TrainConfig(epochs=3), snapshot=file)


class Opaque(us.models.Model):
    """A setting of which nothing is known but that it is there."""

    problem: object = us.setting(None, "what is solved", of=object)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.5) + us.Smoothness(self.problem.weight), us.GradientDescent(), 2)


@dataclass(eq=False)
class Weight:
    weight: float


class Bare:
    """Without a word about itself, but for its address."""

    def __init__(self, weight):
        self.weight = weight


@pytest.mark.parametrize("kind", [Weight, Bare])
def test_objects_among_the_settings_are_told_apart_and_known_again(task, tmp_path, kind):
    file, features = tmp_path / "run.pt", task.x.shape[1]

    def fitted(weight, epochs):
        made = Opaque(features, 3, problem=kind(weight))
        return train.fit(made, task, TrainConfig(epochs=epochs), snapshot=file)

    fitted(0.5, 2)
    assert len(fitted(0.5, 4).history) == 4  # another object that is the same
    with pytest.raises(ValueError, match="began with problem"):
        fitted(0.25, 5)


class Own(torch.nn.Linear):
    """Means something else by the names that our models have."""

    def __init__(self, width):
        super().__init__(width, 3)
        self.schema, self.settings = ["a", "list"], {"width": width}

    def forward(self, x, graph):
        return super().forward(x)


def test_modules_that_mean_something_else_by_settings_are_continued(task, tmp_path):
    made, config = Own(task.x.shape[1]), TrainConfig(epochs=2)
    for settings in ({"width": 5}, ["width"], None):
        made.settings = settings
        file = tmp_path / f"{type(settings).__name__}.pt"
        train.fit(made, task, config, snapshot=file)
        assert len(train.fit(made, task, config.replace(epochs=3), snapshot=file).history) == 3


def test_damaged_or_foreign_snapshots_are_named(task, tmp_path):
    file = tmp_path / "run.pt"
    file.write_bytes(b"not a snapshot")
    with pytest.raises(ValueError, match=r"run.pt cannot be continued .* remove it to start again"):
        train.fit(model(task), task, TrainConfig(epochs=2), snapshot=file)
    file.unlink()
    train.fit(model(task), task, TrainConfig(epochs=2), snapshot=file)
    other = us.models.GPRGNN(task.x.shape[1], 3, hidden=4)
    with pytest.raises(ValueError, match="began with hidden 8, not 4"):
        train.fit(other, task, TrainConfig(epochs=2), snapshot=file)
    vars(other)["settings"] = {}  # a module of one's own has none
    with pytest.raises(ValueError, match="belongs to another model"):
        train.fit(other, task, TrainConfig(epochs=2), snapshot=file)


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
    train.fit(model(before), before, TrainConfig(epochs=2), snapshot=file)
    with pytest.raises(ValueError, match=r"run\.pt began on other data"):
        train.fit(model(after), after, TrainConfig(epochs=3), snapshot=file)
    assert len(train.fit(model(again), again, TrainConfig(epochs=3), snapshot=file).history) == 3


@pytest.mark.parametrize("every", [math.nan, math.inf, -1.0])
def test_seconds_between_snapshots_are_finite(task, tmp_path, every):
    with pytest.raises(us.InputError) as caught:
        train.fit(model(task), task, TrainConfig(epochs=2), snapshot=tmp_path / "run.pt", snapshot_every=every)
    assert caught.value.argument == "snapshot_every"
    assert caught.value.value is every


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("lr", 0.0, "a finite number above 0"),
        ("lr", math.nan, "a finite number above 0"),
        ("weight_decay", -1e-4, "a number of at least 0, or one for each group of parameters"),
        ("epochs", 0, "a whole number of at least 1"),
        ("patience", 0, "a whole number of at least 1"),
        ("min_epochs", -1, "a whole number of at least 0"),
        (
            "monitor",
            "valid_loss",
            "one of Monitor.VALID_LOSS, Monitor.VALID_SCORE, Monitor.TRAIN_LOSS, Monitor.LAST_EPOCH",
        ),
        ("optimiser", "adem", "a class of torch.optim, such as torch.optim.AdamW"),
    ],
)
def test_bad_configurations_are_named(name, value, expected):
    """The rest is in tests/settings: every setting at and beyond its ends."""
    with pytest.raises(us.InputError) as caught:
        TrainConfig(**{name: value})
    assert (caught.value.argument, caught.value.expected, caught.value.owner) == (name, expected, "TrainConfig")
    assert caught.value.value is value


def test_a_name_of_an_optimiser_names_its_class():
    with pytest.raises(us.InputError, match=r"such as torch.optim.AdamW; write optimiser=torch.optim.RMSprop$"):
        TrainConfig(optimiser="rmsprop")


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
    run = train.fit(us.models.APPNP(data.features.shape[1], 1), task, TrainConfig(epochs=60, lr=0.02))
    assert run.history[-1].train_loss < run.history[0].train_loss


def test_an_interrupted_run_continues_to_the_same_numbers(task, tmp_path, monkeypatch):
    """Even when the interrupt comes after the step and before its record."""
    whole = model(task)
    expected = train.fit(whole, task, TrainConfig(epochs=12))
    made, calls, file = model(task), [0], tmp_path / "run.pt"
    score = type(task.loss).score

    def cut(self, output, target):
        calls[0] += 1
        if calls[0] == 13:
            raise KeyboardInterrupt
        return score(self, output, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(task.loss), "score", cut)
        assert (
            train.fit(made, task, TrainConfig(epochs=12), snapshot=file, snapshot_every=0.0).ending
            is Ending.INTERRUPTED
        )
    again = model(task, seed=3)
    assert train.fit(again, task, TrainConfig(epochs=12), snapshot=file).history == expected.history
    assert same(again, whole)


def test_a_dataset_in_the_place_of_a_task_is_named():
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    made = us.models.MLP(data.features.shape[1], 3)
    with pytest.raises(TypeError, match=r"Dataset is not a task: give train\.Task\.of\(data\)"):
        train.fit(made, data, TrainConfig(epochs=2))


# -- one trial and several seeds --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=3, seed=0)


TRIAL = Trial(us.models.GPRGNN, {"hidden": 8, "depth": 3}, TrainConfig(epochs=5), seed=2)


def test_a_trial_is_fit_on_the_split_of_its_seed(data):
    """Train_trial is nothing but: build, then fit, under one seed."""
    made, run = train.train_trial(TRIAL, data)
    with train.seeded(2):
        alone = us.models.GPRGNN(data.features.shape[1], 3, hidden=8, depth=3)
        own = train.Task.of(data.with_split(datasets.splits.repetition(data, 2)))
        expected = train.fit(alone, own, TRIAL.config)
    assert run.history == expected.history
    assert same(made, alone)


def test_seeds_are_trained_one_by_one_and_nothing_is_left_behind(data, tmp_path):
    torch.manual_seed(77)
    before, seen = torch.get_rng_state(), []
    runs = train.repeat(
        TRIAL, data, seeds=[4, 2], watch=lambda seed, now, best: seen.append((seed, now.epoch)), folder=tmp_path
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert seen == [(seed, epoch) for seed in (4, 2) for epoch in range(1, 6)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["seed2.pt", "seed4.pt"]
    assert runs.runs[1].history == train.train_trial(TRIAL, TrialLoader(data))[1].history
    again = train.repeat(
        TRIAL, data, seeds=[4, 2], watch=lambda *_: pytest.fail("nothing is left to do"), folder=tmp_path
    )
    assert [run.history for run in again.runs] == [run.history for run in runs.runs]
    assert all(same(a, b) for a, b in zip(again.models, runs.models, strict=True))
    assert (runs.seeds, runs.score_name, len(runs.models)) == ((4, 2), "accuracy", 2)
    assert str(runs).startswith("test accuracy 0.")
    assert str(runs).endswith("over 2 seeds")
    one = train.repeat(TRIAL, data, seeds=1)
    assert one.seeds == (0,)
    assert math.isnan(one.std)
    assert str(one).endswith("over 1 seed")


@pytest.mark.parametrize("kind", us.models.MODELS)
def test_every_model_is_trained_by_its_trial(data, kind):
    made, run = train.train_trial(Trial(kind, config=TrainConfig(epochs=2)), data)
    assert type(made) is kind
    assert not made.training
    assert len(run.history) == 2


@pytest.mark.parametrize("given", [3, None, us.graph.ring(3), "no such data"])
def test_what_is_not_data_is_named(given):
    with pytest.raises((TypeError, ValueError), match=r"is not a dataset|no such data"):
        train.train_trial(TRIAL, given)
