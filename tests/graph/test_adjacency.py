"""A lean graph is the graph that plain dense formulas make, bit for bit, wherever its entries are cut into blocks."""

import warnings

import numpy as np
import pytest
import torch

from unspool import Graph, Normalisation
from unspool.graph import compress, part_of, permuted
from unspool.graph.adjacency import Adjacency
from unspool.ops.spmm import spmm

NODES = 9


@pytest.fixture(params=[1 << 18, 4], ids=["one block", "many blocks"])
def _blocks(request, monkeypatch):
    monkeypatch.setattr(compress, "BLOCK", request.param)


def listed(seed, weighted):
    """A list with repeats, loops, both directions and weights of zero, whose sums are exact."""
    random = np.random.default_rng(seed)
    index = torch.as_tensor(random.integers(0, NODES - 1, (2, int(random.integers(1, 40)))))
    index = torch.cat([index, index[:, ::2].flip(0)], dim=1)  # some run back
    weight = torch.as_tensor(random.integers(0, 4, index.shape[1]) / 4.0) if weighted else None
    return index, weight


def dense(index, weight, directed):
    """W, how many edges are repeated, and how many are in one direction only."""
    times = np.zeros((NODES, NODES))
    w = np.zeros((NODES, NODES))
    for e, (s, t) in enumerate(index.T.tolist()):
        times[t, s] += 1
        w[t, s] = 1.0 if weight is None else w[t, s] + float(weight[e])
    single = int(((w > 0) & (w.T == 0)).sum())
    return (w if directed else np.maximum(w, w.T)), int((times > 1).sum()), single


def quiet(*args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Graph.from_edges(*args, **how)


def formula(w, loops, how):
    """A by the textbook, with the degrees summed from left to right and an added loop last."""
    bare = (w.diagonal() == 0) & (loops > 0)
    degree = np.array([sum(row, 0.0) for row in w]) + np.where(bare, loops, 0.0)
    w = w + np.diag(np.where(bare, loops, 0.0))
    inverse = np.where(degree > 0, 1.0 / np.where(degree > 0, degree, 1.0), 0.0)
    root = np.sqrt(inverse)
    if how is Normalisation.SYMMETRIC:
        return w * (root[:, None] * root[None, :])
    return w * inverse[:, None] if how is Normalisation.RANDOM_WALK else w


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("loops", [0, 1.0, 0.25])
@pytest.mark.parametrize("how", list(Normalisation))
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_every_list_is_its_dense_formula_bit_for_bit(weighted, directed, how, loops):
    for seed in range(12):
        index, weight = listed(seed, weighted)
        w, _, _ = dense(index, weight, directed)
        graph = quiet(index, NODES, weight, directed=directed, normalise=how, loops=loops)
        expected = formula(w, loops, how)
        double = graph.to(torch.float64)
        assert np.array_equal(double.to_dense().numpy(), expected)
        assert np.array_equal(double.operator.T.to_dense().numpy(), expected.T)
        assert torch.equal(graph.to_dense(), torch.from_numpy(expected).float())
        assert graph.symmetric == graph.operator.symmetric == np.array_equal(expected, expected.T)
        assert graph.undirected == np.array_equal(w, w.T)
        arcs = int((w > 0).sum() - (w.diagonal() > 0).sum())
        assert graph.edges == (arcs // 2 if graph.undirected else arcs)
        assert (np.diff(graph.operator.forward.col.numpy()) > 0).sum() >= graph.adjacency.entries - NODES
        if how is Normalisation.NONE and graph.undirected:
            laplacian = np.diag((w * (1 - np.eye(NODES))).sum(1)) - w * (1 - np.eye(NODES))
            assert np.allclose(graph.to(torch.float64).laplacian().to_dense().numpy(), laplacian, atol=1e-14)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("weighted", [True, False])
def test_what_was_merged_is_counted_as_a_loop_over_the_edges_counts_it(weighted):
    for seed in range(30):
        index, weight = listed(seed, weighted)
        _, repeated, single = dense(index, weight, directed=True)
        notes = quiet(index, NODES, weight).notes
        many = [note for note in notes if "more than once" in note]
        alone = [note for note in notes if "one direction only" in note]
        assert [int(note.split()[0]) for note in many] == [repeated] * bool(repeated)
        assert [int(note.split()[0]) for note in alone] == [single] * bool(single)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_parts_and_other_orders_hold_the_entries_of_the_whole(weighted, directed):
    for seed in range(6):
        index, weight = listed(seed, weighted)
        for how in Normalisation:
            graph = quiet(index, NODES, weight, directed=directed, normalise=how).to(torch.float64)
            some, order = (
                torch.tensor([7, 2, 0, 5]),
                torch.randperm(NODES, generator=torch.Generator().manual_seed(seed)),
            )
            part, moved = part_of(graph, some), permuted(graph, order)
            assert torch.equal(part.to_dense(), graph.to_dense()[some][:, some])
            assert part.symmetric == part.operator.symmetric
            assert torch.equal(moved.to_dense(), graph.to_dense()[order][:, order])
            if graph.smoother is not None:
                assert torch.equal(part.smoother.to_dense(), graph.smoother.to_dense()[some][:, some])
                assert torch.equal(moved.smoother.to_dense(), graph.smoother.to_dense()[order][:, order])


def test_an_unweighted_graph_keeps_columns_and_degrees_alone():
    random = np.random.default_rng(0)
    graph = quiet(random.integers(0, 2000, (2, 60_000)), 2000, directed=False)
    w = graph.adjacency
    assert w.forward.beside is None
    assert w.transpose is w.forward
    kept = sum(t.numel() * t.element_size() for t in (w.forward.crow, w.forward.col, graph.degree))
    assert kept < 4.5 * w.entries
    assert quiet(graph.to_scipy().nonzero(), 2000, np.ones(w.entries)).adjacency.forward.beside is None


def test_weights_take_four_bytes_where_that_loses_nothing():
    index = [[0, 1, 2], [1, 2, 3]]
    short = quiet(index, 4, [0.5, 2.0, 3.0]).adjacency.forward.beside
    long = quiet(index, 4, [0.1, 2.0, 3.0]).adjacency.forward.beside
    assert (short.dtype, long.dtype) == (torch.float32, torch.float64)


def test_entries_are_made_once_and_follow_the_dtype():
    graph = quiet([[0, 1], [1, 2]], 3)
    assert graph.operator is graph.operator
    assert graph.smoother is graph.operator
    assert graph.to(torch.float64).operator.dtype == torch.float64
    assert graph.to(torch.float32).operator is graph.operator


@pytest.mark.usefixtures("_nothing_is_small")
@pytest.mark.parametrize("make", [torch.func.vmap, torch.func.grad])
def test_entries_that_are_first_made_inside_a_transform_are_of_use_outside(make):
    graph = quiet([[0, 1], [1, 2]], 3)
    if make is torch.func.vmap:
        make(lambda x: graph @ x)(torch.ones(2, 3, 1))
    else:
        make(lambda x: (graph @ x).sum())(torch.ones(3, 1))
    x = torch.ones(3, 1, requires_grad=True)
    (graph @ x).sum().backward()
    assert torch.equal(x.grad, graph.to_dense().T @ torch.ones(3, 1))
    assert torch.func.vmap(lambda x: graph @ x)(torch.ones(2, 3, 1)).shape == (2, 3, 1)


@pytest.mark.usefixtures("_nothing_is_small")
def test_entries_made_in_inference_mode_serve_training():
    graph = quiet([[0, 1], [1, 2]], 3)
    with torch.inference_mode():
        graph @ torch.ones(3, 1)
    x = torch.ones(3, 1, requires_grad=True)
    (graph @ x).sum().backward()
    assert x.grad is not None


def test_too_many_nodes_are_refused_before_memory_is_asked_for():
    with pytest.raises(ValueError, match=r"a graph of 3000000000 nodes: at most 2147483647 can be numbered"):
        Graph.from_edges([[0], [1]], nodes=3_000_000_000)


def test_entries_in_any_order_make_the_same_matrix():
    w = Adjacency.from_entries(torch.tensor([2, 0, 1]), torch.tensor([0, 2, 1]), torch.tensor([3.0, 3.0, 1.0]), 3)
    assert w.symmetric
    assert w.loops == 1
    assert w.forward.col.tolist() == [2, 1, 0]


@pytest.fixture
def _nothing_is_small(monkeypatch):
    monkeypatch.setattr("unspool.graph.graph.SMALL", -1)


@pytest.mark.long
@pytest.mark.usefixtures("_nothing_is_small")
@pytest.mark.parametrize("how", [Normalisation.SYMMETRIC, Normalisation.NONE])
def test_entries_that_are_first_made_while_compiling_are_those_of_a_plain_call(how):
    def made():
        return quiet([[0, 1], [1, 2]], 3, [1.0, 2.0], normalise=how)

    def steps(graph):
        return lambda x: graph.laplacian_times(x) + spmm(graph, x)

    twin, x = made(), torch.arange(6.0).reshape(3, 2)
    first, again = made(), made()
    assert first.__dict__.get("_operator") is None
    assert torch.equal(torch.compile(steps(first), backend="aot_eager", fullgraph=True)(x), steps(twin)(x))
    assert torch.equal(first.to_dense(), twin.to_dense())
    compiled = torch.compile(lambda x: again @ x, backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match=r"ask for graph\.operator once before"):
        compiled(x)
    assert again.operator is again.operator
    torch._dynamo.reset()
    assert torch.equal(compiled(x), twin @ x)


@pytest.mark.parametrize("seed", range(5))
def test_keys_sort_as_counting_does(seed):
    """The sort of GPUs and that of the CPU give the same rows, equal entries in the order of the list."""
    random = torch.Generator().manual_seed(seed)
    row, col = (torch.randint(0, NODES, (50,), generator=random) for _ in range(2))
    beside = torch.arange(50)
    for one, other in (
        (compress.ordered(row, col, beside, NODES), compress._sorted_by_key(row, col, beside, NODES)),
        (
            compress.ordered(row, col, beside, NODES, turned=True),
            compress._sorted_by_key(torch.minimum(row, col).int(), torch.maximum(row, col).int(), beside, NODES),
        ),
    ):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_another_operator_takes_the_place_of_a():
    graph = quiet([[0, 1], [1, 2]], 3, directed=False)
    other = quiet([[0], [1]], 3, directed=True, loops=0).operator
    made = graph.with_operator(other, "there is none")
    assert made.operator is made.smoother is other
    assert not made.symmetric
    assert torch.equal(made @ torch.ones(3, 1), other @ torch.ones(3, 1))
    with pytest.raises(ValueError, match="there is none"):
        made.incidence()
