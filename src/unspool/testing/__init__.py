"""Public laws: run them on your own terms, algorithms, networks and models."""

from unspool.testing.algorithms import check_algorithm, check_unrolled, example_network
from unspool.testing.composite import check_operator
from unspool.testing.laws import LawBroken, small_graph
from unspool.testing.models import check_model
from unspool.testing.terms import check_term

__all__ = [
    "LawBroken",
    "check_algorithm",
    "check_model",
    "check_operator",
    "check_term",
    "check_unrolled",
    "example_network",
    "small_graph",
]
