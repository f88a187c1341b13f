"""Where signals live: graphs, their normalisation, their frequencies, and small ones to try things on."""

from unspool.graph.edges import EdgeDirectionWarning
from unspool.graph.enlarge import NewEdges, around_new, enlarged
from unspool.graph.generators import complete, grid, path, ring, sensor, star
from unspool.graph.graph import Graph
from unspool.graph.incidence import edge_list
from unspool.graph.normalise import Normalisation
from unspool.graph.part import neighbourhood, part_of, without
from unspool.graph.partition import contiguous, metis
from unspool.graph.permute import permuted
from unspool.graph.spectrum import Density, frequencies, frequencies_and_modes, smoother_of, spectral_density
from unspool.graph.spreading import Columns, Rows, SpreadGraph, spread
from unspool.graph.subgraph import Degrees
from unspool.graph.validation import check_input, check_output

__all__ = [
    "Columns",
    "Degrees",
    "Density",
    "EdgeDirectionWarning",
    "Graph",
    "NewEdges",
    "Normalisation",
    "Rows",
    "SpreadGraph",
    "around_new",
    "check_input",
    "check_output",
    "complete",
    "contiguous",
    "edge_list",
    "enlarged",
    "frequencies",
    "frequencies_and_modes",
    "grid",
    "metis",
    "neighbourhood",
    "part_of",
    "path",
    "permuted",
    "ring",
    "sensor",
    "smoother_of",
    "spectral_density",
    "spread",
    "star",
    "without",
]
