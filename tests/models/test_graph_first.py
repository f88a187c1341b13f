"""From hops on the disk a network that propagates first is the function that it is on the graph, masks and gradients included."""

import copy

import pytest
import torch

import unspool as us
from reference.cases import CASES, GRAPH_FIRST, IN, OUT, build, close, doubles, graphs, signal, slopes
from unspool import models
from unspool.models.graph_first import propagates_first
from unspool.ops.stored_hops import StoredHops

GRAPHS = graphs()
DEPTH = 5
#: Those that see hop 0 alone.
PLAIN = ("MLP", "MLP-no-bias")


@pytest.fixture(scope="module", params=["isolated", "weighted", "directed"])
def place(request, tmp_path_factory):
    graph, _ = GRAPHS[request.param]
    x = signal(graph.nodes)
    return graph, x, us.hops.write(graph, x, DEPTH, tmp_path_factory.mktemp(request.param) / "h")


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", [*GRAPH_FIRST, *PLAIN])
def test_stored_hops_give_the_same_function(name, mode, place):
    graph, x, stored = place
    rows = torch.tensor([7, 0, graph.nodes - 1, 3])
    one = build(name).train(mode == "train")
    other = copy.deepcopy(one)
    for _ in range(2):  # masks move on
        found, expected = one(stored, rows=rows), other(x, graph)[rows]
        assert found.shape == (4, OUT)
        assert close(found, expected)
        for mine, theirs in zip(slopes(found, one), slopes(expected, other), strict=True):
            assert close(mine, theirs)


@pytest.mark.parametrize("name", [*GRAPH_FIRST, *PLAIN])
def test_all_rows_in_pieces_as_well_as_at_once(name, place, monkeypatch):
    graph, x, stored = place
    one = build(name)
    other = copy.deepcopy(one)
    assert close(one(stored), other(x, graph))  # in training, with one mask over all rows
    monkeypatch.setattr(StoredHops, "piece", property(lambda _: 4))
    assert close(one.eval()(stored), other.eval()(x, graph))
    assert close(one(stored, graph), other(x, graph))


def test_some_nodes_alone(tmp_path):
    graph, _ = GRAPHS["karate"]
    x, nodes = signal(graph.nodes), torch.tensor([30, 2, 11])
    stored = us.hops.write(graph, x, DEPTH, tmp_path / "h", nodes=nodes)
    for name in GRAPH_FIRST:
        model = build(name).eval()
        assert close(model(stored), model(x, graph)[nodes])
        assert close(model(stored, rows=stored.places([11, 30])), model(x, graph)[[11, 30]])


@pytest.mark.parametrize("how", list(us.Normalisation))
def test_whatever_the_normalisation(how, tmp_path):
    graph = us.graph.grid(3, 4, normalise=how).to(torch.float64)
    x = signal(12)
    stored = us.hops.write(graph, x, DEPTH, tmp_path / "h")
    for name in GRAPH_FIRST:
        model = build(name).eval()
        assert close(model(stored), model(x, graph))


def test_single_precision_agrees_to_rounding(tmp_path):
    graph = GRAPHS["karate"][0].to(torch.float32)
    x = signal(graph.nodes).float()
    stored = us.hops.write(graph, x, DEPTH, tmp_path / "h")
    for name in GRAPH_FIRST:
        model = build(name).float().eval()
        assert torch.allclose(model(stored), model(x, graph), rtol=1e-4, atol=1e-5)


class Calm(models.Model):
    """A network that nobody named, from a problem of its own."""

    pull: float = us.setting(0.2, "how strongly a node keeps its own signal", above=0, at_most=1)

    def build(self):
        with doubles():
            alpha = us.Learnable(self.pull, per_layer=True, name="α")
            self.p_pre = us.nn.Linear(self.in_features, 4, bias=False)
            self.propagation = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), 3)
            self.p_pos = us.nn.Perceptron([4, 5, self.out_features], 0.5, residual=True)


def test_a_derived_network_runs_from_stored_hops_without_a_word(place):
    graph, x, stored = place
    one = Calm(IN, OUT).double()
    other = copy.deepcopy(one)
    rows = torch.tensor([1, 5])
    found, expected = one(stored, rows=rows), other(x, graph)[rows]
    assert close(found, expected)
    for mine, theirs in zip(slopes(found, one), slopes(expected, other), strict=True):
        assert close(mine, theirs)


@pytest.mark.parametrize("name", CASES)
def test_those_that_encode_first_are_refused_in_one_sentence(name, place):
    _, _, stored = place
    model = build(name)
    why = propagates_first(model)
    if name in (*GRAPH_FIRST, *PLAIN):
        assert why is None
        return
    assert why.startswith(f"{type(model).__name__} cannot use stored hops: ")
    with pytest.raises(us.IncompatibleError) as caught:
        model(stored)
    assert str(caught.value) == why


def test_a_perceptron_of_one_matrix_counts_where_it_drops_nothing(place):
    graph, x, stored = place
    model = build("StableGNN")  # one matrix, with dropout on what comes in
    with pytest.raises(us.IncompatibleError, match="its encoder is more than a matrix"):
        model(stored)
    assert close(model.eval()(stored), model(x, graph))
    still = build("StableGNN", dropout=0.0, head_dropout=0.5)
    other = copy.deepcopy(still)
    assert close(still(stored), other(x, graph))


def test_what_does_not_fit_is_said(place):
    _, _, stored = place
    model = build("GraphFirstGPRGNN").eval()
    refusals = [
        (lambda: build("GraphFirstGPRGNN", depth=6)(stored), us.IncompatibleError, "hop 6 is wanted, and hops 0 to 5 are stored"),
        (lambda: models.SGC(IN + 1, OUT).double()(stored), ValueError, "x has 6 features, but the model was built for 7"),
        (lambda: model.float()(stored), TypeError, r"x is float64, the model float32: call x.to\(torch.float32\)"),
        (lambda: model.double()(stored, us.graph.ring(4).to(torch.float64)), ValueError, r"x are hops on a graph with nodes 1\d, and this one has 4"),
        (lambda: model(stored, torch.zeros(2, 3, dtype=torch.int64)), TypeError, "x are stored hops, which have seen their graph"),
        (lambda: model(stored, rows=torch.tensor([stored.shape[0]])), us.InputError, "rows=1.: expected numbers of stored rows"),
        (lambda: models.MLP(IN + 1, OUT).double()(stored), ValueError, "x has 6 features, but the model was built for 7"),
    ]  # fmt: skip
    for ask, kind, sentence in refusals:
        with pytest.raises(kind, match=sentence):
            ask()


def test_chebyshev_polynomials_are_refused(place):
    _, _, stored = place
    model = models.UGDGNN.from_filter(us.spectral.low_pass(0.5), 30, features=IN).double()
    assert model.propagation.basis is us.Basis.CHEBYSHEV
    with pytest.raises(us.IncompatibleError, match="its coefficients belong to Chebyshev polynomials"):
        model(stored)
