"""Values that fit a kind, up to the ends of its range, and values that do not, from just beyond them."""

import dataclasses
import math
from enum import Enum

import numpy as np
import torch

import unspool as us
from unspool.settings.kinds import Anything, EnumMember, Flag, Instance, Listed, Nullable, Real, Text, Whole
from unspool.train.config import Decay, OptimiserKind
from unspool.train.upper import Consistency, Upper
from unspool.train.upper.language import UpperKind


class Side(Enum):
    """Whoever writes an enum of one's own need not write its names in capitals."""

    left = 1
    RIGHT_HAND = "right"


@dataclasses.dataclass(frozen=True)
class Box:
    width: float = 1.0
    depth: int = 2


@dataclasses.dataclass(frozen=True)
class Point:
    """Without fields."""


#: Kinds by hand: what no named model has is here.
KINDS = [
    Whole(), Whole(low=1), Whole(high=5), Whole(2, 7), Real(), Real(low=0.0), Real(low=0.0, low_open=True), Real(high=1.0),
    Real(high=1.0, high_open=True), Real(0.0, 1.0), Real(0.0, 1.0, True, True), Flag(), EnumMember(Side), Text(), Listed(Whole(0)),
    Listed(Real(0.0, 1.0)), Listed(EnumMember(Side)), Instance((Box, Point)), Nullable(Whole(1)), Nullable(Listed(Real())), Anything(),
    Decay(), OptimiserKind(), UpperKind(),
]  # fmt: skip


def settings():
    """Every setting that this package declares, as (owner and name, setting)."""
    kinds = [*us.models.MODELS, us.train.TrainConfig]
    return [(f"{kind.__name__}.{name}", one) for kind in kinds for name, one in kind.schema.items()]


def fitting(kind):
    """Values that fit, those at the ends first."""
    if isinstance(kind, Whole):
        low = kind.low if kind.low is not None else -7 if kind.high is None else kind.high - 7
        return [low, kind.high if kind.high is not None else low + 1000, low + 1]
    if isinstance(kind, Real):
        return _numbers(kind)
    if isinstance(kind, Flag):
        return [True, False]
    if isinstance(kind, EnumMember):
        return list(kind.enum)
    if isinstance(kind, Text):
        return ["word", "two words", "1", ""]
    if isinstance(kind, Listed):
        each = fitting(kind.each)
        return [[one] for one in each] + [each]
    if isinstance(kind, Instance):
        return [made for one in kind.types for made in _objects(one)]
    if isinstance(kind, Nullable):
        return [None, *fitting(kind.inner)]
    if isinstance(kind, Decay):
        return [0.0, 5e-4, {"first": 5e-4}, {"first": 0.1, "convolution": 1e-3}]
    if isinstance(kind, OptimiserKind):
        return [torch.optim.Adam, torch.optim.SGD, torch.optim.LBFGS]
    if isinstance(kind, UpperKind):
        return [Upper.parse("ce"), Upper.parse("ce + 2*consistency(views=4, temperature=0.5) under drop_nodes(0.5)")]
    assert isinstance(kind, Anything)
    return [None, True, 3, 0.5, "word", [1, "a"]]


def _numbers(kind):
    low = -1e300 if kind.low is None else math.nextafter(kind.low, math.inf) if kind.low_open else kind.low
    high = 1e300 if kind.high is None else math.nextafter(kind.high, -math.inf) if kind.high_open else kind.high
    return [float(low), float(high), low / 2 + high / 2, *([0.1, 1e-300] if low <= 1e-300 and high > 0.1 else [])]


def _objects(kind):
    changed = {f.name: f.default + 5 for f in dataclasses.fields(kind)}
    return [kind(), *([kind(**changed)] if changed else [])]


def foreign(kind):
    """Values that do not fit, those just beyond the ends first."""
    if isinstance(kind, Whole):
        ends = [*([] if kind.low is None else [kind.low - 1]), *([] if kind.high is None else [kind.high + 1])]
        inside = fitting(kind)[0]
        other = [inside + 0.5, float(inside), str(inside), None, [inside], torch.tensor([inside]), np.array([inside])]
        return [*ends, *other, True, np.True_, torch.tensor(True), math.nan, 1j]
    if isinstance(kind, Real):
        return _outside(kind)
    if isinstance(kind, Flag):
        return [0, 1, "true", None, np.int64(1), torch.tensor(1)]
    if isinstance(kind, EnumMember):
        first = next(iter(kind.enum))
        return [first.name, first.name.lower(), first.value, None, us.train.TaskKind.LINKS]
    if isinstance(kind, Text):
        return [3, None, b"word", ["word"], True]
    if isinstance(kind, Listed):
        bad, good = foreign(kind.each)[0], fitting(kind.each)[0]
        return ["123", 3.0, {"a": good}, {good} if not isinstance(good, list) else {1}, [bad], [good, bad], None]
    if isinstance(kind, Instance):
        first = kind.types[0]
        return [first, first.__name__, {"type": first.__name__}, type("Mine", (first,), {})(), None]
    if isinstance(kind, Nullable):
        return [one for one in foreign(kind.inner) if one is not None]
    if isinstance(kind, Decay):
        return [-1e-300, math.nan, {"first": -1.0}, {"first": "much"}, "5e-4", True, None, [0.1]]
    if isinstance(kind, OptimiserKind):
        return ["adem", None, 3, torch.nn.Linear(1, 1).weight]
    if isinstance(kind, UpperKind):
        return [3, None, b"ce", ["ce"], Consistency]
    return []


def _outside(kind):
    low = [] if kind.low is None else [kind.low if kind.low_open else math.nextafter(kind.low, -math.inf)]
    high = [] if kind.high is None else [kind.high if kind.high_open else math.nextafter(kind.high, math.inf)]
    inside = fitting(kind)[0]
    odd = [math.nan, math.inf, -math.inf, 10**400, True, np.True_, torch.tensor(True), 1j, str(inside), None]
    return [*low, *high, *odd, [inside], torch.tensor([inside]), np.array([inside])]
