"""Which features travel over the graph."""

from __future__ import annotations

from enum import Enum


class Channels(Enum):
    """``CLASSES``: a perceptron to the classes, then propagation. ``HIDDEN``: propagation of hidden features, then a linear head."""

    CLASSES = "classes"
    HIDDEN = "hidden"
