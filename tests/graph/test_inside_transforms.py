"""A graph can be built inside a function that torch.func differentiates or maps."""

import pytest
import torch
from torch.func import grad, vmap

from unspool import Graph

EDGES = [[0, 1, 2, 0], [1, 2, 3, 3]]


def total(x, directed):
    graph = Graph.from_edges(torch.tensor(EDGES), nodes=4, directed=directed).to(x.dtype)
    return (graph @ x).square().sum()


@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_inside_is_the_graph_outside(directed):
    x = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a = Graph.from_edges(torch.tensor(EDGES), nodes=4, directed=directed).to(torch.float64).to_dense()
    assert torch.allclose(grad(total)(x[0], directed), 2 * a.T @ a @ x[0])
    assert torch.allclose(vmap(lambda x: total(x, directed))(x), (a @ x).square().sum((1, 2)))
