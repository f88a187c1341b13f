"""What is wrong with an input or a setting is said in one sentence, by every model alike."""

import math

import numpy as np
import pytest
import torch

import unspool as us
from unspool import models
from unspool.settings.kinds import EnumMember, Real, Whole

pytestmark = pytest.mark.long


RING = us.graph.ring(6)
X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
PAIR = torch.tensor([[0, 1], [1, 0]])


def with_(value, node=2, feature=1):
    x = X.clone()
    x[node, feature] = value
    return x


BAD_FEATURES = {
    "nan": (with_(float("nan")), "x is nan at node 2, feature 1: features must be finite; fill or drop it"),
    "inf": (with_(float("inf"), 5, 3), "x is inf at node 5, feature 3"),
    "minus inf, sparse": (with_(float("-inf"), 0, 0).to_sparse(), "x is -inf at node 0, feature 0"),
    "nan, sparse": (with_(float("nan")).to_sparse(), "x is nan at node 2, feature 1"),
    "nan, csr": (with_(float("nan")).to_sparse_csr(), "x is nan at node 2, feature 1"),
    "nan in a stack": (torch.stack([X, with_(float("nan"))]), "x is nan at node 2, feature 1"),
    "few features": (X[:, :3], "x has 3 features, but the model was built for 4"),
    "few features, sparse": (X[:, :3].to_sparse(), "x has 3 features, but the model was built for 4"),
    "integers": (torch.ones(6, 4).long(), "x holds int64: features are floating-point; call x.float()"),
    "booleans": (torch.ones(6, 4) > 0, "x holds bool"),
    "integers, sparse": (torch.ones(6, 4).long().to_sparse(), "features hold int64: .*call x.float()"),
    "one dimension": (X[:, 0], r"x has shape \(6,\): expected \(nodes, features\); use x\[:, None\]"),
    "no dimension": (X[0, 0], r"x has shape \(\)"),
    "three dimensions, sparse": (X[None].to_sparse(), r"features of shape \(1, 6, 4\): expected \(nodes, features\)"),
    "numpy": (X.numpy(), "features of type ndarray: expected a torch tensor"),
    "nothing": (None, "features of type NoneType"),
}
BAD_GRAPHS = {
    "few nodes": (X[:5], RING, None, "x has 5 rows, but the graph has 6 nodes"),
    "few nodes, sparse": (X[:5].to_sparse(), RING, None, "x has 5 rows, but the graph has 6 nodes"),
    "dtype": (X.double(), RING, None, r"x is float64, the graph float32: call graph.to\(torch.float64\)"),
    "dtype of the graph": (X, RING.to(torch.float64), None, r"x is float32, the graph float64: call graph.to\(torch.float32\)"),
    "outside": (X, torch.tensor([[0, 6], [1, 0]]), None, r"edge 1 names node 6, but node ids run from 0 to 5 \(nodes=6\)"),
    "below": (X, torch.tensor([[0, -1], [1, 0]]), None, "edge 1 names node -1"),
    "negative": (X, PAIR, torch.tensor([1.0, -2.0]), "the weight of edge 1 is -2: weights must not be negative"),
    "nan weight": (X, PAIR, torch.tensor([1.0, float("nan")]), "the weight of edge 1 is nan"),
    "few weights": (X, PAIR, torch.ones(1), r"weights has shape \(1,\), but there are 2 edges"),
    "learnt weights": (X, PAIR, torch.ones(2, requires_grad=True), "requires gradients, but graphs hold fixed weights; detach it"),
    "weights twice": (X, RING, torch.ones(12), "a Graph carries its own weights"),
    "float ids": (X, PAIR.float(), None, r"edge_index holds float32: node ids are integers; call edge_index.long\(\)"),
    "pairs": (X, torch.tensor([[0, 1], [1, 2], [2, 3]]), None, r"edge_index has shape \(3, 2\): expected \(2, edges\)"),
    "no graph": (X, None, None, "the graph is of type NoneType: expected a Graph"),
    "a name": (X, "cora", None, "the graph is of type str: expected a Graph"),
    "a matrix": (X, torch.eye(6).to_sparse(), None, "the graph is a sparse tensor: expected a Graph"),
}  # fmt: skip


def words(call):
    with pytest.raises((ValueError, TypeError)) as problem:
        call()
    return str(problem.value)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", models.MODELS)
@pytest.mark.parametrize("case", BAD_FEATURES)
def test_bad_features_are_named(case, kind, training):
    x, expected = BAD_FEATURES[case]
    with pytest.raises((ValueError, TypeError), match=expected):
        kind(4, 3).train(training)(x, RING)


@pytest.mark.parametrize("kind", [k for k in models.MODELS if k is not models.MLP])
@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_bad_graphs_are_named(case, kind):
    x, graph, weights, expected = BAD_GRAPHS[case]
    with pytest.raises((ValueError, TypeError), match=expected):
        kind(4, 3)(x, graph, weights)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kind", models.MODELS)
def test_a_model_of_another_dtype_is_named(kind, form):
    x = X.double() if form == "dense" else X.double().to_sparse()
    with pytest.raises(TypeError, match=r"x is float64, the model float32: call model.to\(torch.float64\) or x.to\(torch.float32\)"):  # fmt: skip
        kind(4, 3)(x, RING.to(torch.float64))


def test_nothing_is_said_about_good_input():
    for kind in models.MODELS:
        model = kind(4, 3)
        assert model(X, torch.zeros(2, 0, dtype=torch.long)).shape == (6, 3)  # no edges
        assert model(torch.stack([X, X]), RING).shape == (2, 6, 3)
        assert model(X, PAIR.numpy()).shape == (6, 3)
        assert model(X, PAIR.tolist(), [2.0, 2.0]).shape == (6, 3) if kind is not models.MLP else True


def test_mlp_needs_no_graph():
    model = models.MLP(4, 3).eval()
    assert torch.equal(model(X), model(X, RING))


def problem(call):
    with pytest.raises(us.InputError) as caught:
        call()
    return caught.value


#: Values that must stay refused, whatever is declared; the rest is tests/settings/kinds/test_kinds.py, at every end of every range.
SETTINGS = {
    "depth": (0, -1, 2.5, "3", True, None, 10_001),
    "hidden": (0, -1, 2.5, "64"),
    "teleport": (-0.1, 1.5, float("nan"), "a", None),
    "residual": (-0.1, 1.0, 1.5, float("nan")),
    "dropout": (1.0, -0.1, 1.5, float("nan")),
    "propagation_dropout": (1.0, -0.1),
    "strength": (-1.0, float("nan"), float("inf")),
    "tolerance": (0.0, 1.0, -1.0),
    "lambda1": (-0.1, float("nan"), float("inf")),
    "lambda2": (-0.1, float("nan"), float("inf")),
    "p": (0.9, float("nan"), "2"),
    "mu": (-1.0, 0.0, float("nan")),
    "smoothing": (0.0, -1.0),
    "smoothness": (0.0, -1.0, float("inf")),
    "threshold": (0.0, -1.0, float("nan")),
    "smoothings": (-1, 0.5, "0"),
    "step": (0.0, -0.5, float("nan")),
    "alpha": (-0.1, float("nan")),
    "group": (-1, 0.5, "0"),
    "beta": (-0.1, float("nan")),
    "head_layers": (0, 2.5, "2"),
    "head_dropout": (1.0, -0.1),
}
EXPECTED = {
    "depth": ("a whole number from 1 to 10000",),
    "hidden": ("a whole number of at least 1",),
    "teleport": ("a number in [0, 1]", "a number in (0, 1]"),
    "residual": ("a number in [0, 1)",),
    "dropout": ("a number in [0, 1)",),
    "propagation_dropout": ("a number in [0, 1)", "a number in [0, 1), or None"),
    "strength": ("a finite number of at least 0",),
    "tolerance": ("a number in (0, 1), or None",),
    "lambda1": ("a finite number of at least 0",),
    "lambda2": ("a finite number of at least 0",),
    "p": ("a finite number of at least 1",),
    "mu": ("a finite number above 0", "a number in [0.5, 1]"),
    "smoothing": ("a finite number above 0",),
    "smoothness": ("a finite number above 0",),
    "threshold": ("a finite number above 0",),
    "smoothings": ("a whole number of at least 0",),
    "step": ("a finite number above 0", "a number in (0, 1]"),
    "alpha": ("a finite number of at least 0",),
    "group": ("a whole number of at least 0",),
    "beta": ("a finite number of at least 0",),
    "head_layers": ("a whole number from 1 to 100",),
    "head_dropout": ("a number in [0, 1)",),
}


@pytest.mark.parametrize(("kind", "setting"), [(k, s) for k in models.MODELS for s in SETTINGS if s in k.schema])
def test_bad_settings_are_named(kind, setting):
    for value in SETTINGS[setting]:
        found = problem(lambda value=value: kind(4, 3, **{setting: value}))
        assert (found.argument, found.owner) == (setting, kind.__name__)
        assert found.value is value
        assert found.expected in EXPECTED[setting]


def test_every_number_of_a_model_is_in_this_list():
    numbers = {s.name for k in models.MODELS for s in k.schema.values() if isinstance(s.kind, Whole | Real)}
    assert numbers <= set(SETTINGS)


@pytest.mark.parametrize("kind", models.MODELS)
@pytest.mark.parametrize("value", [0, -2, 2.5, "5", None, True])
def test_bad_widths_are_named(kind, value):
    for argument, widths in (("in_features", (value, 3)), ("out_features", (3, value))):
        found = problem(lambda widths=widths: kind(*widths))
        assert (found.argument, found.value, found.expected) == (argument, value, "a whole number of at least 1")


@pytest.mark.parametrize("kind", models.MODELS)
def test_settings_that_a_model_does_not_have_are_named(kind):
    found = problem(lambda: kind(4, 3, dropuot=0.5, colour="red"))
    assert (found.argument, found.owner) == ("dropuot", kind.__name__)
    assert found.hint == ("did you mean dropout?" if "dropout" in kind.schema else None)
    assert all(name in found.expected for name in kind.schema)


def test_limits_are_allowed():
    for kind in (models.APPNP, models.GPRGNN, models.GCNII):
        for teleport in (0, 1, 0.0, 1.0, np.float32(0.5)):
            assert torch.isfinite(kind(4, 3, teleport=teleport).eval()(X, RING)).all()
    assert torch.isfinite(models.AirGNN(4, 3, residual=0.0).eval()(X, RING)).all()
    still = models.PPNP(4, 3, teleport=1.0).eval()
    assert torch.allclose(still(X, RING), still.p_pre(X), atol=1e-6)
    assert problem(lambda: models.PPNP(4, 3, teleport=0.0)).expected == "a number in (0, 1]"


CHOICES = [(k, s) for k in models.MODELS for s, one in k.schema.items() if isinstance(one.kind, EnumMember)]


@pytest.mark.parametrize(("kind", "setting"), CHOICES)
def test_choices_are_named(kind, setting):
    enum = kind.schema[setting].kind.enum
    for value in ("free", next(iter(enum)).value, next(iter(enum)).name, 0, None):
        found = problem(lambda value=value: kind(4, 3, **{setting: value}))
        assert (found.argument, found.value) == (setting, value)
        assert found.expected == f"one of {', '.join(str(one) for one in enum)}"


def test_the_choices_of_the_models():
    assert {(k.__name__, s) for k, s in CHOICES} == {
        ("SGC", "weights"), ("JKNet", "combine"), ("JKNet", "channels"), ("GCNII", "identity"), ("GPRGNN", "start"),
        ("GPRGNN", "masks"), ("APPNP", "masks"), ("UGDGNN", "start"), ("UGDGNN", "masks"), ("UGDGNN", "channels"),
        ("UGDGNN", "mixing"), ("UGDGNN", "layers"), ("UGDGNN", "basis"), ("TWIRLS", "penalty"), ("TrustGNN", "penalty"), ("StableGNN", "steps"),
        ("StableGNN", "signal"),
        ("GraphFirstGPRGNN", "start"), ("GraphFirstUGDGNN", "start"), ("GraphFirstUGDGNN", "mixing"),
    }  # fmt: skip


def test_choices_that_do_not_go_together():
    joined = words(lambda: models.JKNet(4, 3, combine=models.Combine.MAX, channels=models.Channels.CLASSES))
    assert joined.startswith("channels=Channels.CLASSES: Combine.MAX joins hidden layers")
    warm = words(lambda: models.UGDGNN(4, 3, start=models.HopStart.WARM))
    assert "UGDGNN.from_model" in warm
    general = words(lambda: models.UGDGNN(4, 3, start=models.HopStart.PPR, layers=models.Layers.GENERAL))
    assert general == "start=HopStart.PPR: Layers.GENERAL has no γ to begin with; take Layers.REDUCED"


@pytest.mark.parametrize("warm", ["123", 3.0, [1.0, math.nan, 2.0], [1.0, "a", 2.0], np.ones((3, 1))])
def test_warm_starts_are_lists_of_numbers(warm):
    found = problem(lambda: models.GPRGNN(4, 3, depth=2, start=models.HopStart.WARM, warm=warm))
    assert (found.argument, found.expected) == ("warm", "a list, each a finite number, or None")
    assert found.value is warm


@pytest.mark.parametrize("warm", [None, [], [1.0], [1.0, 2.0, 3.0, 4.0]])
def test_warm_starts_have_their_length(warm):
    build = lambda: models.GPRGNN(4, 3, depth=2, start=models.HopStart.WARM, warm=warm)  # noqa: E731
    assert words(build) == "HopStart.WARM needs warm= with 3 numbers, γ₀ to γ_2"


def test_warm_values_are_not_passed_over():
    told = words(lambda: models.GPRGNN(4, 3, depth=1, warm=[0.5, 0.5]))
    assert told == "warm= is given, but start=HopStart.PPR does not take it; take HopStart.WARM"


class Wide(us.models.Model):
    """Ends with another width than it was asked for."""

    width: int = us.setting(7, "channels at the end", at_least=1)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.width)
        self.propagation = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), depth=2)


def test_an_output_of_another_width_is_refused():
    data = us.datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    said = "Wide gives 7 numbers for each node, and out_features is 2; let build"
    with pytest.raises(us.IncompatibleError, match=said):
        Wide(data.features.shape[1], 2)(data.features, data.graph)
    config = us.train.TrainConfig(epochs=2)
    with pytest.raises(us.IncompatibleError, match=said):
        us.train.train_trial(us.train.Trial(Wide, {}, config), data)
    (row,) = us.study.run([us.train.Trial(Wide, {}, config)], data, device="cpu").rows
    assert said in row.message
    links = us.train.TrialLoader(data, kind=us.train.TaskKind.LINKS)
    us.train.train_trial(us.train.Trial(Wide, {"width": links.outputs}, config), links)


class Dense(us.models.Model):
    """Begins with a layer of torch, which takes dense features alone."""

    def build(self):
        self.p_pre = torch.nn.Sequential(torch.nn.Linear(self.in_features, self.out_features), torch.nn.ReLU())
        self.propagation = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), depth=2)


def test_layers_of_torch_on_sparse_features_are_told_what_to_be():
    dense, graph = torch.eye(6), us.graph.ring(6)
    assert Dense(6, 2)(dense, graph).shape == (6, 2)
    with pytest.raises(
        us.IncompatibleError,
        match=r"p_pre of Dense has a layer that takes dense ones alone; begin it with us\.nn\.Linear",
    ):
        Dense(6, 2)(us.nn.SparseFeatures.from_tensor(dense), graph)


def test_ppnp_refuses_what_has_no_inverse():
    plain = us.Graph.from_edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), nodes=6, normalise=us.Normalisation.NONE)
    with pytest.raises(us.IncompatibleError, match="eigenvalues outside"):
        models.PPNP(4, 3)(X, plain)
    walk = us.Graph.from_edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), nodes=6, normalise=us.Normalisation.RANDOM_WALK)  # fmt: skip
    with pytest.raises(us.IncompatibleError, match="undirected"):
        models.PPNP(4, 3)(X, walk)


def test_a_model_without_parameters_is_solved_exactly():
    class Still(us.models.Model):
        def build(self):
            self.propagation = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), 3)

    assert Still(2, 2).solve_exactly().solved_exactly
