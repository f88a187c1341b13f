"""A trial ends where its plan says, whatever the pieces in which its epochs come in."""

import numpy as np
import pytest

import unspool as us
from unspool.study.engine.course import Course
from unspool.study.trial import Trial
from unspool.train import Plan, Select, Stop


def told(course):
    result = course.result()
    return (
        result.epoch,
        result.epochs,
        result.train_loss,
        result.valid_loss,
        result.valid_score,
        result.test_score,
        result.reason,
    )


@pytest.mark.parametrize("select", Select, ids=lambda s: s.name)
@pytest.mark.parametrize("stop", Stop, ids=lambda s: s.name)
@pytest.mark.parametrize("seed", range(12))
def test_pieces_of_any_size_end_as_single_epochs_do(select, stop, seed):
    rng = np.random.default_rng(seed)
    plan = Plan(
        epochs=int(rng.integers(5, 120)),
        select=select,
        stop=stop,
        patience=int(rng.integers(3, 40)),
        earliest=int(rng.integers(0, 60)),
    )
    trial = Trial(us.models.MLP, plan=plan)
    # Scores in steps, so that there are ties; losses that fall and rise again.
    numbers = rng.random((plan.epochs + 10, 4))
    numbers[:, 1] += np.abs(np.linspace(-1, rng.random(), len(numbers)))
    numbers[:, 2] = np.round(numbers[:, 2], 1)
    if seed % 4 == 0:
        numbers[rng.integers(0, len(numbers)), rng.integers(0, 2)] = np.nan
    single = Course(trial)
    single._goes_on = lambda many: False  # every epoch by itself
    for row in numbers:
        if single.reason is None:
            single.take(row[None], 0.0)
    for size in (1, 7, 25, 200):
        pieces, at = Course(trial), 0
        while pieces.reason is None:
            pieces.take(numbers[at : at + size], 0.0)
            at += size
        assert told(pieces) == pytest.approx(told(single), nan_ok=True)
