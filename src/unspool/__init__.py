from unspool import graph
from unspool.graph import Graph, Normalisation
