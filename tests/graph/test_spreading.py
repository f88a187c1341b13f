"""One graph on several processes: what each computes of it is what one process computes."""

import functools
import itertools
from types import SimpleNamespace

import pytest
import torch

import unspool as us
from graph.ranks import on_ranks, said
from unspool.graph import graph as source
from unspool.ops import propagate
from unspool.ops.per_hop import gather
from unspool.ops.powers import powers
from unspool.ops.spmm import spmm

NODES = 34  # of which the last four have no edges, and some no loops
SPREADS = {"columns": us.graph.Columns(), "rows": us.graph.Rows(), "own": us.graph.Rows(torch.arange(NODES) % 3 % 2)}
HOPS = {"numbers": lambda c: (4,), "diagonals": lambda c: (4, c), "matrices": lambda c: (4, c, 2)}
#: Rounding that the layouts may differ by.
NEAR = {torch.float32: 1e-6, torch.float64: 1e-13}


def graphs():
    chance = torch.Generator().manual_seed(0)
    place = torch.randperm(30 * 30, generator=chance)[:90]
    edges = torch.stack([place // 30, place % 30])[:, place // 30 != place % 30]
    weights = torch.rand(edges.shape[1], generator=chance) + 0.1
    how = us.Normalisation
    return {
        "undirected": us.Graph.from_edges(edges, NODES, weights, directed=False),
        "directed": us.Graph.from_edges(edges, NODES, weights, directed=True),
        "random walk": us.Graph.from_edges(edges, NODES, directed=False, normalise=how.RANDOM_WALK),
        "no loops": us.Graph.from_edges(edges, NODES, directed=False, normalise=how.NONE, loops=0),
    }


def cases(every=False):
    """A case of each kind, or all of them; one channel leaves a process without any."""
    for (name, plain_graph), dtype in itertools.product(graphs().items(), NEAR):
        graph = plain_graph.to(dtype)
        for columns, kind, basis in itertools.product((1, 3), HOPS, us.ops.Basis):
            plain = basis is us.ops.Basis.POWERS
            if not plain and name == "no loops":
                continue  # Chebyshev polynomials of a matrix whose spectrum leaves [-1, 1] lose digits by themselves
            few = dtype == torch.float64 and (columns == 3 if name == "undirected" else columns == 1 and plain)
            if not every and not few and not (name == "directed" and columns == 3 and plain and dtype == torch.float32):
                continue
            chance = torch.Generator().manual_seed(columns)
            x = torch.randn(NODES, columns, dtype=dtype, generator=chance)
            hops = torch.randn(HOPS[kind](columns), dtype=dtype, generator=chance)
            key = (name, dtype, columns, kind, basis.value)
            yield SimpleNamespace(key=key, graph=graph, x=x, hops=hops, basis=basis)


@functools.cache
def spread_once(graph, spread):
    return us.graph.spread(graph, SPREADS[spread])


def computed(case, spread=None):
    """Outputs and gradients of the whole, however they came about."""
    graph = case.graph if spread is None else spread_once(case.graph, spread)
    take, whole = (graph.take, graph.gather) if spread else (lambda x: x.clone(), lambda y: y)
    x, hops = take(case.x).requires_grad_(), case.hops.clone().requires_grad_()
    y = whole(propagate(graph, x, hops, case.basis))
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)).sum().backward()
    if spread:
        graph.ranks.add(hops.grad)
    found = {"forward": y, "dX": whole(x.grad), "hops": hops.grad}
    x.grad = None
    propagate(graph, x, case.hops, case.basis).square().sum().backward()  # coefficients that are not learnt
    found["dX alone"] = whole(x.grad)
    if case.key[3:] == ("numbers", "powers"):
        with torch.no_grad():
            found |= {"product": whole(spmm(graph, x)), "transposed": whole(graph.operator.T @ x)}
            found |= {"stack": whole(graph @ torch.stack([x, 2 * x])[0]), "powers": whole(powers(graph, x, 2)[2])}
            found |= {"gathered": whole(gather(graph, [x, x, 2 * x]))}
    return {name: value.detach() for name, value in found.items()}


def work(rank):
    every = {(case.key, spread): computed(case, spread) for case in cases() for spread in SPREADS}
    return {
        "values": every,
        "refusals": refusals(rank),
        "unmade": unmade(rank),
        "sent": {name: sent(name) for name in SPREADS},
    }


def unmade(rank):
    """Own rows of graphs whose A was never made: the same bits, and it is not made for them."""
    known, source.SMALL = source.SMALL, 0
    try:
        large = graphs()
    finally:
        source.SMALL = known
    found = {}
    for (name, graph), made in zip(large.items(), graphs().values(), strict=True):
        ours, theirs = (us.graph.spread(one, SPREADS["own"]).operator for one in (graph, made))
        pairs = [(ours.halo.entries, theirs.halo.entries), (ours.turned.entries, theirs.turned.entries)]
        same = all(torch.equal(a, b) for one, other in pairs for a, b in zip(one, other, strict=True))
        found[name] = same and ours.symmetric == theirs.symmetric and (graph._entries is None or name == "no loops")
    return found


def refusals(rank):
    graph = us.graph.ring(8)
    spread = us.graph.spread(graph, us.graph.Columns())
    other = us.graph.ring(8) if rank == 0 else us.graph.path(8)
    b = us.unroll(us.Fidelity(1.0) + us.EdgeSparse(1.0), us.PrimalDual(step=0.25), depth=2)
    return {
        "whole signal": said(lambda: spread @ torch.ones(8, 1)),
        "whole take": said(lambda: spread.take(torch.ones(5, 1))),
        "dense": said(spread.to_dense),
        "edges": said(lambda: spread.adjacency.forward),
        "incidence": said(lambda: b(torch.ones(spread.nodes, 1), spread)),
        "largest": said(lambda: spread.largest_frequency),
        "moved": said(lambda: spread.to(torch.float64)),
        "twice": said(lambda: us.graph.spread(spread, us.graph.Columns())),
        "subgraph": said(lambda: spread.subgraph([0])),
        "new nodes": said(lambda: us.graph.enlarged(spread, 1, [[8], [0]])),
        "layout": said(lambda: us.graph.spread(graph, "columns")),
        "parts": said(lambda: us.graph.spread(graph, us.graph.Rows(torch.arange(8)))),
        "other graph": said(lambda: us.graph.spread(other, us.graph.Columns())),
        "other layout": said(lambda: us.graph.spread(graph, us.graph.Columns() if rank else us.graph.Rows())),
        "half": said(lambda: spread @ torch.ones(spread.nodes, 1).bfloat16()),
        "same": repr(spread.to("cpu")),
    }


def sent(spread):
    """Bytes that all processes send for five hops of eight channels, forward and backward."""
    graph = us.graph.spread(
        us.graph.ring(12), SPREADS[spread] if spread != "own" else us.graph.Rows(torch.arange(12) % 2)
    )
    x, hops, before = (
        torch.ones(graph.nodes, 8, requires_grad=True),
        torch.ones(6, requires_grad=True),
        graph.ranks.sent,
    )
    propagate(graph, x, hops).sum().backward()
    return graph.ranks.sent - before


@pytest.fixture(scope="module")
def two():
    return on_ranks(2, work)


def check(found, every=False):
    for case in cases(every):
        alone = computed(case)
        for spread, told in itertools.product(SPREADS, found):
            together = told["values"][case.key, spread]
            for name, value in alone.items():
                where = (*case.key, spread, name)
                exact = spread == "columns" and case.key[3] != "matrices" and name != "hops"
                if exact:
                    assert torch.equal(together[name], value), where
                else:
                    gap = (together[name] - value).abs().max() / value.abs().max().clamp_min(1)
                    assert gap <= NEAR[value.dtype] * (10 if name == "hops" else 1), (*where, float(gap))


def test_values_and_gradients_are_those_of_one_process(two):
    check(two)


@pytest.mark.slow
def test_four_processes():
    found = on_ranks(4, work_of_four)
    check(found, every=True)
    wanted = us.graph.ring(3) @ torch.eye(3)
    assert all(torch.allclose(y, wanted) for told in found for y in told["few nodes"])


def work_of_four(rank):
    every = {(case.key, spread): computed(case, spread) for case in cases(every=True) for spread in SPREADS}
    spreads = [us.graph.spread(us.graph.ring(3), layout) for layout in (us.graph.Columns(), us.graph.Rows())]
    return {"values": every, "few nodes": [few.gather(few @ few.take(torch.eye(3))) for few in spreads]}


def test_bytes_are_those_of_the_formulas(two):
    # Columns: rows out and back, X and then its gradient, half of 12 × 8 numbers each; the sum of the coefficients' gradient is not asked for.
    assert sum(told["sent"]["columns"] for told in two) == 4 * (12 * 8 // 2) * 4
    # Rows: a ring in two arcs has four neighbours across; every second node has all of them: 12, for 5 hops there and back.
    assert sum(told["sent"]["rows"] for told in two) == 4 * 8 * 4 * 5 * 2
    assert sum(told["sent"]["own"] for told in two) == 12 * 8 * 4 * 5 * 2


def test_rows_of_a_graph_are_made_without_the_whole(two):
    for told in two:
        assert all(told["unmade"].values()), told["unmade"]


def test_what_sees_edges_or_does_not_fit_is_refused(two):
    for told in two:
        found = told["refusals"]
        assert "has 4 of the graph's 8 nodes" in found["whole signal"]
        assert "one row for each of the graph's 8 nodes" in found["whole take"]
        assert "entries of A" in found["dense"]
        assert "before it is spread" in found["edges"]
        assert found["incidence"].startswith("IncompatibleError")
        assert "graph.largest_frequency before" in found["largest"]
        assert "graph.to(...) before" in found["moved"]
        assert "not spread yet" in found["twice"]
        assert "subgraph of the whole before" in found["subgraph"]
        assert "joined to a whole graph" in found["new nodes"]
        assert "us.graph.Columns()" in found["layout"]
        assert "from 0 to 1" in found["parts"]
        assert "process 1 has a graph or a layout other than process 0" in found["other graph"]
        assert "process 1 has a graph or a layout" in found["other layout"]
        assert "float32 or float64" in found["half"]
        assert "4 of 8 nodes here" in found["same"]
