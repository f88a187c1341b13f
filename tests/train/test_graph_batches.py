"""Batches that are graphs: of clusters, and as PyG's loaders yield them; made by hand, as its sampler is not here."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_undirected

import unspool as us
from unspool import datasets, models, train
from unspool.errors import DataError, IncompatibleError, InputError
from unspool.graph import Degrees
from unspool.train import ClusterBatches, PygBatches, RowBatches, Task, TrainConfig
from unspool.train.epochs import Epochs, make_optimiser

pytestmark = pytest.mark.long

#: Networks whose answer about a node depends on all others.
WHOLE = (models.PPNP, models.FairGNN)


@pytest.fixture(scope="module")
def task():
    """Four rings that no edge joins, in float64; each holds nodes to learn from."""
    made = datasets.contextual_sbm(nodes=80, classes=3, seed=0)
    ring = torch.arange(20)
    ring = torch.cat([torch.stack([ring, (ring + 1) % 20]), torch.tensor([[0, 4], [7, 12]])], 1)
    edges = torch.cat([ring + 20 * i for i in range(4)], dim=1)
    graph = us.Graph.from_edges(edges, 80, directed=False).to(torch.float64)
    ids = torch.arange(80)
    parts = (ids[ids % 3 == 0], ids[ids % 3 == 1], ids[ids % 3 == 2])
    return Task(made.features.double(), graph, made.labels, *parts)


def sampled(task, seeds, hops, kind=Data):
    """What a sampler without a limit yields: seeds first, their neighbourhood behind, edges towards each node that was reached."""
    near = us.graph.neighbourhood(task.graph, seeds, hops)
    inner = us.graph.neighbourhood(task.graph, seeds, hops - 1)
    place = torch.full((task.nodes,), -1)
    place[near] = torch.arange(near.numel())
    row, col = task.graph.to_dense().nonzero(as_tuple=True)
    seen = (row != col) & torch.isin(row, inner)
    index = torch.stack([place[col[seen]], place[row[seen]]])
    return kind(n_id=near, edge_index=index, batch_size=seeds.numel(), num_nodes=near.numel())


def machine(model, task):
    return Epochs(model, make_optimiser(TrainConfig(), model), task, TrainConfig())


def gradients(model, task, batches):
    """The mean loss and gradient over some batches, at the same weights, without dropout."""
    model = copy.deepcopy(model).eval()
    steps = machine(model, task)
    loss = torch.stack([steps._loss_of(batch) for batch in batches]).mean()
    loss.backward()
    return loss.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def same(found, wanted):
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-11) for a, b in zip(found, wanted, strict=True))


def made(kind, task):
    torch.manual_seed(0)
    return kind(task.x.shape[1], 3).double()


@pytest.mark.parametrize("kind", [kind for kind in models.MODELS if kind not in WHOLE])
def test_full_neighbourhoods_with_degrees_of_the_whole_are_exact(kind, task):
    model = made(kind, task)
    loader = [sampled(task, part, 10) for part in task.train.split(9)]
    wanted = gradients(model, task, RowBatches(task, 100, 0).training(1))
    same(gradients(model, task, PygBatches(task, loader, degrees=Degrees.WHOLE).training(1)), wanted)


@pytest.mark.parametrize("kind", models.MODELS)
def test_every_model_trains_from_them_and_takes_them_by_itself(kind, task):
    loader = [sampled(task, part, 2) for part in task.train.split(14)]
    model = made(kind, task)
    run = train.fit(model, task, TrainConfig(epochs=2, lr=1e-3), batches=PygBatches(task, loader))
    assert len(run.history) == 2
    one = loader[0]
    graph = us.Graph.from_pyg(one, directed=False).to(torch.float64)
    with torch.no_grad():
        assert model(task.x[one.n_id], graph)[: one.batch_size].shape == (14, 3)


def test_own_degrees_are_those_that_pygs_layers_see(task):
    one = sampled(task, task.train[:5], 2)
    (batch,) = PygBatches(task, [one]).training(1)
    edge, weight = gcn_norm(to_undirected(one.edge_index), num_nodes=one.num_nodes, dtype=torch.float64)
    wanted = torch.zeros(one.num_nodes, one.num_nodes, dtype=torch.float64)
    wanted[edge[1], edge[0]] = weight
    assert torch.allclose(batch.graph.to_dense(), wanted, atol=1e-12)
    assert torch.equal(batch.x, task.x[one.n_id])
    assert torch.equal(batch.rows, torch.arange(5))
    assert torch.equal(batch.target, task.target[task.train[:5]])


def test_a_real_loader_draws_by_seed_and_epoch_alone(task):
    """torch's DataLoader, which PyG's are, over batches made before, shuffled: its order is decided, and nobody else's draws change."""
    held = [sampled(task, part, 1) for part in task.train.split(3)]
    loader = DataLoader(held, batch_size=1, shuffle=True, collate_fn=lambda one: one[0])

    def order(seed, epoch):
        return [
            int(batch.target.numel()) * 1000 + int(batch.x[0].sum() * 100)
            for batch in PygBatches(task, loader, seed=seed).training(epoch)
        ]

    torch.manual_seed(5)
    first, after = order(1, 1), torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(1))
    assert order(1, 1) == first
    assert order(1, 2) != first
    assert sorted(order(2, 1)) == sorted(first)


@pytest.mark.parametrize("kind", [kind for kind in models.MODELS if kind not in WHOLE])
@pytest.mark.parametrize("degrees", Degrees)
def test_clusters_that_no_edge_leaves_are_exact(kind, degrees, task):
    model, parts = made(kind, task), torch.arange(80) // 20
    wanted = gradients(model, task, RowBatches(task, 100, 0).training(1))
    for at_once in (1, 3):
        source = ClusterBatches(task, parts, at_once=at_once, degrees=degrees)
        same(gradients(model, task, source.training(1)), wanted)


def test_clusters_are_dealt_anew_each_node_once():
    task = Task.of(datasets.load("citeseer"))
    for parts in (us.graph.contiguous, torch.arange(task.nodes) % 30):
        source = ClusterBatches(task, parts, many=30, at_once=4, seed=1)
        epochs = [[batch.graph.nodes for batch in source.training(epoch)] for epoch in (1, 1, 2)]
        assert epochs[0] == epochs[1]
        assert epochs[0] != epochs[2]
        assert sum(batch.rows.numel() for batch in source.training(1)) == task.train.numel()
        assert sum(batch.factor for batch in source.training(1)) == pytest.approx(len(epochs[0]))


def test_sparse_features_and_weights(task):
    weight = torch.rand(80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sparse = us.nn.SparseFeatures.from_tensor(task.x)
    other = Task(sparse, task.graph, task.target, task.train, task.valid, task.test, weight=weight)
    model, parts = made(models.GCN, task), torch.arange(80) // 20
    wanted = gradients(model, other, RowBatches(other, 100, 0).training(1))
    same(gradients(model, other, ClusterBatches(other, parts, at_once=1).training(1)), wanted)


def test_gcn_learns_from_clusters():
    data = datasets.load("citeseer")
    task = Task.of(data)
    scores = []
    for source in (None, ClusterBatches(task, many=12, at_once=6)):
        torch.manual_seed(0)
        model = models.GCN(data.features.shape[1], 6, hidden=16)
        scores.append(train.fit(model, task, TrainConfig(epochs=25), batches=source).best.test_score)
    assert scores[1] > scores[0] - 0.06, scores


def test_snapshots_go_on_with_the_same_batches(task, tmp_path):
    def run(epochs, snapshot, seed=0):
        torch.manual_seed(0)
        model = models.GCN(task.x.shape[1], 3).double()
        source = ClusterBatches(task, many=8, seed=seed)
        return train.fit(model, task, TrainConfig(epochs=epochs), snapshot=snapshot, batches=source)

    whole = run(6, None)
    run(3, tmp_path / "a.pt")
    again = run(6, tmp_path / "a.pt")
    assert [epoch.train_loss for epoch in again.history] == [epoch.train_loss for epoch in whole.history]
    with pytest.raises(ValueError, match="batches"):
        run(8, tmp_path / "a.pt", seed=1)


def test_wrong_batches(task):
    good = sampled(task, task.train[:3], 1)
    bad = {
        "has no n_id": {"n_id": None}, "names a node twice": {"n_id": torch.zeros_like(good.n_id)},
        "nodes of the task": {"n_id": good.n_id + 79}, "batch_size is 0": {"batch_size": 0}, "batch_size is 99": {"batch_size": 99},
        "not in the training set": {"batch_size": good.n_id.numel()}, "node ids run": {"edge_index": torch.tensor([[0], [50]])},
    }  # fmt: skip
    for words, change in bad.items():
        one = Data(**{**good.to_dict(), **change})
        with pytest.raises(ValueError, match=words):
            list(PygBatches(task, [one]).training(1))
    nobody = Data(n_id=task.valid[:2], edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(DataError, match="no training node"):
        list(PygBatches(task, [nobody]).training(1))
    for loader in (iter([good]), [], (one for one in [good])):
        with pytest.raises(InputError, match="loader"):
            PygBatches(task, loader)
    wrong = {
        "many": [0, 2.0, True],
        "at_once": [0],
        "parts": [torch.zeros(3).long(), torch.zeros(80), "metis", lambda graph, many: None],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InputError, match=name):
                ClusterBatches(task, **{name: value})
    assert ClusterBatches(task, np.arange(80) // 20).many == 4


def test_batches_of_another_task_are_refused(task):
    other = dataclasses.replace(task, train=task.valid)
    with pytest.raises(IncompatibleError, match="of another task than the one that is learnt"):
        train.fit(made(models.GCN, task), task, TrainConfig(epochs=1), batches=ClusterBatches(other))


def test_what_looks_at_everything_is_refused(task, tmp_path):
    source, model = ClusterBatches(task, many=4), made(models.GCN, task)
    refused = {
        "batch_size": {"config": TrainConfig(batch_size=3)}, "upper": {"config": TrainConfig(upper="ce + consistency(views=2)")},
        "hyper": {"hyper": train.Hyper("first")}, "spread": {"spread": us.graph.Columns()},
        "LBFGS": {"config": TrainConfig(optimiser=torch.optim.LBFGS, weight_decay=0)},
    }  # fmt: skip
    for words, how in refused.items():
        config = how.pop("config", TrainConfig())
        with pytest.raises(IncompatibleError, match=words):
            train.fit(model, task, config, batches=source, **how)
    with pytest.raises(InputError, match="batches"):
        train.fit(model, task, TrainConfig(), batches=[1])
    stored = us.hops.write(task.graph, task.x, depth=1, out=tmp_path / "hops")
    with pytest.raises(IncompatibleError, match="hops on the disk"):
        ClusterBatches(Task(stored, None, task.target, task.train, task.valid, task.test))
