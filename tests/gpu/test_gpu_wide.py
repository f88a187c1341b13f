"""Products with small matrices and layers of hidden channels on a GPU: the laws of their kernels, at sizes of use too."""

import pytest
import torch

from ops.op_laws import laws
from ops.product_cases import hops, products, rows

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
CASES = (
    [*products(large=True), *hops(large=True, device="cuda"), *rows(large=True, device="cuda")]
    if torch.cuda.is_available()
    else []
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_kernels_keep_the_laws_of_ops(case):
    name, op, inputs, twice = case
    # Among a million sums a few are nearly zero, and rounding takes one to the other side of a ReLU: a gradient moves by what one node gives.
    bound = 1e-2 if name.startswith("layers (3000") else 2e-5
    for law, gap in laws(op, [t.cuda() for t in inputs], trials=3, twice=twice):
        assert gap < bound, law
