"""Structure learning: the signal and the edges in turn."""

import itertools

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
ALPHA, BETA, GAMMA, MU = 0.4, 0.7, 0.9, 0.2
TERM = us.LearntEdges(BETA, stay=GAMMA, sparse=MU)
GIVEN = us.Given(X, GRAPH)


def dense(graph):
    """The weights of the edges, and the difference of their ends, each over the root of its degree."""
    i, j = us.graph.edge_list(graph)
    degree = graph.degree.double() if graph.normalisation is not us.Normalisation.NONE else torch.ones(graph.nodes)
    w = graph.to_dense()[i, j] * (degree[i] * degree[j]).sqrt()

    def ends(h):
        return h[i] / degree[i, None].sqrt() - h[j] / degree[j, None].sqrt()

    return w, ends


def joint(h, s, graph=GRAPH):
    w, ends = dense(graph)
    edges = (BETA * s * ends(h).square().sum(1) + GAMMA * (s - w).square() + MU * s.abs()).sum()
    return ALPHA * (h - X).square().sum() + edges


def test_the_term_keeps_the_laws():
    testing.check_term(TERM)
    testing.check_term(us.LearntEdges(us.Learnable(0.5, name="β"), us.Learnable(2.0, name="γ")))


@pytest.mark.parametrize("graph", [GRAPH, us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)])
def test_the_term_is_the_minimum_over_edge_weights(graph):
    w, ends = dense(graph)
    given = us.Given(X, graph)
    s = TERM.edges(X, given)
    assert float(s.min()) == 0.0
    assert float(s.max()) > 0.0
    grid = torch.linspace(0, 1, 4001, dtype=X.dtype)[:, None] * 2 * w
    cost = BETA * grid * ends(X).square().sum(1) + GAMMA * (grid - w).square() + MU * grid
    best = cost.argmin(0)
    assert torch.allclose(s, grid.gather(0, best[None])[0], atol=2e-3)
    assert float(TERM.value(X, given)) == pytest.approx(float(cost.min(0).values.sum()), abs=1e-5)
    assert float(TERM.value(X, given)) <= float(cost.min(0).values.sum())
    assert torch.allclose(TERM.joint(X, s, given), TERM.value(X, given))


@pytest.mark.parametrize("steps", [1, 3])
def test_its_layers_are_the_dense_alternation(steps):
    w, ends = dense(GRAPH)
    b, h = GRAPH.incidence().to_dense(), X
    step = 1 / (2 * ALPHA + 4 * BETA)
    for _ in range(6):
        s = (w - (BETA * ends(h).square().sum(1) + MU) / (2 * GAMMA)).clamp_min(0)
        laplacian = b.T @ torch.diag(s / w) @ b
        for _ in range(steps):
            h = h - step * (2 * ALPHA * (h - X) + 2 * BETA * laplacian @ h)
    net = us.unroll(us.Fidelity(ALPHA) + TERM, us.BlockCoordinate(steps=steps), depth=6)
    assert torch.allclose(net(X, GRAPH), h, atol=1e-12)


def test_the_joint_objective_never_rises_in_either_step():
    objective = us.Fidelity(ALPHA) + TERM
    rule = us.BlockCoordinate()
    state = rule.init(X, us.Problem(objective, GIVEN))
    values = [float(joint(*state))]
    for _ in range(30):
        h, s = state[0], rule.update(state, us.Problem(objective, GIVEN))[1]
        values.append(float(joint(h, s)))
        state = rule.update(state, us.Problem(objective, GIVEN))
        values.append(float(joint(*state)))
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(values))
    assert values[-1] < values[0] - 0.1
    settled = float(objective.value(state[0], X, GRAPH))
    assert settled <= values[-1]


def test_it_is_majorise_minimise_and_for_plain_edges_a_capped_penalty():
    objective = us.Fidelity(ALPHA) + TERM
    rules = (us.BlockCoordinate(steps=2), us.Reweighted(us.GradientDescent(), steps=2))
    one, other = (us.unroll(objective, rule, depth=5)(X, GRAPH) for rule in rules)
    assert torch.allclose(one, other, atol=1e-12)
    plain = us.graph.grid(3, 4, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    learnt = us.Fidelity(ALPHA) + us.LearntEdges(BETA, stay=GAMMA)
    capped = us.Fidelity(ALPHA) + us.EdgePenalty(us.Capped(2 * GAMMA / BETA), BETA)
    assert torch.allclose(learnt.gradient(X, X, plain), capped.gradient(X, X, plain), atol=1e-12)
    assert torch.allclose(learnt.value(X, X, plain), capped.value(X, X, plain), atol=1e-12)


def test_bad_edges_are_cut():
    graph = us.graph.path(6, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    x = torch.tensor([0.0, 0.1, 0.0, 5.0, 5.1, 5.0], dtype=torch.float64)[:, None]
    objective = us.Fidelity(1.0) + us.LearntEdges(1.0, stay=0.5)
    rule, state = us.BlockCoordinate(), None
    problem = us.Problem(objective, us.Given(x, graph))
    state = rule.init(x, problem)
    for _ in range(50):
        state = rule.update(state, problem)
    assert float(state[1][2]) == 0.0
    assert float(state[1][[0, 1, 3, 4]].min()) > 0.9


def test_constraints_gradients_and_stacks():
    gamma = us.Learnable(0.9, within=(0, None), name="γ")
    beta = us.Learnable(0.7, within=(0, None), per_layer=True, name="β")
    objective = us.Fidelity(ALPHA) + us.LearntEdges(beta, stay=gamma, sparse=0.1) + us.NonNegative()
    net = us.unroll(objective, us.BlockCoordinate(), depth=4).double()
    testing.check_unrolled(net)
    x = X.clone().requires_grad_()
    out = net(x, GRAPH)
    assert float(out.detach().min()) >= 0
    slopes = torch.autograd.grad(out.square().sum(), [x, *net.parameters()])
    assert all(bool(torch.isfinite(s).all()) and float(s.abs().max()) > 0 for s in slopes)


def test_what_does_not_fit_is_refused():
    with pytest.raises(us.IncompatibleError, match="has none; add one"):
        us.unroll(us.Fidelity(1.0), us.BlockCoordinate(), depth=2)
    with pytest.raises(us.IncompatibleError, match="has 2; keep one"):
        us.unroll(us.Fidelity(1.0) + TERM + TERM, us.BlockCoordinate(), depth=2)
    with pytest.raises(us.InputError, match="steps"):
        us.BlockCoordinate(steps=0)
    with pytest.raises(us.InputError, match="stay"):
        us.LearntEdges(1.0, stay=0.0)
