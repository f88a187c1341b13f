"""A trial ends where its config says, whatever the pieces in which its epochs come in."""

import numpy as np
import pytest

import unspool as us
from unspool.study.engine.trial_progress import TrialProgress
from unspool.train import Monitor, Stop, TrainConfig, Trial

pytestmark = pytest.mark.long


def told(progress):
    result = progress.result()
    scores = (result.train_loss, result.valid_loss, result.valid_score, result.test_score)
    return result.epoch, result.epochs, result.ending.name, *scores


@pytest.mark.parametrize("monitor", Monitor, ids=lambda s: s.name)
@pytest.mark.parametrize("stop", Stop, ids=lambda s: s.name)
@pytest.mark.parametrize("seed", range(12))
def test_pieces_of_any_size_end_as_single_epochs_do(monitor, stop, seed):
    rng = np.random.default_rng(seed)
    config = TrainConfig(
        epochs=int(rng.integers(5, 120)),
        monitor=monitor,
        stop=stop,
        patience=int(rng.integers(3, 40)),
        min_epochs=int(rng.integers(0, 60)),
    )
    trial = Trial(us.models.MLP, config=config)
    # Scores in steps, so that there are ties; losses that fall and rise again.
    numbers = rng.random((config.epochs + 10, 4))
    numbers[:, 1] += np.abs(np.linspace(-1, rng.random(), len(numbers)))
    numbers[:, 2] = np.round(numbers[:, 2], 1)
    if seed % 4 == 0:
        numbers[rng.integers(0, len(numbers)), rng.integers(0, 2)] = np.nan
    single = TrialProgress(trial)
    single._goes_on = lambda many: False  # every epoch by itself
    for row in numbers:
        if single.ending is None:
            single.take(row[None], 0.0)
    for size in (1, 7, 25, 200):
        pieces, at = TrialProgress(trial), 0
        while pieces.ending is None:
            pieces.take(numbers[at : at + size], 0.0)
            at += size
        assert told(pieces)[:3] == told(single)[:3]
        assert told(pieces)[3:] == pytest.approx(told(single)[3:], nan_ok=True)
