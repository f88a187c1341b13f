"""One model as another: the same function in the coefficients of a richer one."""

import pytest
import torch

import unspool as us
from reference.cases import IN, build, close, doubles, graphs, signal, slopes
from unspool import models

GRAPHS = graphs()
HOLDS = ["SGC", "SGC-pos", "SGC-no-bias", "APPNP", "APPNP-bias", "JKNet", "GPRGNN", "GPRGNN-random", "GPRGNN-warm",
         "UGDGNN", "UGDGNN-hidden-free", "UGDGNN-chebyshev", "UGDGNN-general"]  # fmt: skip


@pytest.mark.parametrize("where", ["small", "isolated", "directed"])
@pytest.mark.parametrize("name", HOLDS)
def test_ugdgnn_holds_the_other_models(name, where):
    model, (graph, _) = build(name).eval(), GRAPHS[where]
    made, x = models.UGDGNN.from_model(model), signal(graph.nodes)
    assert not made.training
    assert isinstance(made.propagation, models.ugdgnn.MixedHops)
    assert next(made.parameters()).dtype == torch.float64
    assert close(made(x, graph), model(x, graph))
    assert bool(str(made.objective))


@pytest.mark.parametrize("name", ["SGC", "SGC-pos", "APPNP", "APPNP-bias", "GPRGNN", "GPRGNN-random"])
def test_gprgnn_holds_models_with_numbers(name):
    model, (graph, _) = build(name).eval(), GRAPHS["small"]
    made, x = models.GPRGNN.from_model(model), signal(graph.nodes)
    assert close(made(x, graph), model(x, graph))


def test_a_copy_trains_alone():
    model, (graph, _) = build("APPNP"), GRAPHS["small"]
    before = {n: p.clone() for n, p in model.state_dict().items()}
    made = models.UGDGNN.from_model(model)
    assert made.training
    out = made(signal(graph.nodes), graph)
    for parameter, slope in zip(made.parameters(), slopes(out, made), strict=True):
        parameter.data -= 0.1 * slope
        assert bool(torch.isfinite(slope).all())
    assert all(torch.equal(p, before[n]) for n, p in model.state_dict().items())
    groups = made.parameter_groups()
    assert sum(len(g) for g in groups.values()) == len(list(made.parameters()))
    assert not any("origin" in name for name in made.state_dict())
    assert made.origin.kind is models.APPNP


@pytest.mark.parametrize(
    ("target", "name", "words"),
    [
        ("UGDGNN", "GCN", "GCN cannot be written with hop coefficients"),
        ("UGDGNN", "GCNII", "GCNII cannot be written"),
        ("UGDGNN", "AirGNN", "AirGNN cannot be written"),
        ("UGDGNN", "PPNP", "PPNP cannot be written"),
        ("UGDGNN", "DAGNN", "DAGNN cannot be written"),
        ("UGDGNN", "MLP", "MLP cannot be written"),
        ("UGDGNN", "JKNet-max", "JKNet cannot be written .*linear-sum JKNet"),
        ("UGDGNN", "JKNet-concatenate", "JKNet cannot be written"),
        ("GPRGNN", "GCN", "GCN cannot be written"),
        ("GPRGNN", "PPNP", "PPNP cannot be written"),
        ("GPRGNN", "JKNet", "of this JKNet are matrices.*use UGDGNN.from_model"),
        ("GPRGNN", "UGDGNN", "of this UGDGNN are matrices"),
    ],
)
def test_what_does_not_fit_is_refused(target, name, words):
    with pytest.raises(us.IncompatibleError, match=words):
        getattr(models, target).from_model(build(name))


@pytest.mark.parametrize("thing", [None, "APPNP", models.APPNP, torch.nn.Linear(2, 2)])
@pytest.mark.parametrize("target", [models.UGDGNN, models.GPRGNN])
def test_what_is_no_model_is_named(target, thing):
    with pytest.raises(TypeError, match="is not a model"):
        target.from_model(thing)


@pytest.mark.parametrize("name", ["small", "isolated", "weighted", "karate"])
@pytest.mark.parametrize(
    ("response", "degree"),
    [
        (lambda f: f**2 / 4, 2),
        (lambda f: 1 - f / 2, 1),
        (torch.ones_like, 3),
        (lambda f: torch.exp(-3 * f), 24),
        (lambda f: (f - 1) ** 3 - 0.2 * f, 6),
        (lambda f: torch.cos(4 * f), 24),
    ],
)
def test_from_filter_is_the_filter(response, degree, name):
    graph, a = GRAPHS[name]
    model = models.UGDGNN.from_filter(response, degree, features=IN).double()
    if model.fit.max_error > 1e-6:  # what was fitted in float64 lives in float32 parameters
        pytest.fail(f"the fit misses by {model.fit.max_error}")
    with torch.no_grad():
        model.propagation.gamma.copy_(model.fit.hops)
    frequency, modes = torch.linalg.eigh(torch.eye(graph.nodes, dtype=torch.float64) - a)
    x = signal(graph.nodes)
    expected = modes @ (response(frequency)[:, None] * (modes.T @ x))
    assert close(model(x, graph), expected)


def test_from_filter_with_a_graph_reports_its_error():
    graph, _ = GRAPHS["karate"]
    model = models.UGDGNN.from_filter(us.spectral.low_pass(0.5), 10, graph=graph)
    assert model.fit.graph_error is not None
    assert models.UGDGNN.from_filter(us.spectral.low_pass(0.5), 10).fit.graph_error is None
    assert models.UGDGNN(3, 2).fit is None


@pytest.mark.parametrize("start", list(models.HopStart))
def test_hop_starts(start):
    warm = [0.5, 1.0, -1.0, 2.0] if start is models.HopStart.WARM else None
    gamma = models.GPRGNN(3, 2, depth=3, teleport=0.2, start=start, warm=warm).propagation.hops().detach().double()
    expected = {
        models.HopStart.UNIFORM: [1 / 3] * 4,
        models.HopStart.PPR: [0.2, 0.16, 0.128, 0.512],
        models.HopStart.SGC: [0.0, 0.0, 0.0, 1.0],
        models.HopStart.NPPR: [v / 1.248 for v in (1.0, 0.2, 0.04, 0.008)],
        models.HopStart.WARM: warm,
    }.get(start)
    if expected is None:
        assert float(gamma.abs().sum()) == pytest.approx(1.0)
        assert gamma.abs().min() > 0
    else:
        assert torch.allclose(gamma, torch.tensor(expected, dtype=torch.float64), atol=1e-7)


@pytest.mark.parametrize("name", ["GCN-no-bias", "GCN"])
def test_gcn_as_unrolled(name):
    """The ReLU layers of a square GCN are proximal gradient steps; the width and the bias stand in the way elsewhere."""
    (graph, _), square = GRAPHS["small"], models.GCN(IN, 4, hidden=4, depth=3, bias=False).double().eval()
    steps = square.propagation.as_unrolled()
    x = signal(graph.nodes, 4)
    layers = list(square.propagation.layers(x, graph))
    assert close(steps(x, graph), layers[1])
    assert steps.depth == 2
    with doubles():  # made in float64, not cast to it
        made = models.GCN(IN, 4, hidden=4, depth=3, bias=False).propagation.as_unrolled()
    assert made.coefficients["W"].dtype == torch.float64
    with pytest.raises(us.IncompatibleError, match="bias" if name == "GCN" else "single linear layer"):
        (build("GCN") if name == "GCN" else models.GCN(IN, 4, depth=1)).propagation.as_unrolled()
    wide = models.JKNet(3, 2, hidden=4, depth=3, combine=models.Combine.MAX).propagation.as_unrolled()
    assert wide.depth == 3
    with pytest.raises(us.IncompatibleError, match="batch normalisation"):
        models.GCN(IN, 4, hidden=4, depth=3, bias=False, batch_norm=True).propagation.as_unrolled()
