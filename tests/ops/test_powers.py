"""All powers of a graph applied to a signal, against spmm hop by hop, under every transform."""

import pytest
import torch

from ops.gated_cases import directed, hops
from ops.op_laws import laws, seeded
from unspool.ops.powers import powers
from unspool.ops.spmm import spmm

CASES = {name: (op, inputs, twice) for name, op, inputs, twice in hops()}


def hop_by_hop(x, depth):
    pages = [x]
    for _ in range(depth):
        pages.append(spmm(directed(x), pages[-1]))
    return torch.stack(pages)


@pytest.mark.parametrize("name", list(CASES))
def test_laws(name):
    op, inputs, twice = CASES[name]
    for law, gap in laws(op, inputs, twice=twice):
        assert gap < 1e-5, law


@pytest.mark.parametrize("depth", [0, 1, 4])
@pytest.mark.parametrize("shape", [(6, 3), (2, 6, 3), (2, 2, 6, 1), (6, 0)])
def test_hop_by_hop(shape, depth):
    x = seeded(*shape).requires_grad_()
    found, wanted = powers(directed(x), x, depth), hop_by_hop(x, depth)
    assert found.shape == (depth + 1, *shape)
    assert torch.allclose(found, wanted, rtol=1e-12)
    (mine,), (theirs,) = (torch.autograd.grad((y * y.detach().cos()).sum(), x) for y in (found, wanted))
    assert torch.allclose(mine, theirs, rtol=1e-12, atol=1e-14)


def test_numerical_derivatives():
    x = seeded(6, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: powers(directed(x), x, 3), x)
    assert torch.autograd.gradgradcheck(lambda x: powers(directed(x), x, 3).sin(), x)


def test_compiled():
    graph, x = directed(seeded(1)), seeded(6, 3).requires_grad_()
    compiled = torch.compile(lambda x: powers(graph, x, 2), fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), hop_by_hop(x, 2))


def test_signals_of_another_graph_are_refused():
    with pytest.raises(ValueError, match="x has shape"):
        powers(directed(seeded(1)), seeded(5, 3), 2)
