"""Batches: every training node once an epoch, in an order that seed and epoch decide; together they are the loss of all."""

from dataclasses import replace

import pytest
import torch

import unspool as us
from unspool import datasets, study, train
from unspool.train import Batch, RowBatches, Task, TrainConfig, Trial
from unspool.train.batches import said
from unspool.train.class_weight import Balance
from unspool.train.epochs import Epochs, make_optimiser

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data():
    made = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    return made.with_split(replace(made.split, rule=None, seed=None))  # the same for all seeds


def tasks(data):
    """A task for every loss that single nodes have, some with weights."""
    chance = torch.Generator().manual_seed(1)
    split, n = data.split, data.nodes
    yes = (torch.rand(n, 4, generator=chance) > 0.5).double()
    partly = torch.where(torch.rand(n, 4, generator=chance) > 0.4, yes, torch.nan)
    partly[:, 0] = yes[:, 0]
    numbers = torch.randn(n, 2, generator=chance, dtype=torch.float64)
    weight = torch.rand(n, generator=chance, dtype=torch.float64)
    weight[split.train[:5]] = 0
    wide = torch.rand(n, 4, generator=chance, dtype=torch.float64)
    parts = (split.train, split.valid, split.test)

    def task(target, loss, weight=None):
        x, graph = data.features.double(), data.graph.to(torch.float64)
        return Task(x, graph, target, *parts, loss, weight=weight)

    return {
        "classes": task(data.labels, train.CrossEntropy()),
        "classes, weighted": task(data.labels, train.CrossEntropy(), weight),
        "classes, balanced": task(data.labels, train.CrossEntropy()).with_class_weight(Balance.BALANCED),
        "binary": task((data.labels == 0).long(), train.Binary(), weight),
        "labels": task(partly, train.MultiLabel()),
        "labels, weighted": task(partly, train.MultiLabel(), weight),
        "labels, each weighted": task(partly, train.MultiLabel(), wide),
        "numbers": task(numbers, train.Regression()),
        "counts": task(numbers.abs().ceil(), train.Counts(), weight),
        "in order": task(data.labels, train.Ordinal()),
        "own": task(numbers, lambda output, target: (output - target).abs().mean()),
    }


OUTPUTS = {"binary": 1, "numbers": 2, "counts": 2, "own": 2, "in order": 2}
NAMES = ["classes", "classes, weighted", "classes, balanced", "binary", "labels", "labels, weighted", "labels, each weighted", "numbers", "counts", "in order", "own"]  # fmt: skip


def gradient(loss, model):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


@pytest.mark.parametrize("size", [1, 7, 12, 100])
@pytest.mark.parametrize("name", NAMES)
def test_the_mean_over_an_epoch_is_the_loss_of_all_and_so_is_its_gradient(name, size, data):
    task = tasks(data)[name]
    if name == "own":  # a function of one's own is a mean over its rows: batches of one size
        size = task.train.numel() // 2 if size == 7 else size
    outputs = OUTPUTS.get(name, task.target.shape[1] if task.target.ndim > 1 else 3)
    model = us.models.GCN(task.x.shape[1], outputs, hidden=4).double().eval()
    rows, wanted = task.loss.learn(model(task.x, task.graph), task.train, task.target)
    whole = task.loss_of(rows, wanted, task.train)
    machine = Epochs(model, make_optimiser(TrainConfig(), model), task, TrainConfig(batch_size=size))
    parts = [machine._loss_of(batch) for batch in RowBatches(task, size, seed=3).training(epoch=5)]
    assert len(parts) <= -(-task.train.numel() // size)
    together = torch.stack(parts).mean()
    assert torch.allclose(together, whole, rtol=1e-12, atol=0)
    assert torch.allclose(gradient(together, model), gradient(whole, model), rtol=1e-10, atol=1e-14)


def test_every_node_is_there_once_in_batches_of_like_size(data):
    task = Task.of(data)
    for size in range(1, 60):
        batches = list(RowBatches(task, size, 0).training(1))
        many = [batch.rows.numel() for batch in batches]
        assert max(many) <= size
        assert max(many) - min(many) <= 1
        assert torch.equal(torch.cat([batch.rows for batch in batches]).sort().values, task.train)
        assert all(torch.equal(batch.target, task.target[batch.rows]) for batch in batches)


def test_the_order_is_that_of_seed_and_epoch(data):
    task = Task.of(data)

    def order(seed, epoch):
        return torch.cat([batch.rows for batch in RowBatches(task, 5, seed).training(epoch)]).tolist()

    source = RowBatches(task, 5, 7)
    list(source.training(1))
    torch.rand(3)
    assert torch.cat([batch.rows for batch in source.training(2)]).tolist() == order(7, 2)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1, 2**40) for epoch in (1, 2, 3)}) == 9


def test_nodes_that_do_not_count_alone_are_no_step(data):
    weight = torch.zeros(data.nodes)
    weight[data.split.train[0]] = 2.0
    weight[data.split.valid] = 1.0
    task = Task(data.features, data.graph, data.labels, data.split.train, data.split.valid, data.split.test, weight=weight)  # fmt: skip
    (only,) = RowBatches(task, 1, 0).training(1)
    assert only.rows.tolist() == [int(data.split.train[0])]
    assert only.factor == 1.0


def test_training_equals_a_loop_written_out(data):
    config = TrainConfig(lr=0.5, weight_decay=0, epochs=4, optimiser=torch.optim.SGD, batch_size=10)
    trial = Trial(us.models.SGC, config=config, seed=3)
    _, run = train.train_trial(trial, data)
    model, x, task = trial.build(data.features.shape[1], 3), data.features, Task.of(data)
    found = []
    for epoch in range(1, 5):
        losses = []
        for batch in RowBatches(task, 10, seed=3).training(epoch):
            model.zero_grad()
            output = model(x, data.graph)[batch.rows]
            loss = torch.nn.functional.cross_entropy(output, data.labels[batch.rows]) * batch.factor
            loss.backward()
            losses.append(loss.item())
            with torch.no_grad():
                for p in model.parameters():
                    p.sub_(0.5 * p.grad)
        output = model(x, data.graph)
        valid = torch.nn.functional.cross_entropy(output[data.split.valid], data.labels[data.split.valid]).item()
        right = (output.argmax(1) == data.labels)[data.split.test].float().mean().item()
        found.append((sum(losses) / len(losses), valid, right))
    told = [(e.train_loss, e.valid_loss, e.test_score) for e in run.history]
    for one, other in zip(told, found, strict=True):
        assert one == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize("kind", [us.models.GPRGNN, us.models.StableGNN])
def test_a_run_that_was_cut_off_goes_on_with_the_same_batches(kind, data, tmp_path):
    trial = Trial(kind, {"hidden": 8}, TrainConfig(epochs=12, batch_size=8), seed=5)
    model, whole = train.train_trial(trial, data)
    half = Trial(kind, {"hidden": 8}, TrainConfig(epochs=5, batch_size=8), seed=5)
    train.train_trial(half, data, snapshot=tmp_path / "run.pt")
    again, run = train.train_trial(trial, data, snapshot=tmp_path / "run.pt")
    assert run.history == whole.history
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    with pytest.raises(ValueError, match="batch_size 8, not 9"):
        train.train_trial(Trial(kind, {"hidden": 8}, TrainConfig(epochs=12, batch_size=9), seed=5), data, snapshot=tmp_path / "run.pt")  # fmt: skip


def test_studies_and_estimators_give_the_same_numbers(data):
    trials = [Trial(us.models.GCN, {"hidden": 8}, TrainConfig(epochs=6, batch_size=size), seed=1) for size in (9, None)]
    rows = {row.trial["config"]["batch_size"]: row.result for row in study.run(trials, data).rows}
    alone = train.train_trial(trials[0], data)[1].result
    assert (rows[9].epoch, rows[9].valid_loss) == (alone.epoch, alone.valid_loss)
    assert rows[9].valid_loss != rows[None].valid_loss
    labels = data.labels.clone()
    labels[data.split.test] = -1
    how = {"epochs": 6, "seed": 1, "batch_size": 9, "hidden": 8}
    found = us.NodeClassifier("GCN", **how).fit(data.features, labels, graph=data.graph, valid=data.split.valid)
    assert found.run_.best.valid_loss == alone.valid_loss
    with pytest.raises(us.InputError, match="batch_size"):
        us.NodeClassifier("GCN", batch_size=0).fit(data.features, labels, graph=data.graph)
    scored = us.NodeClassifier("GCN", monitor="balanced_accuracy", **how)
    assert scored.fit(data.features, labels, graph=data.graph).run_.history


def test_a_module_that_knows_of_no_rows_learns_in_batches_too(data):
    class Plain(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.layer = torch.nn.Linear(inputs, outputs)

        def forward(self, x, graph):
            return graph @ self.layer(x)

    run = train.train_trial(Trial(Plain, config=TrainConfig(epochs=4, batch_size=10)), data)[1]
    assert len(run.history) == 4
    model, rows = Plain(data.features.shape[1], 3), torch.tensor([4, 2])
    assert torch.equal(said(model, data.features, data.graph, rows), model(data.features, data.graph)[rows])


def test_half_precision_and_schedules_go_with_batches(data):
    for how in (
        {"precision": train.config.Precision.BFLOAT16},
        {"lr_schedule": train.config.Rates.COSINE, "clip": 0.1},
    ):
        run = train.train_trial(
            Trial(us.models.GPRGNN, {"hidden": 8}, TrainConfig(epochs=3, batch_size=9, **how)), data
        )[1]
        assert all(0 < e.train_loss < 5 for e in run.history)


def test_what_looks_at_everything_is_refused(data):
    links = train.link_task(data)
    ranked = Task.of(data, train.Ranking())
    refusals = [
        (Task.of(data), {"upper": "ce + consistency(views=2)"}, None, "upper=... looks at all nodes"),
        (
            Task.of(data),
            {"optimiser": torch.optim.LBFGS, "weight_decay": 0},
            None,
            "LBFGS looks at the same loss several times",
        ),
        (Task.of(data), {}, train.Hyper(), "hyper=... looks at all nodes in every step"),
        (links, {}, None, "Link reads more than the rows of single nodes"),
        (ranked, {}, None, "Ranking compares every two items"),
    ]
    for task, how, hyper, sentence in refusals:
        model = us.models.GPRGNN(data.features.shape[1], 3, hidden=8)
        with pytest.raises(us.IncompatibleError, match=sentence) as caught:
            train.fit(model, task, TrainConfig(batch_size=8, **how), hyper=hyper)
        assert hyper is not None or "batch_size" in str(caught.value)


def test_what_is_no_size_is_named():
    for value in (0, -1, 2.5, "many"):
        with pytest.raises(us.InputError) as caught:
            TrainConfig(batch_size=value)
        assert caught.value.argument == "batch_size"


def test_a_batch_holds_what_a_step_needs(data):
    batch = next(RowBatches(Task.of(data), 4, 0).training(1))
    assert isinstance(batch, Batch)
    assert batch.x is data.features
    assert batch.graph is data.graph
    assert batch.weight is None
