"""How trials are trained: sorted into packs, followed epoch by epoch, finished, refilled."""

from unspool.study.engine.engine import train_trials
from unspool.study.engine.ledger import Ledger, Notebook
from unspool.study.engine.progress import Progress

__all__ = ["Ledger", "Notebook", "Progress", "train_trials"]
