"""What the paper prints, and what it says about convergence: the certificates fail once their claims are broken."""

import pytest

import unspool as us
from unspool.theory import Verdict, printed, theorems


def claim(room, name):
    (found,) = (c for c in room.CLAIMS if c.test.__name__ == name)
    return found


def test_equal_widths_are_what_erratum_16_is_about(monkeypatch):
    assert claim(printed, "_equal_width").certify(trials=1).gap == 14
    monkeypatch.setattr(printed, "PRINTED", {"toy": ((10, 20, 64, 64), "")})
    assert not claim(printed, "_equal_width").certify(trials=1).as_stated


def test_another_step_is_not_gcn(monkeypatch):
    monkeypatch.setattr(printed, "ProximalGradient", lambda step: us.ProximalGradient(step=0.9 * step))
    assert claim(printed, "_equal_width").certify(trials=1).verdict is Verdict.FAILS


def test_the_printed_step_is_taken_as_printed():
    """No absolute value: where 1 − α is negative there is no step, so the certificate stays where there is one."""
    for seed in range(5):
        certificate = claim(printed, "_airgnn_step").certify(seed, trials=3)
        assert certificate.as_stated
        assert certificate.gap > 1e-3


def test_slower_steps_break_the_rate_and_small_ones_the_gap(monkeypatch):
    convergence = claim(theorems, "_converges")
    monkeypatch.setattr(theorems, "ProximalGradient", lambda step: us.ProximalGradient(step=0.1 * step))
    assert convergence.certify(trials=2).verdict is Verdict.FAILS
    monkeypatch.undo()
    monkeypatch.setattr(theorems, "GradientDescent", lambda step: us.GradientDescent(step=0.5 * step))
    assert not convergence.certify(trials=1).as_stated


@pytest.mark.parametrize("seed", range(3))
def test_convergence_is_certified(seed):
    assert claim(theorems, "_converges").certify(seed).as_stated
