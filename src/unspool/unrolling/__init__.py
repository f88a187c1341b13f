"""A network out of an algorithm: unrolling, lowering, adjoints, tracing, reading back."""

from unspool.unrolling.adjoint import Adjoint, Checkpointed, FixedPoint, Implicit, Polynomial, Stored
from unspool.unrolling.hops import HopNetwork
from unspool.unrolling.read_back import Layer, ReadBack
from unspool.unrolling.read_hops import read_back_hops
from unspool.unrolling.start import From, Input, Zero
from unspool.unrolling.trace import Trace
from unspool.unrolling.unrolled import Unrolled, unroll

__all__ = [
    "Adjoint",
    "Checkpointed",
    "FixedPoint",
    "From",
    "HopNetwork",
    "Implicit",
    "Input",
    "Layer",
    "Polynomial",
    "ReadBack",
    "Stored",
    "Trace",
    "Unrolled",
    "Zero",
    "read_back_hops",
    "unroll",
]
