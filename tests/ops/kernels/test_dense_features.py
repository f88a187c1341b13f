"""The kernels of dense features without a GPU: in Triton's interpreter where Triton is installed; what is prepared, in plain torch."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
TESTS = HERE.parents[1]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="make kernels installs Triton"
    ),
]


@pytest.mark.parametrize(
    "name",
    [
        "rows",
        "tiny",
        "counts",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("numbers", "bag", "narrow", "wide")),
    ],
)
def test_products_masks_and_gradients_are_those_of_double_precision(name):
    ran = subprocess.run(
        [sys.executable, HERE / "dense_interpreted.py", name], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [line.rsplit(" ", 1) for line in ran.stdout.splitlines()]
    assert len(lines) == 18
    for label, found in lines:
        assert float(found) <= (5e-7 if label.endswith(("masked", "plain", "gradient")) else 0), label


def test_the_last_piece_does_not_read_beyond_the_last_node():
    ran = subprocess.run(
        [sys.executable, HERE / "dense_interpreted.py", "ends"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = [float(line.rsplit(" ", 1)[1]) for line in ran.stdout.splitlines()]
    assert len(found) == 2
    assert all(one <= 5e-7 for one in found), ran.stdout


def test_pieces_add_up_to_x():
    pytest.importorskip("triton")
    from unspool.ops.kernels.dense_features_cuda import DenseFeatures

    torch.manual_seed(0)
    words = (torch.rand(50, 301) < 0.3).float()
    weighted = words * torch.rand(50, 301)
    rare = torch.log(50 / words.sum(0)) * (1 + 0.02 * torch.rand(301))
    counts = words * torch.randint(1, 5, words.shape)
    counts[:5] *= 3
    for x, pieces in (
        (words, 1),
        (counts * torch.rand(50, 1) * rare, 1),
        (4 * words, 1),
        (words / words.sum(1, keepdim=True), 1),
        (weighted, 2),
    ):
        prepared = DenseFeatures.of(x)
        assert prepared.pieces == pieces
        assert prepared.by_node.shape == (pieces, 256, 512)
        assert torch.equal(prepared.by_feature[:, 1], prepared.by_node[:, :, 1::2].mT)
        assert torch.equal(prepared.by_feature[:, 0], prepared.by_node[:, :, ::2].mT)
        whole = prepared.by_node.double().sum(0)
        assert not whole[50:].any()
        assert not whole[:, 301:].any()
        whole = whole[:50, :301] * prepared.inverse
        if prepared.scale is not None:
            whole = whole * prepared.scale[:, None].double()
        if prepared.column is not None:
            whole = whole * prepared.column.double()
        assert ((whole - x.double()).abs() <= 2.0**-21 * x.abs()).all()
        assert (prepared.column is not None) == (x.unique().numel() > 100 and pieces == 1)
