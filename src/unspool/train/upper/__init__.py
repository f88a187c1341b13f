"""The upper level of the bilevel problem (3): the loss of training as a sum of terms over views of perturbed data.

>>> from unspool.train import CrossEntropy
>>> from unspool.train.upper import Consistency, DropNodes
>>> print((CrossEntropy() + 2.0 * Consistency(views=4, temperature=0.5)).under(DropNodes(0.5)))
CE(Y, pʳ)  +  2 ‖pʳ − sharpen(p̄, 0.5)‖²   (mean over nodes and 4 views r, each under DropNodes(0.5))
"""

from unspool.train.upper.agreement import Consistency, Neighbours
from unspool.train.upper.confidence import Entropy, PseudoLabels
from unspool.train.upper.labels import ClassMass, Labels
from unspool.train.upper.own import OwnTerm
from unspool.train.upper.perturbation import (
    DropEdges,
    DropEntries,
    DropNodes,
    Perturbation,
    perturbation_key,
    view_key,
)
from unspool.train.upper.seen import Seen, as_target, sharpen
from unspool.train.upper.sum import Part, Upper, as_upper
from unspool.train.upper.teacher import Distil
from unspool.train.upper.term import Term, WarmUp, Weight

__all__ = [
    "ClassMass", "Consistency", "Distil", "DropEdges", "DropEntries", "DropNodes", "Entropy", "Labels", "Neighbours", "OwnTerm", "Part",
    "Perturbation", "PseudoLabels", "Seen", "Term", "Upper", "WarmUp", "Weight", "as_target", "as_upper",
    "perturbation_key", "sharpen", "view_key",
]  # fmt: skip
