"""The few layers every model needs: a linear layer that takes sparse features, a perceptron, dropout by counting.

All of them stack: ``torch.func.stack_module_state`` of many, one ``vmap``, and every trial gives the numbers it gives alone.
"""

from unspool.nn.dropout import Dropout
from unspool.nn.edges import EdgeScore, EdgeTrust
from unspool.nn.linear import Bias, Linear, Start
from unspool.nn.perceptron import Perceptron
from unspool.ops import SparseFeatures

__all__ = ["Bias", "Dropout", "EdgeScore", "EdgeTrust", "Linear", "Perceptron", "SparseFeatures", "Start"]
