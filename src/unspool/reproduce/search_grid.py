"""The grid that the paper searched."""

from __future__ import annotations

from typing import Any

from torch import nn

from unspool.errors import InputError
from unspool.reproduce.presets import PAPER, base_model, knows
from unspool.study import Space, grid
from unspool.study.search.resolve import check_names, takes
from unspool.theory import printed_tables as tables
from unspool.train import DEFAULT, Preset, Stop, Trial


class _PaperWherePrinted(Preset):
    """The paper's preset on its datasets, and the model's own defaults on others."""

    name = "paper"

    def trial(self, model: type[nn.Module], dataset: str) -> Trial:
        """What is not searched."""
        return (PAPER if knows(dataset) else DEFAULT).trial(model, dataset)


def paper_grid(model: type[nn.Module], seed: Any = range(10)) -> Space:
    """The grid that the paper searched: learning rate, dropout, decay and depth, and teleport for APPNP, GPRGNN and PPNP.

    GCN and SGC have two layers, SGC has no dropout. All 1000 epochs are run. The rest is the preset ``PAPER`` on the paper's datasets; on
    others the grid is still this one, and features stay as they are.

    Args:
        model: one of this package, or a class that inherits from one.
        seed: one or several.

    Example:
        >>> import unspool as us
        >>> print(paper_grid(us.models.UGDGNN))
        UGDGNN: 81 settings × 10 seeds
    """
    check_names((model,), {})
    name = base_model(model)
    if name not in (*tables.PAPER, "AirGNN", "PPNP", "MLP"):
        raise InputError(
            "model", model.__name__, "a model of this package: the paper has no grid for others", "use study.grid()"
        )
    words: dict[str, Any] = {"hidden": 64, **tables.PAPER_GRID}
    if name in ("APPNP", "GPRGNN", "PPNP"):
        words["teleport"] = tables.PAPER_TELEPORT
    if name in ("GCN", "SGC"):
        words["depth"] = 2
    words = {word: values for word, values in words.items() if takes(model, word)}
    return grid(model, seed=seed, preset=_PaperWherePrinted(), epochs=1000, stop=Stop.NEVER, **words)
