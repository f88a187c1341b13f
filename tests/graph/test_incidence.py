"""BᵀB = L, and a refusal with the reason wherever there is no such B."""

import functools

import networkx
import pytest
import torch

import unspool as us
from unspool import Graph, IncompatibleError, Normalisation
from unspool.graph import edge_list

pytestmark = pytest.mark.long


def undirected(nodes=10, seed=0, weighted=True):
    """A symmetric W with an isolated last node and one self-loop."""
    generator = torch.Generator().manual_seed(seed)
    w = torch.rand(nodes, nodes, generator=generator, dtype=torch.float64) + 0.1
    w = w * (torch.rand(nodes, nodes, generator=generator) < 0.3)
    w = torch.maximum(w, w.T) if weighted else (w + w.T != 0).double()
    w.fill_diagonal_(0)
    w[2, 2] = 1.7
    w[-1], w[:, -1] = 0, 0
    return w


def matrix(operator):
    return operator.to_dense()


def close(a, b):
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-12, atol=1e-14)


SYMMETRIC = {
    "weighted": lambda: Graph.from_dense(undirected()),
    "unweighted": lambda: Graph.from_dense(undirected(weighted=False)),
    "half a loop": lambda: Graph.from_dense(undirected(), loops=0.5),
    "ring": lambda: us.graph.ring(6),
    "ring without loops": lambda: us.graph.ring(6, loops=0),
    "ring, random walk": lambda: us.graph.ring(6, normalise=Normalisation.RANDOM_WALK),
    "complete, random walk": lambda: us.graph.complete(5, loops=0, normalise=Normalisation.RANDOM_WALK),
    "star": lambda: us.graph.star(7),
    "grid": lambda: us.graph.grid(3, 4, loops=0),
    "sensor": lambda: us.graph.sensor(20)[0],
    "no edges": lambda: Graph.from_edges([[], []], nodes=3),
}
PLAIN = {
    "weighted": lambda **how: Graph.from_dense(undirected(), **how),
    "unweighted": lambda **how: Graph.from_dense(undirected(weighted=False), **how),
    "path": lambda **how: us.graph.path(6, **how),
    "star": lambda **how: us.graph.star(6, **how),
    "no edges": lambda **how: Graph.from_edges([[], []], nodes=3, **how),
}


@pytest.mark.parametrize("name", list(SYMMETRIC))
def test_normalised_graphs_have_l_equal_to_i_minus_a(name):
    graph = SYMMETRIC[name]().to(torch.float64)
    b = matrix(graph.incidence())
    assert b.shape == (graph.edges, graph.nodes)
    expected = torch.eye(graph.nodes, dtype=torch.float64) - graph.to_dense()
    assert close(b.T @ b, expected)
    assert close(matrix(graph.laplacian()), expected)


@pytest.mark.parametrize("loops", [0, 1.0])
@pytest.mark.parametrize("name", list(PLAIN))
def test_plain_graphs_have_l_equal_to_d_minus_a(name, loops):
    graph = PLAIN[name](loops=loops, normalise=Normalisation.NONE).to(torch.float64)
    a = graph.to_dense()
    expected = torch.diag(a.sum(1)) - a  # loops cancel
    b = matrix(graph.incidence())
    assert close(b.T @ b, expected)
    assert close(matrix(graph.laplacian()), expected)
    assert close(graph.degree, a.sum(1))


def all_graphs():
    yield from (make() for make in SYMMETRIC.values())
    yield from (make(normalise=Normalisation.NONE) for make in PLAIN.values())


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_laplacian_times_is_the_dense_product(shape):
    for graph in all_graphs():
        exact = graph.to(torch.float64)
        size = (*shape[:-1], graph.nodes, *shape[-1:])
        h = torch.randn(*size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        assert torch.allclose(exact.laplacian_times(h), matrix(exact.laplacian()) @ h, atol=1e-12)


def test_the_smoother_has_its_spectrum_in_the_unit_interval():
    """Chebyshev polynomials of S need this; L = scale (I − S) is what makes S useful."""
    for graph in all_graphs():
        exact = graph.to(torch.float64)
        smoother = matrix(exact.require_laplacian())
        eye = torch.eye(graph.nodes, dtype=torch.float64)
        assert close(exact.scale * (eye - smoother), matrix(exact.laplacian()))
        assert float(torch.linalg.eigvalsh(smoother).abs().max()) <= 1 + 1e-12


@pytest.mark.parametrize("name", list(SYMMETRIC))
def test_rows_follow_the_edge_list(name):
    graph = SYMMETRIC[name]().to(torch.float64)
    i, j = edge_list(graph)
    b = matrix(graph.incidence())
    assert bool((i < j).all())
    assert i.numel() == graph.edges
    for row, start, end in zip(b, i.tolist(), j.tolist(), strict=True):
        assert row.nonzero().flatten().tolist() == [start, end]
        assert float(row[start]) > 0 > float(row[end])


def test_plain_incidence_is_that_of_networkx():
    network = networkx.gnp_random_graph(9, 0.4, seed=1)
    graph = Graph.from_networkx(network, loops=0, normalise=Normalisation.NONE)
    expected = networkx.incidence_matrix(
        network, nodelist=range(9), edgelist=edge_list(graph).T.tolist(), oriented=True
    )
    assert torch.equal(matrix(graph.incidence()), -torch.from_numpy(expected.toarray()).float().T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_incidence_has_the_dtype_of_the_graph_and_full_precision(dtype):
    graph = Graph.from_dense(undirected()).to(dtype)
    exact = Graph.from_dense(undirected()).to(torch.float64)
    assert graph.incidence().dtype == graph.laplacian().dtype == dtype
    assert torch.equal(matrix(graph.incidence()), matrix(exact.incidence()).to(dtype))


def test_differences_vanish_on_the_square_roots_of_degrees():
    graph = Graph.from_dense(undirected()).to(torch.float64)
    assert float((graph.incidence() @ graph.degree.sqrt()).abs().max()) < 1e-14


# -- where there is no B --------------------------------------------------------------------------------------------

REFUSED = {
    "directed": (
        lambda: Graph.from_edges([[0, 1], [1, 2]], 3, directed=True),
        r"this graph is directed.*without directed=True",
    ),
    "directed by weight": (
        lambda: Graph.from_edges([[0, 1], [1, 0]], 2, [1.0, 2.0], directed=True),
        "this graph is directed",
    ),
    "directed, not normalised": (
        lambda: Graph.from_edges([[0], [1]], 2, normalise=Normalisation.NONE, directed=True),
        "this graph is directed",
    ),
    "random walk": (
        lambda: us.graph.path(4, normalise=Normalisation.RANDOM_WALK),
        r"under random-walk normalisation I − A is not symmetric.*use Normalisation.SYMMETRIC",
    ),
    "isolated": (
        lambda: Graph.from_edges([[0, 1], [1, 0]], 4, loops=0),
        r"node 2 has no edge and no self-loop.*loops=1",
    ),
}
ASKED = {
    "incidence": Graph.incidence,
    "laplacian": Graph.laplacian,
    "require_laplacian": Graph.require_laplacian,
    "laplacian_times": lambda graph: graph.laplacian_times(torch.ones(graph.nodes, 1)),
    "edge_list": edge_list,
    "largest_frequency": lambda graph: graph.largest_frequency,
}


@pytest.mark.parametrize("question", list(ASKED))
@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals_name_the_reason(name, question):
    make, reason = REFUSED[name]
    for graph in (make(), make().to(torch.float64)):
        assert graph.smoother is None
        with pytest.raises(IncompatibleError, match=reason):
            ASKED[question](graph)


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_graphs_still_multiply(name):
    graph = REFUSED[name][0]().to(torch.float64)
    x = torch.randn(graph.nodes, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(graph @ x, graph.to_dense() @ x)


@pytest.mark.parametrize("name", ["directed", "random walk", "isolated"])
def test_refusals_are_true(name):
    """I − A is not BᵀB there: not symmetric, or with a row that does not belong to any edge."""
    graph = REFUSED[name][0]().to(torch.float64)
    laplacian = torch.eye(graph.nodes, dtype=torch.float64) - graph.to_dense()
    if name == "isolated":
        assert laplacian[2].tolist() == [0, 0, 1, 0]  # a difference operator vanishes on a lonely node
    else:
        assert float((laplacian - laplacian.T).abs().max()) > 0.1


# -- the law, over everything -----------------------------------------------------------------------------------------

SHAPES = {
    "chain 0→1→2, 0→3": lambda **how: Graph.from_edges([[0, 1, 0], [1, 2, 3]], 5, **how),
    "cycle": lambda **how: Graph.from_edges([[0, 1, 2], [1, 2, 0]], 3, **how),
    "weighted": lambda **how: Graph.from_edges([[0, 1, 2, 2], [1, 2, 0, 3]], 4, [0.5, 2.0, 1.0, 3.0], **how),
    "with a loop": lambda **how: Graph.from_edges([[0, 1, 1], [1, 1, 2]], 3, [1.0, 0.3, 2.0], **how),
    "dense": lambda **how: Graph.from_dense(undirected(), **how),
    "path": us.graph.path,
    "ring": us.graph.ring,
    "star": us.graph.star,
    "complete": us.graph.complete,
    "no edges": lambda **how: Graph.from_edges([[], []], nodes=3, **how),
    "one node": lambda **how: Graph.from_edges([[], []], nodes=1, **how),
}


def every_graph():
    for name, make in SHAPES.items():
        sized = functools.partial(make, 5) if make.__module__ == "unspool.graph.generators" else make
        for normalise in Normalisation:
            for loops in (0, 1.0):
                ways = (
                    [{}] if make.__module__ == "unspool.graph.generators" else [{"directed": True}, {"directed": False}]
                )
                for way in ways:
                    told = f"{name}, {normalise.value}, loops {loops}, {way}"
                    made = sized(normalise=normalise, loops=loops, **way).to(torch.float64)
                    yield told, made
                    yield f"{told}, relaxed", made.with_general_laplacian()


EVERY = dict(every_graph())


def or_refused(ask):
    try:
        return ask()
    except IncompatibleError:
        return None


@pytest.mark.parametrize("told", EVERY)
def test_b_transposed_b_is_the_laplacian_of_that_graph_or_refused(told):
    graph = EVERY[told]
    b = or_refused(graph.incidence)
    if b is not None:
        b = matrix(b)
        assert close(b.T @ b, matrix(graph.laplacian()))
        assert edge_list(graph).shape[1] == b.shape[0]
    else:
        assert or_refused(lambda: edge_list(graph)) is None


@pytest.mark.parametrize("told", EVERY)
def test_frequencies_are_those_of_the_laplacian_or_refused(told):
    graph = EVERY[told]
    found = or_refused(lambda: us.graph.frequencies(graph))
    if found is not None:
        expected = torch.linalg.eigvals(matrix(graph.laplacian()))
        assert float(expected.imag.abs().max()) == 0.0
        assert torch.allclose(found, expected.real.sort().values, atol=1e-7)  # eigvals loses digits at repeated ones
        assert abs(graph.largest_frequency - float(found[-1])) < 1e-9
    else:
        assert or_refused(lambda: graph.largest_frequency) is None
    density = or_refused(lambda: us.graph.spectral_density(graph, points=51, degree=20))
    if density is not None:
        assert found is not None
        assert float(found[-1]) <= 2 * graph.scale + 1e-9
        assert abs(density.mass(0.0, float(density.edges[-1])) - 1) < 0.05


def test_the_law_meets_both_ends():
    kept = [told for told, graph in EVERY.items() if or_refused(graph.incidence) is not None]
    assert len(kept) > 40
    assert len(EVERY) - len(kept) > 40
    assert sum("relaxed" in told for told in kept) > 10
