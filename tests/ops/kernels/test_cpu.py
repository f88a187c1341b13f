"""The sparse step on the CPU: its dense meaning, in memory that the caller owns."""

import itertools

import pytest
import torch

import unspool as us
from unspool.ops.kernels import cpu, step_for
from unspool.ops.operator import Operator


def signal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def matrix():
    return us.graph.grid(3, 4).to(torch.float64)


@pytest.mark.parametrize(("based", "weighted", "lagging"), [*itertools.product([False, True], repeat=3)])
def test_a_step_is_its_dense_meaning(matrix, based, weighted, lagging):
    y, base, lagged, weight = signal(12, 3), signal(12, 3, seed=1), signal(12, 3, seed=2), signal(12, 1, seed=3)
    expected = 0.7 * matrix.to_dense() @ y
    expected += base * (weight if weighted else 1) if based else 0
    expected -= lagged if lagging else 0
    out = torch.full_like(y, float("nan"))  # what was there does not count
    step_for(y)(matrix.operator.forward, y, out, 0.7, base if based else None, weight if weighted else None, lagged if lagging else None)  # fmt: skip
    assert torch.allclose(out, expected)


@pytest.mark.parametrize("most", [1, 5, 9, 1000])
@pytest.mark.parametrize("based", [False, True])
def test_row_starts_that_are_wider_than_columns_give_the_same_in_pieces(most, based, monkeypatch):
    monkeypatch.setattr(cpu, "MOST", most)
    row, col = torch.tensor([0, 0, 1, 5, 5, 5, 9]), torch.tensor([1, 3, 2, 0, 4, 5, 9])
    csr = Operator.from_entries(row, col, torch.arange(1.0, 8.0, dtype=torch.float64), (12, 12)).forward
    y, base = signal(12, 3), signal(12, 3, seed=1) if based else None
    expected, out = torch.full_like(y, float("nan")), torch.full_like(y, float("nan"))
    cpu.step(csr, y, expected, 0.5, base, None, None)
    cpu.step(csr._replace(crow=csr.crow.long()), y, out, 0.5, base, None, None)
    assert torch.equal(out, expected)


def test_the_base_may_lie_where_the_result_goes(matrix):
    y, out = signal(12, 3), signal(12, 3, seed=1)
    expected = matrix.to_dense() @ y + out
    cpu.step(matrix.operator.forward, y, out, 1.0, out, None, None)
    assert torch.allclose(out, expected)


def test_without_entries_the_base_is_left():
    empty = Operator.from_entries(*torch.zeros(2, 0, dtype=torch.long), signal(0), (4, 4))
    y, out = signal(4, 2), torch.full((4, 2), float("nan"), dtype=torch.float64)
    cpu.step(empty.forward, y, out, 1.0, None, None, None)
    assert torch.equal(out, torch.zeros_like(out))
    cpu.step(empty.forward, y, out, 1.0, y, None, None)
    assert torch.equal(out, y)


def test_the_way_without_a_csr_product(matrix):
    """What devices other than CPU and CUDA run: gather and add."""
    y = signal(12, 2)
    out = torch.ones_like(y)
    cpu._gather(matrix.operator.forward, y, out, 2.0)
    assert torch.allclose(out, 1 + 2 * matrix.to_dense() @ y)
