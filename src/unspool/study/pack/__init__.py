"""Ways of training trials together: stacked by ``torch.func``, with kernels of their own, or alone."""

from unspool.study.pack.pack import Ahead, Member, Pack, check_ahead

__all__ = ["Ahead", "Member", "Pack", "check_ahead"]
