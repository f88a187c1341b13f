"""The data of a study: what is learnt from, and under which name it stands in the file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unspool import datasets
from unspool.cli.source import Source
from unspool.cli.wish import BUILT_IN

#: The name under which presets know files of the user's own.
OWN = "own data"


@dataclass(frozen=True, eq=False)
class Material:
    """A dataset, and the name by which presets know it."""

    data: datasets.Dataset
    known_as: str


def material(source: Source, preset: tuple[str, ...]) -> Material:
    """Load what the user named.

    A named set stands in the file under its name, with its split where that is not its own: ``cora (random:0.6/0.2/0.2)``.

    Example:
        >>> found = material(Source(dataset="citeseer", split="per-class:20/30"), ())
        >>> found.data.name, found.known_as
        ('citeseer (per-class:20/30)', 'citeseer')
    """
    wrong = [name for name in preset if name != "default"]
    if source.own and wrong:
        raise ValueError(
            f"the preset {wrong[0]!r} belongs to a named set; your own files are trained with --preset default"
        )
    data = source.load(BUILT_IN)
    if data.targets is None and not data.classes:
        raise ValueError(f"{data.name} has no labels to learn from; give --labels FILE or --label-column NAME")
    if source.own:
        return Material(data, OWN)
    name = BUILT_IN if source.dataset is None else source.dataset.lower()
    called = name if source.split is None else f"{name} ({source.split})"
    return Material(replace(data, name=called), name)
