"""check_algorithm and check_unrolled find rules that are not what they seem."""

import pytest
import torch

import unspool as us


class Anderson(us.Algorithm):
    """One step of memory, mixed by how far the last two residuals agree."""

    handles = (us.Kind.SMOOTH,)

    def inner(self, a, b):
        return (a * b).sum((-2, -1), keepdim=True)

    def init(self, h, problem):
        return (h, h, h)

    def update(self, state, problem):
        h, before, left = state
        now = h - problem.gradient(h) * 0.3
        here = now - h
        if problem.layer == 1:
            return (now, now, here)
        change = here - left
        share = self.inner(here, change) / self.inner(change, change).clamp_min(1e-30)
        return (now - share * (now - before), now, here)


class CrossTalk(Anderson):
    def inner(self, a, b):
        return (a * b).sum()


@pytest.mark.parametrize("adjoint", [us.Stored(), us.Checkpointed(every=2)], ids=str)
def test_signals_of_a_stack_that_know_of_each_other_are_found(adjoint):
    objective = us.Fidelity(0.3) + us.Smoothness(0.7)
    us.testing.check_unrolled(us.unroll(objective, Anderson(), 6, adjoint=adjoint))
    with pytest.raises(us.testing.LawBroken, match="stack of two"):
        us.testing.check_unrolled(us.unroll(objective, CrossTalk(), 6, adjoint=adjoint))


class Dropped(us.GradientDescent):
    """Gradient steps on a random half of the entries, twice as long: the right step on average."""

    random = True

    def update(self, state, problem):
        (h,) = state
        kept = 2 * (torch.rand(h.shape) < 0.5).to(h)
        return (h - kept * problem.gradient(h) * (0.1 * self.step_size(problem)),)


class Undeclared(Dropped):
    random = False


class Biased(Dropped):
    def update(self, state, problem):
        (h,) = super().update(state, problem)
        return (h + 0.1 * torch.rand(h.shape).to(h),)


class OwnGenerator(Dropped):
    """Draws from a generator that no seed reaches."""

    def update(self, state, problem):
        (h,) = state
        kept = 2 * (torch.rand(h.shape, generator=GENERATOR) < 0.5).to(h)
        return (h - kept * problem.gradient(h) * (0.1 * self.step_size(problem)),)


GENERATOR = torch.Generator().manual_seed(0)


def test_a_rule_that_says_it_is_random_is_judged_by_its_seed_and_its_mean():
    before = torch.random.get_rng_state()
    us.testing.check_algorithm(Dropped())
    assert torch.equal(torch.random.get_rng_state(), before)
    for wrong, words in (
        (Undeclared(), "Checkpointed and Stored disagree"),
        (Biased(), "the mean iterate"),
        (OwnGenerator(), "same seed"),
    ):
        with pytest.raises(us.testing.LawBroken, match=words):
            us.testing.check_algorithm(wrong)


def test_its_networks_are_compared_under_one_seed_and_never_lowered():
    alpha = us.Learnable(0.3, within=(0, 1), name="α")
    objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
    for rule in (Dropped(), us.Reweighted(Dropped()), us.Anderson(Dropped())):
        net = us.unroll(objective, rule, 6)
        assert isinstance(net.adjoint, us.Stored)
        assert "draws random numbers" in net.why_not_linear
        us.testing.check_unrolled(net)
    with pytest.raises(us.IncompatibleError, match="draws random numbers"):
        us.unroll(objective, Dropped(), 6, adjoint=us.Polynomial())
    with pytest.raises(us.testing.LawBroken, match="disagree"):
        us.testing.check_unrolled(us.unroll(objective, Undeclared(), 6))
