"""check_algorithm and check_unrolled find rules that are not what they seem."""

import pytest

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
