"""Why a node was predicted as it was: hops, neighbours, features, and what the denoiser changed.

For a network that is linear in the encoded features the answer is exact: the score splits into one number per hop and
node. For the others it is the first-order split, with what it leaves unexplained written beside it.
"""

from unspool.explain.change import Change, Features, TermShare
from unspool.explain.drawing import plot
from unspool.explain.edges import EdgeWeights, edge_weights
from unspool.explain.explaining import explain
from unspool.explain.explanation import Explanation, Parts
from unspool.explain.node import find_node, find_nodes
from unspool.explain.pair import PairExplanation, Side, explain_pair
from unspool.explain.pair_drawing import plot_pair
from unspool.explain.score import Against, Outputs, Score
from unspool.explain.splitting import Method, Split

__all__ = [
    "Against",
    "Change",
    "EdgeWeights",
    "Explanation",
    "Features",
    "Method",
    "Outputs",
    "PairExplanation",
    "Parts",
    "Score",
    "Side",
    "Split",
    "TermShare",
    "edge_weights",
    "explain",
    "explain_pair",
    "find_node",
    "find_nodes",
    "plot",
    "plot_pair",
]
