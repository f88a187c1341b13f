"""Which trials there are: grids, random draws, the paper's own grid."""

from unspool.study.search.ranges import choice, integers, log_uniform, uniform
from unspool.study.search.space import Space, grid, paper_grid, random

__all__ = ["Space", "choice", "grid", "integers", "log_uniform", "paper_grid", "random", "uniform"]
