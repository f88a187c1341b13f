"""The linear term: a force that any matrix may make, and minimisers with it."""

import pytest
import torch

import unspool as us
from unspool.testing import small_graph

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
FREE = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("matrix", [1.0, us.Fixed(FREE, "M"), us.Relaxed(3, name="M"), us.Diagonal(3)])
def test_it_keeps_the_laws(matrix):
    us.testing.check_term(us.Source(0.7, matrix=matrix), features=3)


def test_a_free_matrix_still_has_a_minimiser():
    objective = us.Ridge(0.5) + us.Smoothness(0.3) + us.Source(2.0, matrix=us.Fixed(FREE, "M"))
    laplacian = torch.eye(12, dtype=torch.float64) - GRAPH.to_dense()
    dense = torch.linalg.solve(torch.eye(12, dtype=torch.float64) + 0.6 * laplacian, 2.0 * X @ FREE)
    assert torch.allclose(us.minimise(objective, X, GRAPH), dense, atol=1e-8)


def test_steps_with_it_lower():
    net = us.unroll(us.Ridge(0.5) + us.Smoothness(0.3) + us.Source(1.0), us.GradientDescent(step=0.5), depth=4)
    assert isinstance(net.adjoint, us.Polynomial)
    us.testing.check_unrolled(net)


def test_it_prints_with_a_minus():
    assert str(us.Ridge(1.0) + us.Source(0.5, matrix=us.Relaxed(3, name="M"))) == "‖H‖²  −  0.5 ⟨H, X M⟩"


def test_a_matrix_is_no_weight():
    with pytest.raises(TypeError, match="give a diagonal or matrix as matrix="):
        us.Source(us.Relaxed(3))
