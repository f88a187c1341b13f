"""Data as a trained model was shown them, by what its card says: transforms, columns and classes by name, and the normalisation of A."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unspool.datasets.features import Features, in_memory, row_normalise, sparse
from unspool.errors import IncompatibleError
from unspool.graph import Normalisation
from unspool.ops import SparseFeatures

#: What may have been done to the data before training, by the names that cards use.
TRANSFORMS = ("row_normalised", "largest_component")


@dataclass(frozen=True, eq=False)
class Named:
    """Features as they came, before rows were scaled, with the names of their columns and of the classes where they have any.

    Example:
        >>> data = Named(torch.tensor([[3.0, 1.0], [0.0, 0.0]]), ("b", "a"), ("no", "yes"))
        >>> data.as_trained({"features": ["a", "b"], "transforms": ["row_normalised"]}, "out/seed0")
        tensor([[0.2500, 0.7500],
                [0.0000, 0.0000]])
    """

    features: Any
    columns: Sequence[str] | None = None
    classes: Sequence[str] = ()

    def as_trained(self, facts: Mapping[str, Any], who: str) -> Any:
        """Features as a model saw those of its training.

        Args:
            facts: what the card of the model says of the data.
            who: the model, in a sentence.
        """
        wanted, here = facts.get("features"), self.columns
        found = self.features
        if wanted and here is not None and list(wanted) != list(here):
            found = _columns(found, _places(wanted, here, f"{who} was trained on the feature"))
        return row_normalise(found) if "row_normalised" in transforms_of(facts) else found

    def class_places(self, facts: Mapping[str, Any], who: str) -> list[int] | None:
        """Where each class is among those of a model; None where they have the same places, or no names to go by.

        Example:
            >>> Named(None, None, ("no", "yes")).class_places({"classes": ["yes", "no"]}, "out/seed0")
            [1, 0]
        """
        there, here = list(facts.get("classes") or ()), list(self.classes)
        same = sorted(there) == sorted(here)
        if there == here or (not same and (_counted(there) or _counted(here))):
            return None
        if not same:
            raise IncompatibleError(
                f"{who} knows the classes {_listed(there)}, and here they are {_listed(here)}; take a model of the same classes"
            )
        return _places(here, there, f"{who} knows the class")


def transforms_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """What was done to the data before training; refused where this version does not know it.

    Example:
        >>> transforms_of({"transforms": ["row_normalised"]}), transforms_of({})
        (('row_normalised',), ())
    """
    named = facts.get("transforms") or []
    for step in named:
        if step not in TRANSFORMS:
            raise IncompatibleError(
                f"the model was trained on data after {step!r}, which this version does not know; update unspool, or apply it "
                "yourself and give --edges and --features"
            )
    return tuple(named)


def normalisation_of(facts: Mapping[str, Any]) -> str | None:
    """How A was normalised in training; None where that is not known.

    Example:
        >>> normalisation_of({"source": {"dataset": "cora"}}), normalisation_of({"normalisation": "random_walk"})
        ('symmetric', 'random_walk')
    """
    trained, source = facts.get("normalisation"), facts.get("source")
    if trained is None and source and "hops" not in source:  # cards of before do not say it of hops
        return Normalisation.SYMMETRIC.value  # graphs of data sets are, and hops as somebody chose
    return trained


def _places(wanted: Sequence[str], there: Sequence[str], who: str) -> list[int]:
    held, place = Counter(there), {name: i for i, name in enumerate(there)}
    for name in wanted:
        if held[name] != 1:
            how = "is missing" if held[name] == 0 else "occurs more than once"
            raise IncompatibleError(f"{who} {name}, which {how} here; give it its name of the training")
    return [place[name] for name in wanted]


def _columns(features: Features, places: Sequence[int]) -> Features:
    held = in_memory(features, "put into another order", "write hops of the columns that are wanted")
    if isinstance(held, SparseFeatures):
        return sparse(held.operator.to_scipy()[:, list(places)]).to(held.device)
    return held[:, torch.as_tensor(places, device=held.device)]


def _counted(names: Sequence[str]) -> bool:
    """Whether classes are only numbered, or not known at all."""
    return list(names) == [str(i) for i in range(len(names))]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:6])) + (", ..." if len(names) > 6 else "")
