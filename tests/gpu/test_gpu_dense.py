"""The kernels of dense features on a GPU, against float64; in Triton's interpreter they run in tests/ops/kernels."""

from __future__ import annotations

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

from ops.kernels.dense_interpreted import checks


@pytest.mark.parametrize(("name", "packed"), [("numbers", False), ("numbers", True), ("rows", True)])
def test_products_masks_and_gradients_are_those_of_double_precision(name, packed):
    for label, found in checks(name, "cuda", packed):
        assert found <= (2e-6 if label.endswith(("masked", "plain", "gradient")) else 0), label
