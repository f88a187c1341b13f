"""Products with patterns on a GPU, against float64; graphs made there are those of the CPU, and hops written there agree."""

import pytest
import torch

import unspool as us
from ops.pattern_cases import gaps
from unspool.graph.pattern import pattern_of, walk_on

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.filterwarnings("ignore:.*listed more than once"),
]


@pytest.mark.parametrize("rows", [23, 3000])
def test_products_are_those_of_the_matrix(rows):
    assert {name: gap for name, gap in gaps("cuda", rows) if not gap <= 0} == {}


def edges(count, nodes, seed=0):
    chance = torch.Generator().manual_seed(seed)
    return (torch.rand(2, count, generator=chance, dtype=torch.float64) ** 2 * nodes).long()


@pytest.mark.parametrize("width", [40, 64, 128, 200])
def test_a_graph_with_hubs(width):
    graph = us.Graph.from_edges(edges(400_000, 20_000), 20_000, directed=False)
    y = torch.randn(20_000, width).bfloat16()
    out, again = (torch.full((20_000, width), float("nan"), dtype=torch.bfloat16, device="cuda") for _ in range(2))
    product = pattern_of(graph.to("cuda")).times
    product(y.cuda(), out)
    product(y.cuda(), again)
    assert torch.equal(out, again)
    wanted = graph.to(torch.float64) @ y.double()
    room = graph.to(torch.float64) @ y.double().abs() * 2.0**-7
    assert bool(((out.cpu().double() - wanted).abs() <= room).all())
    walk, travels = walk_on(graph.to("cuda"), torch.bfloat16), y.cuda()
    walk.begin(travels)
    walk.step(travels, out)
    assert bool(((walk.signal(out, slice(None)).cpu().double() - wanted).abs() <= 2 * room).all())


@pytest.mark.parametrize("loops", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_a_graph_made_there_is_that_of_the_cpu(loops, dtype, monkeypatch):
    monkeypatch.setattr("unspool.graph.both_ways.MOST", 50_000)
    index = edges(100_000, 3000).to(dtype)
    here = us.Graph.from_edges(index, 3010, directed=False, loops=loops)
    there = us.Graph.from_edges(index.cuda(), 3010, directed=False, loops=loops)
    assert there.notes == here.notes
    assert there.undirected
    for a, b in zip(here.adjacency.forward[:2], there.adjacency.forward[:2], strict=True):
        assert torch.equal(a, b.cpu())
    assert torch.equal(here.degree, there.degree)
    assert here.adjacency.loops == there.adjacency.loops


@pytest.mark.parametrize("kind", [None, torch.bfloat16])
def test_hops_written_there(kind, tmp_path):
    graph = us.Graph.from_edges(edges(20_000, 1000), 1000, directed=False)
    x, nodes = torch.randn(1000, 48), torch.arange(0, 1000, 7)
    here = us.hops.write(graph, x, 3, tmp_path / "cpu", nodes=nodes)
    there = us.hops.write(
        graph.to("cuda"), x, 3, tmp_path / "gpu", nodes=nodes, dtype=kind, memory=(96 << 20) + 400_000
    )
    rows = torch.arange(nodes.numel())
    assert torch.allclose(there.take(rows), here.take(rows), atol=1e-5 if kind is None else 0.05)
    held = there.held("cuda")
    assert torch.equal(held.take(rows.cuda()).cpu(), there.take(rows))
