"""A network out of an algorithm: unrolling, lowering, adjoints, tracing, reading back."""

from unspool.unroll.adjoint import Adjoint, Checkpointed, Implicit, Polynomial, Stored
from unspool.unroll.hops import HopNetwork
from unspool.unroll.read_back import Layer, ReadBack
from unspool.unroll.read_hops import read_back_hops
from unspool.unroll.start import From, Input, Zero
from unspool.unroll.trace import Trace
from unspool.unroll.unrolled import Unrolled, unroll

__all__ = [
    "Adjoint",
    "Checkpointed",
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
