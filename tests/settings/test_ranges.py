"""Ranges: draws that are the same for ever, and never leave their ends."""

import math
from enum import Enum

import numpy as np
import pytest

from unspool.settings import Range, choice, integers, log_uniform, uniform
from unspool.settings.ranges import unit


class Speed(Enum):
    SLOW = 1
    FAST = 2


def test_unit_numbers_are_spread_evenly():
    numbers = np.array([unit(d, i, w) for d in range(3) for i in range(500) for w in ("lr", "depth")])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert np.abs(np.histogram(numbers, 10, (0, 1))[0] / 300 - 1).max() < 0.25
    assert unit(0, 0, "rate") == 0.365751564147221  # for ever


@pytest.mark.parametrize("top", [1 - 2**-53, 0.0])
def test_ranges_never_leave_their_ends(top):
    for low, high in ((0.1, 0.3), (1e-5, 7e-3), (0.7, 0.8)):
        assert low <= uniform(low, high).at(top) <= high
        assert low <= log_uniform(low, high).at(top) <= high
    assert integers(-1, 3).at(top) in (-1, 3)
    assert choice(["ab"]).at(top) == "ab"


SHARES = [k / 40 for k in range(40)]


@pytest.mark.parametrize("span", [uniform(-2, 3), log_uniform(1e-3, 1e2), integers(-4, 9)], ids=str)
def test_a_larger_share_is_a_larger_value(span):
    values = [span.at(share) for share in SHARES]
    assert values == sorted(values)
    assert values[0] == span.low
    assert len(set(values)) > 10


def test_odds_are_what_they_are_called():
    assert uniform(0, 4).at(0.25) == 1.0
    assert log_uniform(1e-4, 1).at(0.25) == pytest.approx(1e-3)
    assert log_uniform(1e-4, 1).at(0.75) == pytest.approx(1e-1)
    whole = [integers(1, 4).at(share) for share in SHARES]
    assert [whole.count(k) for k in (1, 2, 3, 4)] == [10, 10, 10, 10]
    words = [choice(["a", "b"]).at(share) for share in SHARES]
    assert (words.count("a"), words.count("b")) == (20, 20)


def test_values_have_the_type_of_their_range():
    assert type(uniform(0, 4).at(0.25)) is type(log_uniform(1, 4).at(0.0)) is float
    assert type(integers(np.int64(1), 4.0).at(0.5)) is int
    assert choice([Speed.SLOW, None, [1, 2]]).at(0.9) == [1, 2]


def test_ranges_are_values():
    for one, same, other in (
        (uniform(0, 1), uniform(0.0, 1.0), uniform(0, 2)),
        (log_uniform(1, 2), log_uniform(1, 2.0), uniform(1, 2)),
        (integers(1, 2), integers(1.0, 2), integers(1, 3)),
        (choice([1, 2]), choice((1, 2)), choice([2, 1])),
    ):
        assert one == same != other
        assert hash(one) == hash(same)
        assert isinstance(one, Range)


def test_ranges_are_said_in_words():
    assert str(uniform(0, 0.9)) == "0 to 0.9"
    assert str(log_uniform(1e-3, 0.1)) == "0.001 to 0.1 by factors"
    assert str(integers(2, 9)) == "2 to 9 in whole numbers"
    assert str(choice([1, "b"])) == "one of 1, b"


def test_unit_numbers_belong_to_three_names():
    assert unit(0, 0, "lr") == unit(0, 0, "lr")
    assert (
        len(
            {
                unit(0, 0, "lr"),
                unit(1, 0, "lr"),
                unit(0, 1, "lr"),
                unit(0, 0, "depth"),
                unit(0, 10, "lr"),
                unit(1, 10, "lr"),
            }
        )
        == 6
    )


def test_optuna_is_asked_for_what_a_range_says():
    optuna = pytest.importorskip("optuna")
    spans = {
        "even": uniform(0.2, 0.8), "factors": log_uniform(1e-4, 1e-1), "whole": integers(2, 5), "one": choice([0.0, 0.5]),
        "kind": choice(list(Speed)),
    }  # fmt: skip
    asked = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    found = []
    for _ in range(40):
        trial = asked.ask()
        found.append({name: span.suggest(trial, name) for name, span in spans.items()})
    odds = asked.trials[0].distributions
    assert (odds["even"].low, odds["even"].high, odds["even"].log) == (0.2, 0.8, False)
    assert (odds["factors"].low, odds["factors"].high, odds["factors"].log) == (1e-4, 1e-1, True)
    assert (odds["whole"].low, odds["whole"].high) == (2, 5)
    assert odds["kind"].choices == ("slow", "fast")  # storages take plain values only
    assert {one["kind"] for one in found} == set(Speed)
    assert {one["one"] for one in found} == {0.0, 0.5}
    assert all(isinstance(one["whole"], int) for one in found)


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        (lambda: uniform(2, 1), ValueError, "the lower one first"),
        (lambda: uniform(0, math.inf), ValueError, "two finite ends"),
        (lambda: uniform("a", 1), TypeError, "both ends are numbers"),
        (lambda: log_uniform(0, 1), ValueError, "a low end above 0; for 0 to 1 use uniform"),
        (lambda: integers(1.5, 3), ValueError, "whole numbers; for others use uniform"),
        (lambda: uniform(1, 1), ValueError, "the lower one first"),
        (lambda: uniform(math.nan, 1), ValueError, "two finite ends"),
        (lambda: uniform(False, 1), TypeError, "both ends are numbers"),
        (lambda: uniform(None, 1), TypeError, "both ends are numbers"),
        (lambda: log_uniform(-1, 1), ValueError, "a low end above 0"),
        (lambda: log_uniform(2, 1), ValueError, "the lower one first"),
        (lambda: integers(3, 3), ValueError, "the lower one first"),
        (lambda: integers(True, 3), TypeError, "both ends are numbers"),
        (lambda: choice(3), TypeError, "expected a list of values"),
        (lambda: choice({1, 2}), TypeError, "expected a list of values"),
        (lambda: choice([]), ValueError, "nothing to choose from"),
        (lambda: choice("ab"), TypeError, "expected a list of values"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(wrong, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        wrong()
    assert "\n" not in str(caught.value)
