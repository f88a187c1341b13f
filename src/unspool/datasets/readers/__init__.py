"""One file per raw layout in the field; every reader takes a folder and returns the set's :class:`Contents`."""

from unspool.datasets.readers.attacked import read_attacked
from unspool.datasets.readers.geom_gcn import read_actor, read_webkb
from unspool.datasets.readers.gnn_benchmark import read_gnn_benchmark
from unspool.datasets.readers.ogb import read_arxiv, read_arxiv_graph
from unspool.datasets.readers.planetoid import read_planetoid
from unspool.datasets.readers.platonov import read_platonov

__all__ = [
    "read_actor",
    "read_arxiv",
    "read_arxiv_graph",
    "read_attacked",
    "read_gnn_benchmark",
    "read_planetoid",
    "read_platonov",
    "read_webkb",
]
