"""Ops of stacked trials on a GPU, against their formulas in float64; in Triton's interpreter they run in tests/ops/kernels."""

import pytest
import torch

from ops.kernels.quantities import CASES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("case", CASES)
def test_kernels_compute_what_their_formulas_say(case):
    found = dict(CASES[case]("cuda"))
    assert found
    assert {name: value for name, value in found.items() if not value < 2e-5} == {}
