"""Labels spread, and errors are corrected, as dense formulas say."""

import pytest
import torch

import unspool as us
from unspool.testing import small_graph

GRAPH = small_graph()
A = GRAPH.to_dense()
N = GRAPH.nodes
L = torch.eye(N, dtype=torch.float64) - A
KNOWN = torch.arange(N) % 3
NODES = torch.tensor([0, 4, 5, 7])
Z = torch.rand(N, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
Y = torch.nn.functional.one_hot(KNOWN, 3).double()
S = torch.zeros(N, 1, dtype=torch.float64)
S[NODES] = 1


def test_label_propagation_is_its_closed_form():
    mu, alpha, beta = 2.0, 0.3, 0.7
    dense = torch.linalg.solve(
        mu * S.flatten().diag() + alpha * torch.eye(N).double() + beta * L, mu * S * Y + alpha * Z
    )
    how = {"weight": mu, "smoothness": beta, "prior": Z, "prior_weight": alpha}
    found = us.models.label_propagation(KNOWN, NODES, 3, GRAPH, **how)
    assert torch.allclose(found, dense, atol=1e-8)
    assert torch.allclose(us.models.label_propagation(KNOWN, NODES, 3, GRAPH, depth=400, **how), dense, atol=1e-8)


def test_its_steps_are_those_of_the_formula():
    mu, alpha, beta, h = 2.0, 0.3, 0.7, Z
    eta = 1 / (2 * mu + 2 * alpha + 4 * beta)
    for _ in range(5):
        h = h - 2 * eta * (mu * S * (h - Y) + alpha * (h - Z) + beta * L @ h)
    how = {"weight": mu, "smoothness": beta, "prior": Z, "prior_weight": alpha, "depth": 5}
    assert torch.allclose(us.models.label_propagation(KNOWN, NODES, 3, GRAPH, **how), h, atol=1e-10)


def test_labels_of_other_nodes_are_not_looked_at():
    other = KNOWN.clone()
    other[1] = -7
    mask = S.flatten().bool()
    assert torch.equal(
        us.models.label_propagation(other, mask, 3, GRAPH), us.models.label_propagation(KNOWN, NODES, 3, GRAPH)
    )


def test_correct_and_smooth_is_two_solves():
    eye = torch.eye(N, dtype=torch.float64)
    errors = torch.linalg.solve(eye + 4.0 * L, S * (Y - Z))
    corrected = S * Y + (1 - S) * (Z + 0.5 * errors)
    dense = torch.linalg.solve(eye + 2.0 * L, corrected)
    found = us.models.correct_and_smooth(Z, KNOWN, NODES, GRAPH, correction=4.0, scale=0.5, smoothness=2.0)
    assert torch.allclose(found, dense, atol=1e-8)
    still = us.models.correct_and_smooth(Z, KNOWN, NODES, GRAPH, correction=0.0, scale=0.0, smoothness=0.0)
    assert torch.allclose(still, S * Y + (1 - S) * Z)


def test_labels_help_where_neighbours_agree():
    data = us.datasets.contextual_sbm(nodes=300, classes=2, seed=0)
    known = torch.as_tensor(data.labels)
    nodes = torch.arange(0, 300, 10)
    rest = torch.ones(300, dtype=torch.bool)
    rest[nodes] = False
    graph = data.graph
    found = us.models.label_propagation(known, nodes, 2, graph).argmax(-1)
    assert float((found == known)[rest].double().mean()) > 0.6


def test_bad_scores_and_labels_are_named():
    with pytest.raises(us.InputError, match="scores of shape"):
        us.models.label_propagation(KNOWN, NODES, 3, GRAPH, prior=Z[:4])
    with pytest.raises(us.InputError, match="classes from 0 to 1"):
        us.models.label_propagation(KNOWN, NODES, 2, GRAPH)
    with pytest.raises(us.InputError, match="scores of shape"):
        us.models.correct_and_smooth(Z[:4], KNOWN, NODES, GRAPH)


@pytest.mark.parametrize("nodes", [[0, -1], [0, N], [0, 0]], ids=["negative", "outside", "twice"])
def test_nodes_that_are_none_are_refused(nodes):
    """A negative number would silently count from the end."""
    for use in (
        lambda: us.objective.labels(KNOWN, nodes, 3),
        lambda: us.models.label_propagation(KNOWN, nodes, 3, GRAPH),
        lambda: us.models.correct_and_smooth(Z, KNOWN, nodes, GRAPH),
    ):
        with pytest.raises(us.InputError) as refused:
            use()
        assert (refused.value.argument, refused.value.value) == ("nodes", nodes[-1])
