"""Stored hops in the memory of the GPU, on the GPU; skipped elsewhere.

PYTHONPATH=src python -m pytest tests/gpu/test_gpu_hops.py
"""

import pytest
import torch

import unspool as us

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_network_reads_hops_that_the_device_holds(tmp_path, device):
    graph, x = us.graph.ring(50), torch.rand(50, 8)
    stored = us.hops.write(graph, x, depth=3, out=tmp_path / "hops")
    torch.manual_seed(0)
    model = us.models.GraphFirstGPRGNN(8, 3, hidden=16, depth=3).eval()
    rows = torch.tensor([7, 0, 49])
    wanted = model(stored, None, rows=rows)
    for held in (stored.held(device), stored.to(device)):
        found = model.to(device)(held, None, rows=rows.to(device))
        torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-5)
        model.cpu()
