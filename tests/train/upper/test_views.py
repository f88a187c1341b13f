"""Views: one stacked pass is a loop over views, view 0 is the pass of today, and perturbations are the masks of their keys."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unspool as us
from unspool import train
from unspool.ops import SparseFeatures
from unspool.ops.dropout import advance, keep_mask, key
from unspool.train.upper import DropEdges, DropEntries, DropNodes, Seen, Upper, perturbation_key, view_key
from unspool.train.upper.level import UpperLevel
from unspool.train.upper.views import Views, looped_views, perturbed, stacked_views

NODES, FEATURES, COUNT = 12, 6, torch.tensor(4)
MODELS: dict[str, dict[str, Any]] = {
    "APPNP": {"propagation_dropout": 0.3}, "GCN": {"batch_norm": True}, "GCNII": {"depth": 3}, "UGDGNN": {"masks": us.models.Masks.EACH_HOP, "propagation_dropout": 0.4},
    "DAGNN": {"batch_norm": True}, "TWIRLS": {"depth": 2}, "ElasticGNN": {"depth": 2}, "AirGNN": {"depth": 2},
}  # fmt: skip


def data(sparse: bool) -> tuple[Any, us.Graph]:
    dense = torch.rand(NODES, FEATURES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    dense = dense * (dense > 0.4)
    graph = us.graph.grid(3, 4).to(torch.float64)
    return SparseFeatures.from_tensor(dense) if sparse else dense, graph


def built(name: str) -> nn.Module:
    torch.manual_seed(0)
    kind = us.models.find_model(name)
    return kind(FEATURES, 3, **{"hidden": 5, **MODELS[name]}).double()


def both(
    model: nn.Module, text: str, sparse: bool
) -> tuple[list[Tensor], list[Tensor], dict[str, Tensor], dict[str, Tensor]]:
    """Outputs and gradients of a stacked pass and of the loop, and the buffers after each."""
    upper, (x, graph) = Upper.parse(text), data(sparse)
    keys = [perturbation_key(3, place) for place in range(len(upper.perturbations))]
    other = copy.deepcopy(model)
    told: list[list[Tensor]] = []
    for one, stacked in ((model, True), (other, False)):
        outputs = (
            stacked_views(one, {}, upper, x, graph, keys, COUNT, upper.numbers)
            if stacked
            else looped_views(one, upper, x, graph, keys, COUNT, upper.numbers)
        )
        weights = torch.linspace(-1, 1, outputs.numel(), dtype=torch.float64).view(outputs.shape)
        told.append(
            [
                outputs.detach(),
                *torch.autograd.grad((outputs * weights).sum(), [p for p in one.parameters() if p.requires_grad]),
            ]
        )
    return told[0], told[1], dict(model.named_buffers()), dict(other.named_buffers())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_stacked_pass_is_the_loop(name: str, sparse: bool) -> None:
    stacked, looped, after, wanted = both(
        built(name), "ce + consistency(views=3) under drop_nodes(0.4) and drop_entries(0.2)", sparse
    )
    for a, b in zip(stacked, looped, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-11)
    for buffer, value in after.items():
        assert torch.allclose(value.double(), wanted[buffer].double(), rtol=1e-9), buffer
    assert not torch.allclose(stacked[0][0], stacked[0][1])


@pytest.mark.parametrize("name", MODELS)
def test_view_0_is_the_pass_without_views(name: str) -> None:
    model, (x, graph) = built(name), data(False)
    plain = copy.deepcopy(model)
    for _ in range(2):  # the second pass has the counters that the first one left
        views = looped_views(model, Upper.parse("ce + consistency(views=3)"), x, graph, [], COUNT, {})
        assert torch.allclose(views[0], plain(x, graph), rtol=1e-12)
    counts = {n: b for n, b in model.named_buffers() if n.endswith(("count", "num_batches_tracked"))}
    assert all(torch.equal(b, dict(plain.named_buffers())[n]) for n, b in counts.items())
    assert counts


def test_one_view_changes_no_number() -> None:
    """The upper level `ce` is the loss of the task, epoch by epoch."""
    sbm = us.datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    runs = [
        train.train_trial(train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(epochs=6, upper=upper)), sbm)[1]
        for upper in (None, "ce")
    ]
    for one, other in zip(runs[0].history, runs[1].history, strict=True):
        assert one.to_list() == pytest.approx(other.to_list(), rel=1e-5)


def test_the_mask_of_a_view_is_that_of_its_key() -> None:
    torch.manual_seed(0)
    drop = us.nn.Dropout(0.5)

    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = drop

        def forward(self, x: Tensor, graph: us.Graph) -> Tensor:
            return self.drop(self.drop(x))

    x, graph = torch.ones(NODES, 4), us.graph.ring(NODES)
    count, first = int(drop.count), drop.key.clone()
    outputs = stacked_views(Bare(), {}, Upper.parse("ce + consistency(views=3)"), x, graph, [], COUNT, {})
    for view in range(3):
        own = first if view == 0 else advance(first, view)
        masks = [keep_mask((NODES, 4), 0.5, own, count + call) for call in range(2)]
        assert torch.equal(outputs[view], 4.0 * (masks[0] & masks[1]))
    assert int(drop.count) == count + 2
    assert torch.equal(drop.key, first)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_and_entries_are_lost_by_their_keys(sparse: bool) -> None:
    x, _ = data(sparse)
    dense = data(False)[0]
    k = key(0, 1, 2)
    rows = keep_mask((NODES, 1), 0.3, k, COUNT).double() / 0.7
    found: Any = DropNodes(0.3).features(x, 0.3, k, COUNT)
    assert torch.allclose(found.to_dense() if sparse else found, rows * dense)
    entries: Any = DropEntries(0.3).features(x, 0.3, k, COUNT)
    wanted = keep_mask((NODES, FEATURES), 0.3, k, COUNT).double() / 0.7 * dense
    assert torch.allclose(entries.to_dense() if sparse else entries, wanted)
    if sparse:
        assert torch.allclose(entries.operator.T.to_dense(), wanted.T)
        assert torch.allclose(found.operator.T.to_dense(), (rows * dense).T)


@pytest.mark.parametrize("how", [us.Normalisation.SYMMETRIC, us.Normalisation.RANDOM_WALK])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_with_lost_edges_is_that_of_the_edges_that_are_left(how: us.Normalisation, directed: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    weights = (torch.rand(20, 20, generator=generator) * (torch.rand(20, 20, generator=generator) < 0.3)).double()
    weights = weights if directed else weights + weights.T
    graph = us.Graph.from_dense(weights.fill_diagonal_(0), normalise=how, directed=directed).to(torch.float64)
    found = DropEdges(0.5).graph(graph, 0.5, key(0, 1, 2), COUNT)
    kept = torch.where(found.to_dense() > 0, weights, 0.0)
    wanted = us.Graph.from_dense(kept, normalise=how, directed=directed).to(torch.float64)
    assert torch.allclose(found.to_dense(), wanted.to_dense(), rtol=1e-6)
    assert torch.allclose(found.operator.T.to_dense(), wanted.to_dense().T, rtol=1e-6)
    assert 0.3 < float((kept > 0).sum() / (weights > 0).sum()) < 0.7
    assert directed or torch.equal(kept > 0, (kept > 0).T)


def test_networks_that_need_the_incidence_matrix_are_told_that_edges_are_lost() -> None:
    x, graph = data(False)
    upper = Upper.parse("ce under drop_edges(0.5)")
    with pytest.raises(us.IncompatibleError, match="perturb with DropNodes in the place of DropEdges"):
        looped_views(built("TWIRLS"), upper, x, graph, [perturbation_key(0, 0)], COUNT, upper.numbers)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("lost", ["drop_nodes(0.6)", "drop_entries(0.6)", "drop_nodes(0.3) and drop_entries(0.3)"])
def test_nodes_stay_in_their_group_whatever_they_lose(lost: str, sparse: bool) -> None:
    """FairGNN reads the group from a column of X: a node that lost it would have changed sides."""
    x, graph = data(sparse)
    upper = Upper.parse(f"ce + consistency(views=3) under {lost}")
    keys = [perturbation_key(3, place) for place in range(len(upper.perturbations))]
    whole, model = data(False)[0], us.models.FairGNN(FEATURES, 3, hidden=5, depth=2, group=2).double()
    other = Upper.parse(f"ce under {lost}")
    seen, _ = perturbed(model, other, x, graph, keys, 0, COUNT, other.numbers)
    plain, _ = perturbed(nn.Identity(), other, x, graph, keys, 0, COUNT, other.numbers)
    found, bare = (one.to_dense() if sparse else one for one in (seen, plain))
    assert torch.equal(found[:, 2], whole[:, 2])
    assert not torch.equal(bare[:, 2] > 0, whole[:, 2] > 0)
    rest = [0, 1, 3, 4, 5]
    assert torch.equal(found[:, rest], bare[:, rest])
    if sparse:
        assert torch.equal(seen.operator.T.to_dense(), found.T)
    stacked, looped, *_ = both(model, upper.text(), sparse)
    for a, b in zip(stacked, looped, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-11)


def test_columns_that_are_kept_must_be_there() -> None:
    class Own(nn.Identity):
        kept_features = (FEATURES,)

    x, graph = data(False)
    upper = Upper.parse("ce under drop_nodes(0.5)")
    with pytest.raises(us.InputError, match=r"kept_features=\(6,\): expected numbers of features, from 0 to 5"):
        perturbed(Own(), upper, x, graph, [perturbation_key(0, 0)], 0, COUNT, upper.numbers)


def test_what_cannot_be_stacked_runs_in_a_loop_to_the_same_numbers() -> None:
    class Peeking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.drop = us.nn.Linear(FEATURES, 3), us.nn.Dropout(0.5)

        def forward(self, x: Tensor, graph: us.Graph) -> Tensor:
            out = self.layer(self.drop(x))
            return out * (1.0 if float(out.detach().sum()) > 1e9 else 2.0)  # looks at a value

    torch.manual_seed(0)
    model, (x, graph) = Peeking().double(), data(False)
    other = copy.deepcopy(model)
    upper = Upper.parse("ce + consistency(views=2)")

    class Holding:
        pass

    task = Holding()
    task.x, task.graph = x, graph  # type: ignore[attr-defined]
    views = Views(model, upper, task, [], {})
    found = [views(COUNT) for _ in range(2)]
    assert views.stacked is False
    assert torch.equal(
        torch.stack(found), torch.stack([looped_views(other, upper, x, graph, [], COUNT, {}) for _ in range(2)])
    )


def test_trials_of_a_pack_have_the_views_they_have_alone() -> None:
    """vmap over trials around the views: weights, masks, rates and keys of each trial are its own."""
    upper, (x, graph) = Upper.parse("ce + consistency(views=3, temperature=0.5) under drop_nodes(0.5)"), data(True)
    models = [us.models.APPNP(FEATURES, 3, hidden=5, dropout=0.1 + 0.3 * t).double() for t in range(2)]
    alone, keys = [], [perturbation_key(seed, 0) for seed in (7, 8)]
    rates = torch.tensor([0.2, 0.6], dtype=torch.float64)
    for t, model in enumerate(models):
        numbers = {**upper.numbers, "under.0.rate": rates[t]}
        alone.append(stacked_views(copy.deepcopy(model), {}, upper, x, graph, [keys[t]], COUNT, numbers))
    states = [{**dict(m.named_parameters()), **dict(m.named_buffers())} for m in models]
    held = {name: torch.stack([s[name].detach() for s in states]) for name in states[0] if "after" not in name}

    def one(mine: dict[str, Tensor], rate: Tensor, own: Tensor) -> Tensor:
        return stacked_views(models[0], mine, upper, x, graph, [own], COUNT, {**upper.numbers, "under.0.rate": rate})

    together = torch.func.vmap(one)(held, rates, torch.stack(keys))
    assert torch.allclose(together, torch.stack(alone), rtol=1e-9)
    assert held["p_pre.dropout.count"].tolist() == [2, 2]


def test_masks_of_views_differ_and_those_of_epochs_too() -> None:
    k = perturbation_key(0, 0)
    keys = view_key(k, torch.arange(4))
    assert keys.unique().numel() == 4
    assert int(keys[0]) == int(k)
    sbm = us.datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    model = us.models.SGC(sbm.features.shape[1], 3)
    level = UpperLevel(Upper.parse("ce under drop_nodes(0.5)"), model, train.Task.of(sbm), seed=0)
    first = float(level.loss().detach())
    assert float(level.loss().detach()) == first
    level.advance()
    assert float(level.loss().detach()) != first


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_of_a_pack_is_that_of_each_trial_alone(sparse: bool) -> None:
    """The whole of it under vmap over trials: views, losses, numbers, training nodes and seeds of each, one backward pass."""
    upper = Upper.parse("ce + 2*warm_up(9)*consistency(views=3, temperature=0.5) + 0.1*entropy under drop_nodes(0.5)")
    x, graph = data(sparse)
    target, loss = torch.arange(NODES) % 3, train.CrossEntropy()
    models = [us.models.StableGNN(FEATURES, 3, hidden=5, depth=2, batch_norm=True).double() for _ in range(2)]
    keys = torch.stack([perturbation_key(seed, 0) for seed in (7, 8)])
    numbers = {name: torch.tensor([value, 0.6 * value], dtype=torch.float64) for name, value in upper.numbers.items()}
    known = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])

    def one(held: dict[str, Tensor], own: Tensor, at: dict[str, Tensor], ids: Tensor) -> Tensor:
        outputs = stacked_views(skeleton, held, upper, x, graph, [own], COUNT, at)
        return upper.value(Seen(outputs, target, ids, graph, loss, COUNT), at)

    alone: list[dict[str, Tensor]] = []
    for t, model in enumerate(models):
        skeleton = copy.deepcopy(model)
        one({}, keys[t], {name: value[t] for name, value in numbers.items()}, known[t]).backward()
        alone.append({name: p.grad for name, p in skeleton.named_parameters() if p.grad is not None})
    skeleton = models[0]
    states = [{**dict(m.named_parameters()), **dict(m.named_buffers())} for m in models]
    held = {name: torch.stack([s[name].detach() for s in states]) for name in states[0] if "after" not in name}
    held = {name: value.requires_grad_(name in alone[0]) for name, value in held.items()}
    torch.func.vmap(one)(held, keys, numbers, known).sum().backward()
    for name in alone[0]:
        found = held[name].grad
        assert found is not None
        for t in range(2):
            assert torch.allclose(found[t], alone[t][name], rtol=1e-8, atol=1e-11), name
