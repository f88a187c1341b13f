"""Products with a matrix of which only the places of entries are stored: by rows that are gathered, and as a kernel in Triton's interpreter."""

import importlib.util

import pytest
import torch

from ops.op_laws import run_interpreted
from ops.pattern_cases import gaps
from unspool.ops import pattern
from unspool.ops.pattern import Pattern

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@pytest.mark.parametrize("together", [1, 60, 1 << 20])
def test_products_are_those_of_the_matrix(together, monkeypatch):
    monkeypatch.setattr(pattern, "GATHERED", together)
    found = dict(gaps("cpu"))
    assert len(found) == 12
    assert {name: gap for name, gap in found.items() if not gap <= 0} == {}


def test_sums_in_half_precision_are_rounded_once():
    """1 + 300 · 2⁻¹⁰: added up in bfloat16, it stays 1."""
    y = torch.full((301, 1), 2.0**-10, dtype=torch.bfloat16)
    y[0] = 1.0
    out = torch.empty(1, 1, dtype=torch.bfloat16)
    Pattern.of(torch.tensor([0, 301]), torch.arange(301, dtype=torch.int32), None, None).times(y, out)
    assert float(out) == pytest.approx(1 + 300 * 2.0**-10, rel=2**-8)


def test_a_pattern_without_rows_or_channels():
    nothing = torch.empty(0, dtype=torch.int32)
    Pattern.of(torch.zeros(1, dtype=torch.int32), nothing, None, None).times(torch.empty(0, 3), torch.empty(0, 3))
    Pattern.of(torch.zeros(3, dtype=torch.int32), nothing, None, None).times(torch.empty(2, 0), torch.empty(2, 0))
    out = torch.full((2, 1), float("nan"))
    Pattern.of(torch.zeros(3, dtype=torch.int32), nothing, None, None).times(torch.ones(2, 1), out)
    assert torch.equal(out, torch.zeros(2, 1))


@pytest.mark.long
@needs_triton
def test_kernels_give_these_products_in_the_interpreter():
    run_interpreted("interpreted_pattern.py")
