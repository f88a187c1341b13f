"""check_model keeps quiet for every named model, and names the law that a bad one breaks."""

import pytest
import torch
from torch import nn

import unspool as us

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
