"""A mask for every hop: the dense sum with the masks written out, its gradient, its mean, and nothing else changed."""

import copy

import pytest
import torch
from torch.linalg import matrix_power

import unspool as us
from reference.cases import CASES, build, close, doubles, edge_lists, graphs, signal, slopes
from reference.models import perceptron
from unspool import models, train
from unspool.explain import explain
from unspool.models import Masks
from unspool.ops.dropout import keep_mask

pytestmark = pytest.mark.long


EACH = [name for name in CASES if name.endswith("each-hop")]
GRAPHS = graphs()
KINDS = [models.UGDGNN, models.GPRGNN, models.APPNP]


def polynomials(a, many, basis):
    """Powers of A, or Chebyshev polynomials of it."""
    if basis is us.Basis.POWERS:
        return [matrix_power(a, k) for k in range(many)]
    found = [torch.eye(a.shape[0], dtype=a.dtype), a]
    while len(found) < many:
        found.append(2 * a @ found[-1] - found[-2])
    return found[:many]


def coefficients(model, a):
    if isinstance(model, models.APPNP):
        gamma, depth = model.settings["teleport"], model.settings["depth"]
        return [gamma * (1 - gamma) ** k for k in range(depth)] + [(1 - gamma) ** depth]
    return list(model.propagation.hops())


def dense(model, a, x, turn):
    """Σ pₖ(A) Dₖ(Z) cₖ with masks that are hashed here; no dropout in any other place."""
    z, drop = perceptron(x, model.p_pre), model.p_pre.after
    hops = coefficients(model, a)
    total = 0
    for k, (power, c) in enumerate(zip(polynomials(a, len(hops), model.settings.get("basis", us.Basis.POWERS)), hops, strict=True)):  # fmt: skip
        rate = float(drop.rate)
        masked = z * keep_mask(z.shape, rate, drop.key, turn * len(hops) + k) / (1 - rate)
        total = total + power @ (masked @ c if isinstance(c, torch.Tensor) and c.ndim == 2 else masked * c)
    return model.p_pos[1](total) if isinstance(model.p_pos, torch.nn.Sequential) else total


def without_other_dropout(name):
    kind, settings = CASES[name]
    with doubles():
        torch.manual_seed(0)
        return kind(6, 3, **{**settings, "dropout": 0.0, "propagation_dropout": 0.25})


@pytest.mark.parametrize("where", GRAPHS)
@pytest.mark.parametrize("name", EACH)
def test_is_the_dense_sum_with_its_masks(name, where):
    model, (graph, a) = without_other_dropout(name), GRAPHS[where]
    x = signal(graph.nodes)
    for turn in range(3):
        out, expected = model(x, graph), dense(model, a, x, turn)
        assert close(out, expected)
        for mine, theirs in zip(slopes(out, model), slopes(expected, model), strict=True):
            assert close(mine, theirs)
    assert int(model.p_pre.after.count) == 3 * (model.settings["depth"] + 1)


@pytest.mark.parametrize("name", EACH)
def test_has_the_gradient_that_differences_have(name):
    model, (graph, _) = without_other_dropout(name), GRAPHS["isolated"]
    x = signal(graph.nodes).requires_grad_()

    def run(x):
        return copy.deepcopy(model)(x, graph)  # the count stays where it is, and with it the masks

    assert torch.autograd.gradcheck(run, x)


@pytest.mark.parametrize("name", EACH)
def test_evaluation_knows_no_masks(name):
    kind, settings = CASES[name]
    (graph, _), x = GRAPHS["isolated"], signal(GRAPHS["isolated"][0].nodes)
    each = build(name).eval()
    with doubles():
        torch.manual_seed(0)
        once = kind(6, 3, **{**settings, "masks": Masks.ONCE}).eval()
    once.load_state_dict(each.state_dict())
    assert torch.equal(each(x, graph), once(x, graph))
    assert int(each.p_pre.after.count) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_masks_change_no_start(kind):
    found = []
    for masks in Masks:
        torch.manual_seed(0)
        found.append(kind(6, 3, masks=masks).state_dict())
    assert list(found[0]) == list(found[1])
    assert all(torch.equal(a, b) for a, b in zip(found[0].values(), found[1].values(), strict=True))


@pytest.mark.parametrize("name", EACH)
def test_the_mean_over_masks_is_the_output_without(name):
    model, (graph, _), (index, _, nodes) = without_other_dropout(name), GRAPHS["isolated"], edge_lists()["isolated"]
    calls, copies = 40, 100  # every copy of the graph has masks of its own
    edges = torch.cat([index + nodes * copy for copy in range(copies)], 1)
    many = us.Graph.from_edges(edges, nodes=nodes * copies, directed=True).to(torch.float64)
    x, runs = signal(nodes), calls * copies
    with torch.no_grad():
        total = square = torch.zeros(())
        for _ in range(calls):
            out = model(x.repeat(copies, 1), many).view(copies, nodes, -1)
            total, square = total + out.sum(0), square + (out**2).sum(0)
        mean = total / runs
        error = ((square / runs - mean**2).clamp_min(0) / runs).sqrt()
        assert error.max() > 0
        assert ((mean - model.eval()(x, graph)).abs() <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rate_zero_is_no_dropout(kind):
    (graph, _), outs = GRAPHS["isolated"], []
    x = signal(graph.nodes)
    for masks in Masks:
        with doubles():
            torch.manual_seed(0)
            model = kind(6, 3, dropout=0.0, propagation_dropout=0.0, masks=masks)
        outs += [model(x, graph), model.eval()(x, graph)]
    assert all(torch.equal(out, outs[0]) for out in outs)


@pytest.mark.parametrize("kind", KINDS)
def test_hops_have_different_masks_and_seeds_the_same(kind):
    graph, x = us.graph.ring(40), torch.ones(40, 6)

    def masks_of():
        torch.manual_seed(5)
        model, seen = kind(6, 3, depth=3, propagation_dropout=0.5, masks=Masks.EACH_HOP), []
        model.p_pre.after.register_forward_hook(lambda _, given, found: seen.append((given[0] != 0) & (found == 0)))
        return seen, model(x, graph)

    (one, out), (other, again) = masks_of(), masks_of()
    assert len(one) == 4
    assert all(not torch.equal(one[i], one[j]) for i in range(4) for j in range(i))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert torch.equal(out, again)


def test_general_layers_and_minimisers_are_refused():
    with pytest.raises(
        us.IncompatibleError, match=r"have no hops to mask one by one; take Layers.REDUCED or Masks.ONCE"
    ):
        models.UGDGNN(6, 3, layers=models.Layers.GENERAL, masks=Masks.EACH_HOP)
    with pytest.raises(
        us.IncompatibleError, match=r"APPNP cannot be solved exactly: .*; build it with masks=Masks.ONCE"
    ):
        models.APPNP(6, 3, masks=Masks.EACH_HOP).solve_exactly()
    exact = models.APPNP(6, 3, propagation_dropout=0.5).solve_exactly()
    assert exact(torch.eye(6), us.graph.ring(6)).shape == (6, 3)


@pytest.mark.parametrize("kind", [models.GPRGNN, models.APPNP])
def test_conversion_keeps_the_masks(kind):
    (graph, _), x = GRAPHS["isolated"], signal(GRAPHS["isolated"][0].nodes)
    with doubles():
        torch.manual_seed(0)
        source = kind(6, 3, depth=3, propagation_dropout=0.5, masks=Masks.EACH_HOP)
        richer = models.UGDGNN.from_model(source)
    assert close(richer(x, graph), source(x, graph))  # in training: the same masks in the same places
    assert close(richer.eval()(x, graph), source.eval()(x, graph))
    assert int(richer.p_pre.after.count) == 4


def test_readings_look_past_the_masks():
    graph, x = us.graph.ring(6), torch.eye(6)
    for name in ("UGDGNN-each-hop", "GPRGNN-each-hop", "APPNP-each-hop"):
        kind, settings = CASES[name]
        each, once = (kind(6, 3, **{**settings, "masks": masks}) for masks in (Masks.EACH_HOP, Masks.ONCE))
        once.load_state_dict(each.state_dict())
        split, other = (explain(model, x, graph, 0).split for model in (each, once))
        assert torch.equal(split.by_hop, other.by_hop)
        passed, expected = (us.spectral.response(model)(torch.linspace(0, 2, 5)) for model in (each, once))
        assert torch.equal(passed, expected)
        assert each.propagation.read_back() is not None


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_trains(kind):
    index, _, nodes = edge_lists()["isolated"]
    graph, x = us.Graph.from_edges(index, nodes=nodes), torch.randn(nodes, 6)
    target, ids = torch.arange(nodes) % 3, torch.arange(nodes)
    task = train.Task(x, graph, target, ids, ids, ids)
    config = train.TrainConfig(epochs=3, precision=train.Precision.BFLOAT16)
    run = train.fit(kind(6, 3, depth=3, propagation_dropout=0.5, masks=Masks.EACH_HOP), task, config)
    assert all(torch.isfinite(torch.tensor(epoch.train_loss)) for epoch in run.history)


def test_settings_of_the_encoder_go_over_with_it():
    source = models.GPRGNN(5, 3, hidden=7, dropout=0.4, propagation_dropout=0.3, masks=models.Masks.EACH_HOP)
    made = models.UGDGNN.from_model(source).settings
    assert [made[name] for name in ("hidden", "dropout", "propagation_dropout", "masks")] == [
        7, 0.4, 0.3, models.Masks.EACH_HOP,
    ]  # fmt: skip


def test_the_rate_before_the_hops_follows_dropout_where_nothing_is_said():
    """GPRGNN's authors have one rate for both; what goes over to another model is the rate itself."""
    model = models.GPRGNN(5, 3, dropout=0.3)
    assert model.settings["propagation_dropout"] is None
    assert float(model.p_pre.after.rate) == pytest.approx(0.3)
    assert float(models.GPRGNN(5, 3, dropout=0.3, propagation_dropout=0.0).p_pre.after.rate) == 0.0
    assert models.UGDGNN.from_model(model).settings["propagation_dropout"] == 0.3
    assert models.GPRGNN.from_model(model).settings["propagation_dropout"] == 0.3
