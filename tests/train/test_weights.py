"""Weights of classes and nodes: as scikit-learn counts them, in the loss and its gradient, and refused where they make no sense."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import unspool as us
from unspool import datasets, study, train
from unspool.errors import UNSHOWN, DataError
from unspool.train import Balance, TaskKind, TrainConfig, Trial, TrialLoader
from unspool.train.class_weight import read_class_weight, weights_of

QUICK = Trial(us.models.SGC, config=TrainConfig(epochs=4))


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def skewed(nodes=90, **more):
    """Three classes, of which one is rare."""
    plain = datasets.contextual_sbm(nodes=nodes, classes=3, seed=1)
    labels = torch.where((plain.labels == 2) & (torch.arange(nodes) % 3 > 0), 0, plain.labels)
    return datasets.from_tensors(plain.edge_index, plain.features, labels, **more)


def numbers(nodes=90, **more):
    plain = datasets.contextual_sbm(nodes=nodes, classes=3, seed=1)
    return datasets.from_tensors(plain.edge_index, plain.features, targets=draw(nodes, seed=2).float(), **more)


# -- counted as scikit-learn does --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_balanced_is_scikit_learns_on_the_training_nodes(seed):
    data = skewed()
    task = TrialLoader(data, class_weight="balanced").task(seed)
    y = data.labels[task.train].numpy()
    each = compute_class_weight("balanced", classes=np.unique(y), y=y)
    np.testing.assert_allclose(task.weight.numpy(), each[data.labels.numpy()], rtol=1e-6)
    np.testing.assert_allclose(task.weight[task.train].numpy(), compute_sample_weight("balanced", y), rtol=1e-6)


def test_other_training_nodes_give_other_weights():
    loader = TrialLoader(skewed(), class_weight="balanced")
    labels = skewed().labels
    one, other = loader.task(0), loader.task(0)
    assert one is other
    halved = weights_of(Balance.BALANCED, labels, one.train[::2])
    assert not torch.equal(halved, one.weight)


def test_a_class_without_training_nodes_weighs_one():
    found = weights_of(Balance.BALANCED, torch.tensor([0, 0, 1, 2, -1]), torch.tensor([0, 1, 2]))
    np.testing.assert_allclose(found, [0.75, 0.75, 1.5, 1, 1])


def test_balanced_labels_weigh_yes_against_no_column_by_column():
    nan = float("nan")
    target = torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, nan], [0.0, 0.0]])
    found = weights_of(Balance.BALANCED, target, torch.arange(4))
    for column in range(2):
        known = ~torch.isnan(target[:, column])
        wanted = compute_sample_weight("balanced", target[known, column].numpy())
        np.testing.assert_allclose(found[known, column], wanted, rtol=1e-6)


# -- in the loss and its gradient --------------------------------------------------------------------------------------

TARGETS = {
    "classes": (train.CrossEntropy(), 3, torch.tensor([0, 2, 1, 1, 0, 2])),
    "binary": (train.Binary(), 1, torch.tensor([0, 1, 1, 0, 0, 1])),
    "ordinal": (train.Ordinal(), 3, torch.tensor([0, 3, 1, 2, 0, 2])),
    "multilabel": (train.MultiLabel(), 2, torch.tensor([[1.0, 0], [0, torch.nan], [1, 1], [0, 0], [1, 0], [torch.nan, 1]])),
    "numbers": (train.Regression(), 2, draw(6, 2, seed=5)),
    "counts": (train.Counts(), 1, torch.tensor([[0.0], [3], [1], [7], [0], [2]])),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_a_weight_of_two_is_a_node_that_comes_twice(name):
    loss, channels, target = TARGETS[name]
    output = draw(6, channels).requires_grad_()
    weight = torch.tensor([1.0, 2, 0, 3, 1, 1], dtype=torch.float64)
    often = torch.repeat_interleave(torch.arange(6), weight.long())
    weighted, repeated = loss.weighted(output, target, weight), loss.loss(output[often], target[often])
    assert float(weighted.detach()) == pytest.approx(float(repeated.detach()), rel=1e-12)
    (a,), (b,) = torch.autograd.grad(weighted, output), torch.autograd.grad(repeated, output)
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)
    assert float(a[2].abs().max()) == 0


@pytest.mark.parametrize("name", TARGETS)
def test_equal_weights_change_nothing(name):
    loss, channels, target = TARGETS[name]
    output = draw(6, channels)
    weighted = loss.weighted(output, target, torch.full((6,), 7.0, dtype=torch.float64))
    assert float(weighted) == pytest.approx(float(loss.loss(output, target)), rel=1e-12)


def test_weighted_cross_entropy_is_scikit_learns():
    output, target = draw(6, 3), TARGETS["classes"][2]
    weight = draw(6, seed=9).exp()
    wanted = log_loss(target.numpy(), output.softmax(-1).numpy(), sample_weight=weight.numpy())
    assert float(train.CrossEntropy().weighted(output, target, weight)) == pytest.approx(wanted, rel=1e-12)


def test_training_and_validation_losses_are_weighted_and_scores_are_not():
    data = skewed(sample_weight=1 + torch.arange(90) % 4)
    loader = TrialLoader(data, class_weight={"0": 1, "1": 2, "2": 5})
    task = loader.task()
    wanted = (1 + torch.arange(90) % 4) * torch.tensor([1, 2, 5])[data.labels]
    torch.testing.assert_close(task.weight, wanted.float())
    model, run = train.train_trial(QUICK, loader)
    with torch.no_grad():
        output = model(task.x, task.graph)
    rows, truth = output[task.valid], task.target[task.valid]
    each = torch.nn.functional.cross_entropy(rows, truth, reduction="none")
    weight = task.weight[task.valid]
    assert run.best.valid_loss == pytest.approx(float((weight * each).sum() / weight.sum()), rel=1e-5)
    assert run.best.valid_score == pytest.approx(float((rows.argmax(-1) == truth).float().mean()), rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("case", ["classes", "numbers", "several labels"])
def test_weighted_trials_have_the_same_numbers_alone_and_in_a_stack(case):
    weight = 1 + torch.arange(90) % 4
    data = numbers(sample_weight=weight) if case == "numbers" else skewed(sample_weight=weight)
    if case == "several labels":
        rows = torch.stack([data.labels == 0, data.labels != 1], 1).float()
        data = datasets.from_tensors(data.edge_index, data.features, rows, sample_weight=weight)
    loader = TrialLoader(data, class_weight=None if case == "numbers" else "balanced")
    space = study.grid(us.models.SGC, seed=[0, 1, 2], epochs=6)
    rows = study.run(space, loader).rows
    for row in rows:
        alone = train.train_trial(Trial(us.models.SGC, config=TrainConfig(epochs=6), seed=row.trial["seed"]), loader)[1]
        assert row.result.valid_loss == pytest.approx(alone.best.valid_loss, rel=2e-5)
        assert row.result.train_loss == pytest.approx(alone.best.train_loss, rel=2e-5)


def test_weights_are_part_of_what_a_trial_is():
    weights = [None, "balanced", {"0": 1, "1": 2, "2": 5}, {"0": 1, "1": 2, "2": 6}]
    loaders = [TrialLoader(skewed(), class_weight=weight) for weight in weights]
    loaders += [TrialLoader(skewed(sample_weight=1 + torch.arange(90) % k)) for k in (2, 3)]
    assert len({loader.fingerprint for loader in loaders}) == len(loaders)
    assert len({QUICK.key(loader.fingerprint) for loader in loaders}) == len(loaders)
    assert len({loader.task().digest for loader in loaders}) == len(loaders)
    same = TrialLoader(skewed(), class_weight={"2": 5.0, "1": 2.0, "0": 1.0})
    assert same.fingerprint == loaders[2].fingerprint


# -- what is refused ---------------------------------------------------------------------------------------------------

WRONG = {
    "a word": ("equal", "equal", "balanced, or a weight for each class"),
    "a missing class": ({"a": 1}, UNSHOWN, "a weight for each class, and 'b' has none"),
    "an unknown class": ({"a": 1, "b": 1, "c": 1}, UNSHOWN, "weights of a, b, and 'c' is not one of them"),
    "negative": ({"a": 1, "b": -1}, UNSHOWN, "finite numbers of at least 0, and the weight of 'b' is -1"),
    "nan": ({"a": 1, "b": float("nan")}, UNSHOWN, "finite numbers of at least 0, and the weight of 'b' is nan"),
    "text": ({"a": 1, "b": "much"}, UNSHOWN, "finite numbers of at least 0, and the weight of 'b' is 'much'"),
    "all zero": ({"a": 0, "b": 0}, UNSHOWN, "at least one weight above 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_class_weights_that_cannot_be(case):
    given, value, expected = WRONG[case]
    with pytest.raises(us.InputError) as caught:
        read_class_weight(given, ["a", "b"])
    assert (caught.value.argument, caught.value.value, caught.value.expected) == ("class_weight", value, expected)


def test_kinds_without_classes_have_no_class_weight():
    for kind in (TaskKind.NUMBERS, TaskKind.COUNTS, TaskKind.RANKING, TaskKind.LINKS):
        with pytest.raises(us.InputError) as caught:
            kind.class_weight("balanced", ())
        assert caught.value.argument == "class_weight"
    with pytest.raises(us.InputError) as caught:
        TaskKind.MULTILABEL.class_weight({"a": 2}, ("a", "b"))
    assert caught.value.expected == "balanced, where nodes have several labels"


@pytest.mark.parametrize("kind", [TaskKind.RANKING, TaskKind.LINKS])
def test_pairs_of_nodes_have_no_weights(kind):
    with pytest.raises(us.InputError) as caught:
        TrialLoader(numbers(sample_weight=torch.ones(90)), kind=kind)
    assert caught.value.argument == "sample_weight"


@pytest.mark.parametrize("bad", [[-1.0], [float("inf")], [1e300], ["much"], [[1.0]], [1.0, 2.0]], ids=str)
def test_weights_of_nodes_that_cannot_be(bad):
    with pytest.raises(DataError) as caught:
        datasets.sample_weight.read_sample_weight(bad, 1)
    assert caught.value.where == "sample_weight"


@pytest.mark.parametrize(
    ("weight", "where", "problem"),
    [
        (torch.zeros(90), "the train set", "all weights are zero"),
        (torch.full((90,), torch.nan), "node", "has no weight"),
    ],
)
def test_weights_that_leave_nothing_to_learn(weight, where, problem):
    with pytest.raises(DataError) as caught:
        TrialLoader(skewed(sample_weight=weight))
    assert caught.value.where.startswith(where)
    assert problem in caught.value.problem


def test_a_node_outside_the_split_needs_no_weight():
    data = skewed()
    weight = torch.ones(90)
    weight[data.split.test] = torch.nan
    loader = TrialLoader(skewed(sample_weight=weight))
    assert train.train_trial(QUICK, loader)[1].best.epoch >= 1


def test_a_loss_of_ones_own_has_no_weights():
    with pytest.raises(us.IncompatibleError):
        TrialLoader(skewed(), loss=torch.nn.functional.cross_entropy, class_weight="balanced")
