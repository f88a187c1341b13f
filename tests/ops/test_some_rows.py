"""A polynomial at some nodes is the polynomial there: laws in Triton's interpreter, each trial with nodes of its own."""

import importlib.util

import pytest
import torch
from torch.func import vmap

from ops.op_laws import run_interpreted, seeded
from ops.product_cases import directed
from unspool.ops import some_rows
from unspool.ops.polynomial import propagate

pytestmark = pytest.mark.long
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@needs_triton
@pytest.mark.slow
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_products.py", "rows")


def test_rows_of_the_polynomial():
    graph, rows = directed(9).to(torch.float64), torch.tensor([[4, 0], [1, 8]])
    x, hops = seeded(2, 9, 3), seeded(2, 4, 3, 5, seed=1)
    found = vmap(lambda x, c, r: some_rows.propagate_rows(graph, x, c, r))(x, hops, rows)
    whole = torch.stack([propagate(graph, a, b) for a, b in zip(x, hops, strict=True)])
    wanted = torch.stack([whole[0, rows[0]], whole[1, rows[1]]])
    assert torch.allclose(found, wanted, atol=1e-12)
    blocks = some_rows.formula(graph.operator, x.movedim(0, 1), hops, rows)
    assert torch.allclose(blocks.movedim(1, 0), wanted, atol=1e-12)
