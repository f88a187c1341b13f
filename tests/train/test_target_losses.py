"""Several labels, ordered classes and counts: losses and scores against float64 references, gradients, and what is refused."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.metrics import cohen_kappa_score, d2_tweedie_score, f1_score, log_loss, mean_poisson_deviance

import unspool as us
from unspool import datasets, study, train
from unspool.errors import DataError
from unspool.train import TaskKind, TrainConfig, Trial, TrialLoader
from unspool.train.ordinal import class_probabilities, log_probabilities

NAN = float("nan")


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def whole(high, *shape, seed=0):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def differences(function, output, step=1e-6):
    """The gradient by central differences."""
    found = np.zeros_like(output)
    for place in np.ndindex(output.shape):
        up, down = output.copy(), output.copy()
        up[place] += step
        down[place] -= step
        found[place] = (function(up) - function(down)) / (2 * step)
    return found


def agrees(loss, reference, output, target):
    """The loss is the reference, and its gradient that of the reference."""
    rows = output.clone().requires_grad_()
    value = loss.loss(rows, target)
    assert float(value.detach()) == pytest.approx(reference(output.numpy(), target.numpy()), rel=1e-11)
    (gradient,) = torch.autograd.grad(value, rows)
    wanted = differences(lambda o: reference(o, target.numpy()), output.numpy())
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-6, atol=1e-8)


# -- several labels ----------------------------------------------------------------------------------------------------


def several(seed, share=0.3):
    target = whole(2, 20, 3, seed=seed).double()
    target[draw(20, 3, seed=seed + 50) < -1 + share] = NAN
    target[:, 0] = target[:, 0].nan_to_num(1.0)  # every node has one that is known
    return target


def known_entries(output, target):
    known = ~np.isnan(target)
    return target[known], expit(output[known])


@pytest.mark.parametrize("seed", range(3))
def test_several_labels_are_scikit_learns_log_loss_over_what_is_known(seed):
    def reference(output, target):
        truth, chance = known_entries(output, target)
        return log_loss(truth, chance)

    agrees(train.MultiLabel(), reference, draw(20, 3, seed=seed)[:6], several(seed)[:6])


@pytest.mark.parametrize("seed", range(5))
def test_micro_f1_is_scikit_learns(seed):
    output, target = draw(20, 3, seed=seed), several(seed)
    truth, chance = known_entries(output.numpy(), target.numpy())
    assert float(train.MultiLabel().score(output, target)) == pytest.approx(f1_score(truth, chance > 0.5), rel=1e-12)
    whole_table = several(seed, share=-9)
    wanted = f1_score(whole_table.numpy(), output.numpy() > 0, average="micro")
    assert float(train.MultiLabel().score(output, whole_table)) == pytest.approx(wanted, rel=1e-12)


def test_what_is_not_known_does_not_count():
    output, target = draw(20, 3), several(0)
    moved = torch.where(torch.isnan(target), 50.0, output)
    for method in (train.MultiLabel().loss, train.MultiLabel().score):
        assert float(method(output, target)) == float(method(moved, target))
    rows = output.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(train.MultiLabel().loss(rows, target), rows)
    assert float(gradient[torch.isnan(target)].abs().max()) == 0


def test_nothing_said_and_nothing_true_is_zero():
    assert float(train.MultiLabel().score(-torch.ones(3, 2), torch.zeros(3, 2))) == 0


# -- ordered classes ---------------------------------------------------------------------------------------------------


def plain_chances(output):
    """P(y ≥ k) = σ(c_k) with c_1 = z_1 and c_{k+1} = c_k − log(1 + e^z); differences of neighbours."""
    steps = np.concatenate([output[:, :1], -np.log1p(np.exp(output[:, 1:]))], axis=1)
    above = expit(np.cumsum(steps, axis=1))
    ones, zeros = np.ones((len(output), 1)), np.zeros((len(output), 1))
    edges = np.concatenate([ones, above, zeros], axis=1)
    return edges[:, :-1] - edges[:, 1:]


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_ordered_classes_are_the_plain_formula(classes):
    def reference(output, target):
        return -np.mean(np.log(plain_chances(output)[np.arange(len(target)), target]))

    agrees(train.Ordinal(), reference, draw(25, classes - 1, seed=classes), whole(classes, 25, seed=classes))


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_of_ordered_classes_sum_to_one_and_are_finite_far_out(classes):
    output = 30 * draw(40, classes - 1)
    chances = class_probabilities(output)
    torch.testing.assert_close(chances.sum(-1), torch.ones(40, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    assert bool((chances >= 0).all())
    assert bool(torch.isfinite(log_probabilities(1e4 * output)).all())
    rows = (1e3 * output).requires_grad_()
    (gradient,) = torch.autograd.grad(train.Ordinal().loss(rows, whole(classes, 40)), rows)
    assert bool(torch.isfinite(gradient).all())


def test_two_ordered_classes_are_yes_or_no():
    output, target = draw(20, 1), whole(2, 20)
    assert float(train.Ordinal().loss(output, target)) == pytest.approx(
        float(train.Binary().loss(output, target)), rel=1e-12
    )


def test_steps_that_are_the_same_everywhere_are_proportional_odds():
    """σ(f − θ_k) with one slope: thresholds are the same at all nodes, and in order."""
    slope, steps = draw(30, 1), torch.tensor([0.5, -1.0, 2.0]).double()
    output = torch.cat([slope, steps.expand(30, 3)], 1)
    above = 1 - class_probabilities(output).cumsum(-1)[:, :-1]
    thresholds = slope - torch.logit(above)
    np.testing.assert_allclose(thresholds, thresholds[:1].expand(30, 4), atol=1e-9)
    assert bool((thresholds[0].diff() > 0).all())


@pytest.mark.parametrize("seed", range(5))
def test_the_score_of_ordered_classes_is_scikit_learns_quadratic_kappa(seed):
    output, target = 3 * draw(40, 3, seed=seed), whole(4, 40, seed=seed)
    said = plain_chances(output.numpy()).argmax(1)
    wanted = cohen_kappa_score(target.numpy(), said, weights="quadratic")
    assert float(train.Ordinal().score(output, target)) == pytest.approx(wanted, rel=1e-10, abs=1e-12)


def test_one_class_alone_has_no_kappa():
    assert np.isnan(float(train.Ordinal().score(torch.tensor([[-9.0, 0.0]] * 3), torch.zeros(3).long())))


# -- counts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2])
def test_counts_are_scikit_learns_poisson_deviance(columns):
    def reference(output, target):
        return np.mean([mean_poisson_deviance(target[:, c], np.exp(output[:, c])) for c in range(columns)])

    agrees(train.Counts(), reference, draw(20, columns), whole(6, 20, columns).double())


@pytest.mark.parametrize("seed", range(5))
def test_d2_is_scikit_learns(seed):
    output, target = draw(30, 1, seed=seed), whole(7, 30, 1, seed=seed).double()
    wanted = d2_tweedie_score(target[:, 0].numpy(), output[:, 0].exp().numpy(), power=1)
    assert float(train.Counts().score(output, target)) == pytest.approx(wanted, rel=1e-11)


def test_counts_are_learnt_at_mean_one_and_come_back():
    data = counted(40 * whole(5, 90, seed=1).float())
    task = train.Task.of(data, train.Counts())
    known = data.targets[task.train].double()
    assert float(task.scaling.centre) == 0
    assert float(task.scaling.scale) == pytest.approx(float(known.mean()))
    assert float(task.target[task.train].mean()) == pytest.approx(1, rel=1e-6)
    output = draw(90, 1)
    wanted = d2_tweedie_score(data.targets[:, 0].numpy(), task.scaling.undo(output.exp())[:, 0].numpy(), power=1)
    assert float(train.Counts().score(output, task.target.double())) == pytest.approx(wanted, rel=1e-5)


# -- what is refused ---------------------------------------------------------------------------------------------------


def plain():
    return datasets.contextual_sbm(nodes=90, classes=3, seed=1)


def counted(values):
    made = plain()
    return datasets.from_tensors(made.edge_index, made.features, targets=values)


def labelled(rows, **more):
    made = plain()
    return datasets.from_tensors(made.edge_index, made.features, rows, **more)


@pytest.mark.parametrize(("value", "told"), [(-1.0, "-1"), (2.5, "2.5")])
def test_what_is_not_a_count(value, told):
    values = torch.ones(90)
    values[7] = value
    with pytest.raises(DataError) as caught:
        TrialLoader(counted(values), kind=TaskKind.COUNTS)
    assert f"node 7 is {told}," in caught.value.problem


@pytest.mark.parametrize(("values", "where"), [(torch.zeros(90), "the train set"), (torch.ones(90), "the test set")])
def test_counts_with_nothing_to_learn(values, where):
    with pytest.raises(DataError) as caught:
        TrialLoader(counted(values), kind=TaskKind.COUNTS)
    assert caught.value.where == where


@pytest.mark.parametrize("bad", [2.0, -1.0, 0.5, float("inf")])
def test_what_is_neither_yes_nor_no(bad):
    rows = whole(2, 90, 3).float()
    rows[5, 1] = bad
    with pytest.raises(DataError) as caught:
        labelled(rows)
    assert caught.value.where == "labels, row 5"
    assert f"label 1 is {bad:g}," in caught.value.problem
    with pytest.raises(DataError):
        train.MultiLabel().check(rows, torch.arange(90), "train")


def test_one_hot_rows_are_not_taken_for_several_labels():
    hot = torch.nn.functional.one_hot(plain().labels, 3)
    with pytest.raises(ValueError, match="argmax"):
        labelled(hot)
    assert labelled(hot, classes=["a", "b", "c"]).multilabel  # somebody says that they are


def test_parts_with_nothing_to_tell_apart():
    rows = torch.zeros(90, 2)
    with pytest.raises(DataError) as caught:
        TrialLoader(labelled(rows))
    assert (caught.value.where, "all known labels are no" in caught.value.problem) == ("the train set", True)
    rows = whole(2, 90, 2).float()
    split = plain().split
    rows[split.valid[0]] = NAN
    with pytest.raises(DataError) as caught:
        TrialLoader(labelled(rows, split=split))
    assert caught.value.where == f"node {int(split.valid[0])}"


def test_nodes_with_some_known_labels_are_in_the_split_and_others_are_not():
    rows = whole(2, 90, 2).float()
    rows[::3, 0] = NAN
    rows[:9] = NAN
    data = labelled(rows)
    parts = torch.cat([data.split.train, data.split.valid, data.split.test])
    assert sorted(parts.tolist()) == list(range(9, 90))
    assert train.train_trial(Trial(us.models.SGC, config=TrainConfig(epochs=3)), TrialLoader(data))[1].best.epoch >= 1


def test_names_do_not_tell_their_order():
    names = np.array(["low", "mid", "high"])[plain().labels.numpy()].tolist()
    with pytest.raises(us.InputError) as caught:
        TrialLoader(labelled(names), kind=TaskKind.ORDINAL)
    assert caught.value.argument == "class_order"
    for order in (["low", "high"], ["low", "mid", "high", "top"], ["low", "low", "high"]):
        with pytest.raises(us.InputError) as caught:
            labelled(names, class_order=order)
        assert (caught.value.argument, "high, low, mid" in caught.value.expected) == ("class_order", True)
    data = labelled(names, class_order=["low", "mid", "high"])
    assert TaskKind.seen_in(data) is TaskKind.ORDINAL
    assert data.classes == ("low", "mid", "high")
    assert torch.equal(data.labels, plain().labels)


def test_one_class_has_no_order():
    with pytest.raises(us.InputError) as caught:
        TrialLoader(labelled(["3"] * 90), kind=TaskKind.ORDINAL)
    assert (caught.value.argument, caught.value.value) == ("loss", "ordinal")


# -- alone and in a stack ----------------------------------------------------------------------------------------------

STACKED = {
    TaskKind.MULTILABEL: lambda: labelled(torch.where(draw(90, 3, seed=4) < -1, NAN, whole(2, 90, 3).double()).float()),
    TaskKind.ORDINAL: lambda: labelled(plain().labels),
    TaskKind.COUNTS: lambda: counted(whole(6, 90).float()),
    TaskKind.BINARY: lambda: labelled((plain().labels > 0).long()),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", STACKED, ids=lambda kind: kind.value)
def test_a_trial_has_the_same_numbers_alone_and_in_a_stack(kind):
    loader = TrialLoader(STACKED[kind](), kind=kind)
    rows = study.run(study.grid(us.models.GCN, seed=[0, 1, 2], hidden=8, epochs=6), loader).rows
    for row in rows:
        trial = Trial(us.models.GCN, {"hidden": 8}, TrainConfig(epochs=6), seed=row.trial["seed"])
        best = train.train_trial(trial, loader)[1].best
        for name in ("train_loss", "valid_loss", "valid_score", "test_score"):
            assert getattr(row.result, name) == pytest.approx(getattr(best, name), rel=1e-4, abs=1e-5), name


def test_these_kinds_are_stacked():
    from unspool.study.engine.batching import signature

    for kind, make in STACKED.items():
        loader = TrialLoader(make(), kind=kind)
        found = [signature(loader.prepare(Trial(us.models.GCN, {"hidden": 8}, seed=seed))) for seed in (0, 1)]
        assert found[0] is not None
        assert found[0] == found[1]
