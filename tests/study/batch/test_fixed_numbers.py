"""Trials of nonlinear models that differ in fixed numbers share a stack, and get the numbers that they get alone."""

import numpy as np
import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.models.gcnii import IdentityMapping
from unspool.models.twirls import Robust
from unspool.study.batch.fixed_numbers import with_fixed_numbers
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine.batching import open_batch, signature
from unspool.train import PreparedTrial, Trial

pytestmark = pytest.mark.long

DATA = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
TASK = train.Task.of(DATA)
CASES = {
    "ElasticGNN": (us.models.ElasticGNN, {"lambda1": 0.3, "lambda2": 0.5}, {"lambda1": 3.0, "lambda2": 2.0}),
    "ElasticGNN, off": (us.models.ElasticGNN, {"lambda1": 0.0}, {"lambda1": 2.0}),
    "ElasticGNN, entries": (us.models.ElasticGNN, {"rows": False, "lambda1": 0.1}, {"rows": False, "lambda1": 0.4}),
    "TWIRLS": (us.models.TWIRLS, {"threshold": 0.5}, {"threshold": 0.1, "smoothness": 2.0, "step": 0.5}),
    "PGNN": (us.models.PGNN, {"mu": 0.5}, {"mu": 0.1, "smoothing": 0.2}),
    "AirGNN": (us.models.AirGNN, {"residual": 0.3}, {"residual": 0.6}),
    "GCNII": (
        us.models.GCNII,
        *({"depth": 4, "hidden": 8, "teleport": a, "strength": s} for a, s in ((0.2, 0.5), (0.6, 1.2))),
    ),
    "GCNII, constant": (
        us.models.GCNII,
        *({"depth": 3, "hidden": 8, "identity": IdentityMapping.CONSTANT, "strength": s} for s in (0.3, 0.6)),
    ),
    "SignedGNN": (us.models.SignedGNN, {"alpha": 0.3}, {"alpha": 0.6, "step": 0.2}),
}
CASES |= {
    f"TWIRLS, {kind.name}": (us.models.TWIRLS, *({"penalty": kind, "threshold": t} for t in (0.5, 0.2)))
    for kind in (Robust.NORM, Robust.CAPPED)
}


def prepared(model, **settings):
    trial = Trial(model, settings)
    return PreparedTrial(trial, trial.build(DATA.features.shape[1], 2), TASK)


@pytest.mark.parametrize("name", CASES)
def test_different_numbers_share_a_stack_and_come_out_as_alone(name):
    model, *settings = CASES[name]
    members = [prepared(model, **one) for one in settings]
    first, second = (signature(member) for member in members)
    assert first is not None
    assert first == second
    batch = open_batch(members)
    assert isinstance(batch, StackedBatch)
    packed = batch.run_epochs(10)
    alone = np.concatenate([SingleTrial([prepared(model, **one)]).run_epochs(10) for one in settings], axis=1)
    assert np.allclose(packed, alone, rtol=0, atol=2e-6)
    assert np.abs(alone[:, 0] - alone[:, 1]).max() > 1e-4  # the numbers do something
    batch.load([0], [prepared(model, **settings[1])])  # another trial in the place of the first
    again = batch.run_epochs(10)
    assert np.allclose(again[:, 0], alone[:, 1], rtol=0, atol=2e-6)


def test_what_decides_which_formula_is_used_still_separates():
    def apart(model, one, other):
        return signature(prepared(model, **one)) != signature(prepared(model, **other))

    assert apart(us.models.PGNN, {"p": 1.5}, {"p": 2.5})
    assert apart(us.models.ElasticGNN, {"rows": True}, {"rows": False})
    assert apart(us.models.ElasticGNN, {"depth": 2}, {"depth": 3})
    assert apart(us.models.TWIRLS, {"penalty": Robust.LOG}, {"penalty": Robust.CAPPED})


def test_what_cancels_whatever_the_numbers_are_is_left_out():
    step = vars(with_fixed_numbers(us.models.AirGNN(4, 2, residual=0.3)).propagation)["_fused"]
    assert step.h.zero  # a layer is A H and a pull, as it is alone
    assert step.sh.one
    assert step.x.zero


class Steps(us.models.Model):
    """Smoothing with a step of its own, and a pull towards the input."""

    step: float = us.setting(0.5, "η")

    def build(self):
        """Make the parts."""
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        objective = us.Smoothness(0.5) + us.RowSparseFidelity(0.1)
        self.propagation = us.unroll(objective, us.ProximalGradient(step=self.step), 3)


def test_what_cancels_with_some_numbers_alone_separates():
    kept, half, other = (signature(prepared(Steps, step=step)) for step in (1.0, 0.5, 0.25))
    assert kept != half  # H is gone from the step of 1.0
    assert half == other is not None


def test_the_model_itself_is_left_as_it_was():
    model = us.models.TWIRLS(4, 2, threshold=0.3)
    before = dict(model.named_parameters())
    made = with_fixed_numbers(model)
    assert dict(model.named_parameters()).keys() == before.keys()
    assert made.p_pre is model.p_pre
    assert str(model.objective) == str(us.models.TWIRLS(4, 2, threshold=0.3).objective)
    x, graph = torch.randn(5, 4), us.graph.ring(5)
    assert torch.allclose(made.eval()(x, graph), model.eval()(x, graph), atol=1e-6)
