"""Ways of training trials together: stacked by ``torch.func``, with kernels of their own, or alone."""

from unspool.study.batch.trial_batch import AsyncBatch, TrialBatch, check_ahead

__all__ = ["AsyncBatch", "TrialBatch", "check_ahead"]
