"""The GPU kernels without a GPU: Triton's interpreter runs them where Triton is installed (``make kernels``)."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from study.batch.kernel.kernel_cases import CASES

HERE = Path(__file__).parent
TESTS = HERE.parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="make kernels installs Triton"
)


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_what_plain_torch_does(name):
    ran = subprocess.run(
        [sys.executable, HERE / "interpreted.py", name], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [line.rsplit(" ", 1) for line in ran.stdout.splitlines()]
    assert lines
    assert all(float(found) < 1e-5 for _, found in lines), ran.stdout
