"""Stacks that outlive others: what is captured goes on in memory of its own, however many have come and gone."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from unspool import datasets, models, train
from unspool.study.batch.stacked_batch import StackedBatch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

#: Torch hands out 32 streams in turns, and a stack has two.
MANY = 20


def stack(loader, count=4):
    """GRAFF: its matrices are multiplied by cuBLAS, which adds long sums up in a workspace."""
    settings = {"hidden": 64, "depth": 3}
    trials = [train.Trial(models.GRAFF, settings, train.TrainConfig(lr=0.01), seed) for seed in range(count)]
    return StackedBatch([loader.prepare(trial) for trial in trials])


def places(batch):
    return {batch._stream.cuda_stream, batch._pass._side.cuda_stream}


def test_a_captured_epoch_goes_on_when_twenty_other_stacks_have_ended():
    loader = train.TrialLoader(datasets.contextual_sbm(nodes=2000, classes=5, features=64, seed=0), "cuda")
    wanted = stack(loader).run_epochs(6 + 2 * MANY)
    first = stack(loader)
    parts = [first.run_epochs(6)]
    for _ in range(MANY):
        other = stack(loader)
        other.run_epochs(6)
        assert not places(first) & places(other)
        del other
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        parts.append(first.run_epochs(2))
    torch.cuda.synchronize()
    np.testing.assert_allclose(np.concatenate(parts)[..., :2], wanted[..., :2], rtol=1e-3)
