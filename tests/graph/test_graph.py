"""The graph against its dense formulas, against PyTorch Geometric, and against its own copies."""

import copy
import dataclasses
import pickle

import pytest
import torch

import unspool as us
from unspool import Graph, Normalisation

NODES = 8


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def weights_of(kind, seed=0, nodes=NODES):
    """W as a dense float64 matrix; row i holds what flows into node i. The last node is isolated."""
    present = torch.rand(nodes, nodes, generator=seeded(seed)) < 0.35
    w = torch.rand(nodes, nodes, generator=seeded(seed + 1), dtype=torch.float64) + 0.1
    w = w * present if "weighted" in kind else present.double()
    w.fill_diagonal_(0)
    if "loops" in kind:
        w[0, 0], w[3, 3] = (2.5, 0.3) if "weighted" in kind else (1, 1)
    if "directed" not in kind:
        w = torch.maximum(w, w.T)
    w[-1], w[:, -1] = 0, 0
    return w


KINDS = ["plain", "weighted", "directed", "directed weighted", "loops", "weighted loops", "directed weighted loops"]


def edges_of(w):
    """(edge_index, weights) of W, in no particular order."""
    target, source = w.nonzero(as_tuple=True)
    order = torch.randperm(target.numel(), generator=seeded(9))
    index = torch.stack([source, target])[:, order]
    return index, w[index[1], index[0]]


def build(w, **how):
    index, weights = edges_of(w)
    return Graph.from_edges(index, nodes=w.shape[0], weights=weights, **{"directed": True, **how}).to(torch.float64)


def completed(w, loops):
    """W with a loop of weight ``loops`` wherever there was none."""
    return w + torch.diag(torch.where(w.diagonal() == 0, loops, 0.0).double())


def formula(w, loops, how):
    w = completed(w, loops)
    degree = w.sum(1)
    inverse = torch.where(degree > 0, 1 / degree, 0.0)
    if how is Normalisation.SYMMETRIC:
        return inverse.sqrt().diag() @ w @ inverse.sqrt().diag()
    return inverse.diag() @ w if how is Normalisation.RANDOM_WALK else w


def close(a, b):
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("how", list(Normalisation))
@pytest.mark.parametrize("loops", [0, 1.0, 0.25])
@pytest.mark.parametrize("kind", KINDS)
def test_normalisation_is_its_formula(kind, loops, how):
    w = weights_of(kind)
    graph = build(w, loops=loops, normalise=how)
    assert close(graph.to_dense(), formula(w, loops, how))
    assert close(graph.operator.T.to_dense(), formula(w, loops, how).T)
    assert close(graph.degree, completed(w, loops).sum(1))
    assert graph.undirected == torch.equal(w, w.T)
    assert graph.symmetric == torch.equal(graph.to_dense(), graph.to_dense().T)
    assert graph.nodes == NODES
    arcs = int((w.fill_diagonal_(0) != 0).sum())
    assert graph.edges == (arcs // 2 if graph.undirected else arcs)
    assert graph.normalisation is how


@pytest.mark.long  # PyG takes seconds to import
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_pyg(kind):
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    w = weights_of(kind)
    index, weights = edges_of(w)
    pyg_index, pyg_weights = gcn_norm(index, weights, NODES, add_self_loops=True, dtype=torch.float64)
    expected = torch.zeros(NODES, NODES, dtype=torch.float64)
    expected[pyg_index[1], pyg_index[0]] = pyg_weights
    assert close(build(w).to_dense(), expected)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Graph)])
def test_graphs_are_immutable(field):
    graph = us.graph.ring(4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(graph, field, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.operator.forward = None


@pytest.mark.parametrize("how", list(Normalisation))
def test_a_change_of_dtype_starts_from_full_precision(how):
    w = weights_of("weighted")
    index, weights = edges_of(w)
    graph = Graph.from_edges(index, NODES, weights, normalise=how)
    assert graph.dtype == torch.float32
    exact = formula(w, 1.0, how)
    back = graph.to(torch.bfloat16).to(torch.float32).to(dtype=torch.float64)
    assert (
        graph.to(torch.bfloat16).dtype == graph.to(torch.float16).dtype == torch.float32
    )  # half keeps float32 weights
    assert close(back.to_dense(), exact)
    assert torch.equal(graph.to_dense(), back.to_dense().float())
    if back.smoother is not None:
        assert close(back.smoother.to_dense(), graph.to(torch.float64).smoother.to_dense())
        assert torch.equal(graph.smoother.to_dense(), back.smoother.to_dense().float())


def test_built_under_float64_is_float64():
    index, weights = edges_of(weights_of("weighted"))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        native = Graph.from_edges(index, NODES, weights)
    finally:
        torch.set_default_dtype(before)
    assert native.dtype == torch.float64
    assert torch.equal(native.to_dense(), Graph.from_edges(index, NODES, weights).to(torch.float64).to_dense())


@pytest.mark.parametrize("shape", [(NODES,), (NODES, 3), (2, 3, NODES, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_product_with_signals(kind, shape):
    w = weights_of(kind)
    x = torch.randn(*shape, generator=seeded(3), dtype=torch.float64)
    assert torch.allclose(build(w) @ x, formula(w, 1.0, Normalisation.SYMMETRIC) @ x)


@pytest.mark.parametrize("how", list(Normalisation))
@pytest.mark.parametrize("kind", KINDS)
def test_permuting_nodes_permutes_the_operator(kind, how):
    w, order = weights_of(kind), torch.randperm(NODES, generator=seeded(4))
    permuted = build(w[order][:, order], normalise=how)
    assert close(permuted.to_dense(), build(w, normalise=how).to_dense()[order][:, order])


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda g: pickle.loads(pickle.dumps(g))])
@pytest.mark.parametrize("kind", ["weighted", "directed weighted"])
def test_copies_are_the_same_graph(copied, kind):
    graph = build(weights_of(kind)).to(torch.float32)
    twin = copied(graph)
    assert repr(twin) == repr(graph)
    assert torch.equal(twin.to_dense(), graph.to_dense())
    assert torch.equal(twin.to(torch.float64).to_dense(), graph.to(torch.float64).to_dense())
    assert twin.symmetric == graph.symmetric
    assert (twin.smoother is None) == (graph.smoother is None)
    x = torch.ones(NODES, 2)
    assert torch.equal(twin @ x, graph @ x)


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_back_to_scipy(kind):
    w = weights_of(kind)
    assert close(torch.from_numpy(build(w).to_scipy().toarray()), formula(w, 1.0, Normalisation.SYMMETRIC))


def test_it_says_what_it_is():
    graph = Graph.from_edges([[0], [1]], 3, normalise=Normalisation.NONE, directed=True)
    assert repr(graph) == "Graph(nodes=3, edges=1, directed, not normalised, float32, cpu)"
