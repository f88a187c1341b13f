"""Where signals live: graphs, their normalisation, their frequencies, and small ones to try things on."""

from unspool.graph.edges import EdgeDirectionWarning
from unspool.graph.generators import complete, grid, path, ring, sensor, star
from unspool.graph.graph import Graph
from unspool.graph.incidence import edge_list
from unspool.graph.normalise import Normalisation
from unspool.graph.part import neighbourhood, part_of, without
from unspool.graph.permute import permuted
from unspool.graph.spectrum import Density, frequencies, frequencies_and_modes, smoother_of, spectral_density
from unspool.graph.validation import check_input, check_output

__all__ = [
    "Density",
    "EdgeDirectionWarning",
    "Graph",
    "Normalisation",
    "check_input",
    "check_output",
    "complete",
    "edge_list",
    "frequencies",
    "frequencies_and_modes",
    "grid",
    "neighbourhood",
    "part_of",
    "path",
    "permuted",
    "ring",
    "sensor",
    "smoother_of",
    "spectral_density",
    "star",
    "without",
]
