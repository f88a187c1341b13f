"""How trials are trained: sorted into batches, followed epoch by epoch, finished, refilled."""

from unspool.study.engine.engine import train_trials
from unspool.study.engine.progress import Progress
from unspool.study.engine.tracker import MemoryTracker, TrialTracker

__all__ = ["MemoryTracker", "Progress", "TrialTracker", "train_trials"]
