import pytest
import torch

from unspool import theory
from unspool.theory import Evidence, Verdict

pytestmark = pytest.mark.long


@pytest.mark.parametrize("claim", theory.CLAIMS, ids=lambda c: f"{c.name}: {c.statement}"[:60])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_claim_ends_as_documented(claim, seed):
    certificate = claim.certify(seed, trials=2)
    assert certificate.as_stated, str(certificate)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence(error=1e-12), Verdict.HOLDS),
        (Evidence(error=1e-3), Verdict.FAILS),
        (Evidence(error=float("nan")), Verdict.FAILS),
        (Evidence(error=1e-12, gap=0.5, condition="x"), Verdict.HOLDS_WHEN),
        (Evidence(error=1e-3, gap=0.5, condition="x"), Verdict.FAILS),
        (Evidence(error=1e-12, gap=0.0, condition="x"), Verdict.HOLDS),  # the condition is not needed after all
        (Evidence(gap=0.5), Verdict.FAILS),
        (Evidence(gap=1e-12), Verdict.HOLDS),
    ],
)
def test_certificates_can_fail(evidence, verdict):
    claim = theory.Claim("here", "a claim", Verdict.HOLDS, lambda random: evidence)
    certificate = claim.certify()
    assert certificate.verdict is verdict
    assert certificate.as_stated is (verdict is Verdict.HOLDS)


def test_the_same_seed_gives_the_same_certificate():
    first, again = (theory.CLAIMS[3].certify(seed=5) for _ in range(2))
    assert (first.error, first.gap) == (again.error, again.gap)


def test_the_worst_trial_counts():
    errors = iter([1e-12, 1.0, 1e-12])
    claim = theory.Claim("here", "a claim", Verdict.HOLDS, lambda random: Evidence(error=next(errors)))
    assert claim.certify(trials=3).verdict is Verdict.FAILS


def test_competitors_beat_a_wrong_activation():
    class Wrong(type(theory.POTENTIALS[4])):
        def activation(self, v):
            return 0.9 * torch.tanh(v)

    v = torch.linspace(-3, 3, 200, dtype=torch.float64)
    assert theory.advantage(Wrong(), v, torch.Generator().manual_seed(0)) < -1e-4
