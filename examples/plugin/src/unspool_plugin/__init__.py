"""A term, an algorithm, a model and a data set for unspool."""

from unspool_plugin.algorithm import HeavyBall
from unspool_plugin.data import two_moons
from unspool_plugin.model import HuberNet
from unspool_plugin.term import HuberSmoothness

__all__ = ["HeavyBall", "HuberNet", "HuberSmoothness", "two_moons"]
