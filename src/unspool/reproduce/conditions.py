"""What an experiment varies, and by how much: damage to data, lengths of outliers, numbers of layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Factor(Enum):
    """What is varied; the value is its name in tables."""

    NONE = "clean data"
    FEATURES = "features"
    NOISE = "noise"
    EDGES = "edges"
    ATTACK = "attacked"
    OUTLIERS = "outliers"
    ENCODED_ROWS = "encoded rows"
    DEPTH = "depth"
    GCN_DEPTH = "GCN's problem"
    GCNII_DEPTH = "GCNII's problem"


class Phase(Enum):
    """When damage is there.

    ``ALWAYS``: in training and test alike. ``AFTER_TRAINING``: networks have learnt from clean data. ``MANY_STEPS``: the same, and the
    trained weights take many more steps at test time.
    """

    ALWAYS = "in training too"
    AFTER_TRAINING = "after training"
    MANY_STEPS = "after training, with many steps"


class Nodes(Enum):
    """Which nodes a number is about."""

    ALL = "all"
    DAMAGED = "damaged"
    CLEAN = "clean"


@dataclass(frozen=True)
class Condition:
    """What was varied, and how much of it there was.

    Attributes:
        factor: what.
        amount: how much: per cent of the nodes or edges, a length, a number of layers; 0 is nothing.
        phase: when it was there.

    Example:
        >>> worse = Condition(Factor.EDGES, 30.0, Phase.AFTER_TRAINING)
        >>> worse.kind, str(worse), worse.reference.amount
        ('edges after training', 'edges 30 %', 0.0)
        >>> Condition(Factor.EDGES, 30.0).reference == Condition()
        True
    """

    factor: Factor = Factor.NONE
    amount: float = 0.0
    phase: Phase = Phase.ALWAYS

    @property
    def kind(self) -> str:
        """What was varied and when, without how much."""
        return self.factor.value if self.phase is Phase.ALWAYS else f"{self.factor.value} {self.phase.value}"

    @property
    def reference(self) -> Condition:
        """What it is compared with: clean data, and the same networks on them where damage comes after training."""
        return CLEAN if self.phase is Phase.ALWAYS else replace(self, amount=0.0)

    def __str__(self) -> str:
        amount = f"{self.amount:g}"
        if self.factor in (Factor.GCN_DEPTH, Factor.GCNII_DEPTH):
            return f"{self.factor.value}, {amount} layers"
        if self.factor is Factor.OUTLIERS:
            return f"outliers of length {amount}" if self.amount else "no outliers"
        if self.factor is Factor.ENCODED_ROWS:
            return f"length {amount}"
        if self.factor in (Factor.NONE, Factor.DEPTH):
            return self.factor.value if self.factor is Factor.NONE else f"{amount} layers"
        return f"{self.factor.value} {amount} %"


#: Nothing was varied.
CLEAN = Condition()
