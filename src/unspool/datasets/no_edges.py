"""What stands in the place of edges where the data are hops on the disk."""

from __future__ import annotations

from typing import Any

from unspool.errors import IncompatibleError, mention


class NoEdges:
    """No list of edges, and not an empty one either: whoever asks anything of it is told why.

    Example:
        >>> NoEdges().shape
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: the data are hops on the disk, which have seen the graph and do not hold it; ...
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and pickles look for
            raise AttributeError(name)
        raise IncompatibleError(
            "the data are hops on the disk, which have seen the graph and do not hold it; for what needs edges give the graph itself, "
            f"with {mention('edges')} or {mention('dataset')}"
        )

    def __getitem__(self, place: Any) -> Any:
        return self.shape[place]

    def __len__(self) -> int:
        return self.shape[1]

    def __repr__(self) -> str:
        return "NoEdges()"
