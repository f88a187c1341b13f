"""Public laws: run them on your own terms, algorithms and networks."""

from unspool.testing.algorithms import check_algorithm, check_unrolled, example_network
from unspool.testing.laws import LawBroken, small_graph
from unspool.testing.terms import check_term

__all__ = ["LawBroken", "check_algorithm", "check_term", "check_unrolled", "example_network", "small_graph"]
