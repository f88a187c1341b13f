"""Where trials and their results are kept: one SQLite file that many processes share."""

from unspool.study.store.file import Access, StoreProblem
from unspool.study.store.row import Row, Status
from unspool.study.store.store import Store
from unspool.study.store.tally import Glance, Tally

__all__ = ["Access", "Glance", "Row", "Status", "Store", "StoreProblem", "Tally"]
