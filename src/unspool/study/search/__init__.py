"""Which trials there are: grids and random draws."""

from unspool.settings import choice, integers, log_uniform, uniform
from unspool.study.search.space import Space, declared_search, grid, random

__all__ = ["Space", "choice", "declared_search", "grid", "integers", "log_uniform", "random", "uniform"]
