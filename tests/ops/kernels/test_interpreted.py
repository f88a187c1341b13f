"""The kernels of ops without a GPU: Triton's interpreter runs them where Triton is installed (``make kernels``)."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from study.batch.stack_cases import CASES

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="make kernels installs Triton"
    ),
]


@pytest.mark.parametrize(
    "case",
    ["features", "second", "activated", "series", "company", *(f"batches {name}" for name in CASES if "-" not in name)],
)
def test_kernels_compute_what_their_formulas_say(case):
    ran = subprocess.run(
        [sys.executable, HERE / "interpreted.py", *case.split()], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in ran.stdout.splitlines())}
    assert found
    assert {name: value for name, value in found.items() if not value < 1e-5} == {}
