"""check_model keeps quiet for every named model, and names the law that a bad one breaks."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

import unspool as us
from unspool.settings import REQUIRED

MODELS = [m for m in us.models.MODELS if m is not us.models.MLP]


@pytest.mark.parametrize("kind", MODELS, ids=lambda m: m.__name__)
def test_every_model_keeps_the_laws(kind):
    us.testing.check_model(lambda: kind(4, 3), features=4)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x, graph):
        return graph @ (x @ self.weight)


class Positional(Plain):
    def forward(self, x, graph):
        return super().forward(x, graph) * torch.arange(graph.nodes)[:, None]


class Drawn(Plain):
    def forward(self, x, graph):
        return super().forward(nn.functional.dropout(x, 0.5, self.training), graph)


class Forgetful(Plain):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x, graph):
        self.calls += self.training
        return super().forward(x, graph) * max(self.calls, 1)


class Infinite(Plain):
    def forward(self, x, graph):
        return super().forward(x, graph) / 0


class Short(Plain):
    def forward(self, x, graph):
        return super().forward(x, graph)[1:]


def test_a_plain_module_keeps_the_laws():
    us.testing.check_model(Plain, features=4)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Positional, "permuting the nodes changes Positional"),
        (Drawn, "two runs of Drawn from the same seed differ"),
        (Forgetful, "does not go on from its state dict"),
        (Infinite, "not finite"),
        (Short, "11 rows for 12 nodes"),
    ],
)
def test_bad_models_are_named(kind, sentence):
    with pytest.raises(us.testing.LawBroken, match=sentence):
        us.testing.check_model(kind, features=4)


@dataclass(frozen=True, eq=False)
class SmoothTotalVariation(us.SmoothTerm):
    """docs/extend.md's own, which looks at the incidence matrix."""

    weight: Any
    epsilon: float = 0.1
    uses_input = False

    def value(self, h, given):
        d = given.graph.incidence() @ h
        return (d.square() + self.epsilon**2).sqrt().sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        b = given.graph.incidence()
        d = b @ h
        return (b.T @ (d / (d.square() + self.epsilon**2).sqrt())) * given[self.weight]

    def lipschitz(self, given):
        return 2 * given.graph.scale * given[self.weight] / self.epsilon


class Edgewise(us.models.Model):
    term: Any = us.setting(REQUIRED, "what is added to the fidelity", of=object)
    depth: int = us.setting(3, "number of layers", at_least=1)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.5) + self.term, us.GradientDescent(), self.depth)


TERMS = {
    "total variation": SmoothTotalVariation(us.Learnable(0.3, within=(0, None), name="w")),
    "edges": us.EdgeSmoothness(torch.ones(17)),
}


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_models_that_look_at_the_incidence_matrix_keep_the_laws(term):
    us.testing.check_model(lambda: Edgewise(4, 3, term=term), features=4)


@pytest.mark.parametrize("how", us.Normalisation)
def test_networks_that_look_at_it_keep_theirs(how):
    graph = us.graph.grid(3, 4, normalise=how).to(torch.float64)
    net = us.unroll(us.Fidelity(0.5) + SmoothTotalVariation(0.3), us.Accelerated(), depth=4)
    if how is us.Normalisation.RANDOM_WALK:
        net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.3), us.Accelerated(), depth=4)
        graph = graph.with_general_laplacian()
    us.testing.check_unrolled(net, graph=graph)


def test_models_are_permuted_on_directed_graphs_too():
    chain = us.Graph.from_edges(torch.tensor([[0, 1, 2, 2], [1, 2, 3, 0]]), nodes=4, directed=True).to(torch.float64)
    us.testing.check_model(lambda: us.models.APPNP(4, 3), features=4, graph=chain)


class EdgePositional(Plain):
    """Weighs edges by their place in the list."""

    def forward(self, x, graph):
        b, h = graph.incidence(), super().forward(x, graph)
        return b.T @ ((b @ h) * torch.arange(b.shape[0])[:, None])


def test_the_alarm_is_still_raised():
    with pytest.raises(us.testing.LawBroken, match="permuting the nodes changes EdgePositional"):
        us.testing.check_model(EdgePositional, features=4)


class Wide(us.models.Model):
    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features + 2)
        self.propagation = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), depth=2)


def test_an_output_of_another_width_is_found():
    with pytest.raises(us.IncompatibleError, match="Wide gives 5 numbers for each node, and out_features is 3"):
        us.testing.check_model(lambda: Wide(4, 3), features=4)
    graph, _ = us.graph.sensor(40)
    with pytest.raises(us.IncompatibleError, match="Wide gives 4 numbers for each node, and out_features is 2"):
        us.NodeClassifier(Wide).fit(torch.randn(40, 4), torch.arange(40) % 2, graph=graph)
    with pytest.raises(us.IncompatibleError, match="Wide gives 3 numbers for each node, and out_features is 1"):
        us.NodeRegressor(Wide).fit(torch.randn(40, 4), torch.randn(40), graph=graph)
