"""What is in a class: what people wrote into it, and nothing that Python notes down when somebody looks at it."""

import copy
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unspool as us
from unspool import identity
from unspool.identity import contents
from unspool.train import Trial


@dataclass(frozen=True, eq=False)
class Bent(us.SmoothTerm):
    weight: Any
    delta: float = 0.5

    def value(self, h, given):
        return ((h - given.x).square() + self.delta**2).sqrt().sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        d = h - given.x
        return d / (d.square() + self.delta**2).sqrt() * given[self.weight]

    def lipschitz(self, given):
        return given[self.weight] / self.delta


@dataclass(frozen=True, eq=False)
class HeavyBall(us.Algorithm):
    step: Any = 0.2
    momentum: Any = 0.5

    def init(self, h):
        return (h, h)

    def update(self, state, problem):
        h, before = state
        return (h - problem.gradient(h) * self.step_size(problem) + (h - before) * problem[self.momentum], h)


class Heavier(HeavyBall):
    def init(self, h):
        return (h * 0.5, h)


class Tempered(us.models.Model):
    depth: int = us.setting(2, "number of steps", at_least=1)
    delta: float = us.setting(0.5, "where it bends", above=0)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(Bent(0.5, self.delta) + us.Smoothness(0.5), Heavier(), self.depth)


def mark(delta=0.5):
    return identity.code_of({"model": Tempered}, lambda: Tempered(4, 2, delta=delta))


def test_the_mark_of_a_model_does_not_depend_on_what_the_process_did_before():
    fresh = subprocess.run(
        [sys.executable, "-c", "from identity import test_contents as t; print(t.mark())"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"},
    ).stdout.strip()  # fmt: skip
    found = [mark()]
    mark(0.1)
    found.append(mark())
    for thing in (Bent(0.5), HeavyBall(), Heavier(), Tempered(4, 2)):
        copy.copy(thing), copy.deepcopy(thing), pickle.dumps(thing)
        assert type(thing).__annotations__ is not None
    found.append(mark())
    assert set(found) == {fresh}


def test_keys_are_the_same_in_any_order():
    first, again = ([Trial(Tempered, {"delta": d}).key("") for d in deltas] for deltas in ((0.1, 0.2), (0.2, 0.1)))
    assert first == again[::-1]


def test_what_python_notes_down_was_not_written():
    class Bare:
        pass

    before = contents.written(Bare)
    copy.copy(Bare())
    assert Bare.__annotations__ == {}
    assert {"__slotnames__", "__annotations__"} <= set(vars(Bare))
    assert contents.written(Bare) == before


def _warns(name):
    warnings.warn(str(name), stacklevel=1)
    return globals()[name]


def test_a_warning_that_was_given_is_no_part_of_the_code():
    before = identity.digest(_warns, "f")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        _warns("mark")
    assert "__warningregistry__" in globals()
    assert identity.digest(_warns, "f") == before
