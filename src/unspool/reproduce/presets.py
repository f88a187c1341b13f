"""How models are run in the paper (its Table 4), and by each model's authors."""

from __future__ import annotations

from typing import Any

from torch import nn

from unspool.errors import IncompatibleError, InputError
from unspool.reproduce.recipes import GRAND, STABLE
from unspool.settings import schema_of
from unspool.theory import printed_tables as tables
from unspool.train import DEFAULT, Preset, Stop, TrainConfig, Trial


class PaperPreset(Preset):
    """The settings of the paper's Table 4; models without a column there get the middle of its grid, and :meth:`search` the grid.

    Example:
        >>> import unspool as us
        >>> trial = PAPER.trial(us.models.UGDGNN, "Cora")
        >>> trial.config.lr, trial.settings["depth"], trial.settings["dropout"]
        (0.005, 5, 0.8)
    """

    name = "paper"

    def trial(self, model: type[nn.Module], dataset: str) -> Trial:
        """Table 4. Decay on weight matrices, none on hop coefficients; 1000 epochs."""
        data = _column(self.name, dataset)
        middle = (0.01, 5e-4, 0.5, 10, 0.1 if base_model(model) == "PPNP" else None)
        lr, decay, dropout, depth, teleport = _row(model, data) or middle
        wanted: dict[str, Any] = {"hidden": 64, "dropout": dropout, "depth": depth, "teleport": teleport}
        known = schema_of(model)
        settings: dict[str, Any] = {k: v for k, v in wanted.items() if v is not None and k in known}
        if base_model(model) == "AirGNN":
            settings["residual"] = 0.5
        config = TrainConfig(lr=lr, weight_decay=decay, epochs=1000, stop=Stop.NEVER)
        return Trial(model, settings, config, normalise_rows=data != "arxiv", preset=self.name)

    def search(self, model: type[nn.Module], dataset: str) -> dict[str, tuple[float, ...]]:
        """Values still to be chosen on validation data, where the paper prints only a grid.

        Example:
            >>> import unspool as us
            >>> list(PAPER.search(us.models.PPNP, "cora")), PAPER.search(us.models.GCN, "cora")
            (['lr', 'dropout', 'weight_decay', 'teleport'], {})
        """
        if _row(model, _column(self.name, dataset)) is not None:
            return {}
        grid = dict(tables.PAPER_GRID)
        if "depth" not in schema_of(model):
            del grid["depth"]
        return grid | ({"teleport": tables.PAPER_TELEPORT} if base_model(model) == "PPNP" else {})

    def unstated(self, model: type[nn.Module]) -> tuple[str, ...]:
        """Choices that the paper leaves open and we made."""
        return tables.unstated(base_model(model))


class OfficialPreset(Preset):
    """What each model's authors run, from their papers and public code.

    Example:
        >>> import unspool as us
        >>> trial = OFFICIAL.trial(us.models.GPRGNN, "cora")
        >>> trial.config.weight_decay, trial.config.stop.name
        ({'first': 0.0005, 'linear': 0.0005}, 'ABOVE_MEAN')
    """

    name = "official"

    def trial(self, model: type[nn.Module], dataset: str) -> Trial:
        """Their settings; refused where they publish none that we know."""
        data = _column(self.name, dataset)
        found = tables.official(base_model(model), data)
        if found is None:
            raise IncompatibleError(
                f"{model.__name__} has no official setting on {data}: its authors publish none for this model that we know (for "
                "ogbn-arxiv some run a different network); use the preset paper"
            )
        plain: dict[str, Any] = {"stop": "never", **found}
        settings = plain.pop("settings")
        config = TrainConfig(**TrainConfig.schema.from_plain(plain))
        return Trial(model, settings, config, normalise_rows=data != "arxiv", preset=self.name)


PAPER, OFFICIAL = PaperPreset(), OfficialPreset()
#: All presets by name, for the command line.
PRESETS: dict[str, Preset] = {one.name: one for one in (PAPER, OFFICIAL, STABLE, GRAND, DEFAULT)}


def knows(dataset: str) -> bool:
    """Whether the presets of the paper and of the authors know a dataset.

    Example:
        >>> knows("Cora"), knows("texas")
        (True, False)
    """
    return plain_name(dataset) in tables.DATASETS


def base_model(model: type[nn.Module]) -> str:
    """The named model that a class is or inherits from; the name of a class of the user's says nothing.

    Example:
        >>> import unspool as us
        >>> base_model(type("Mine", (us.models.GCN,), {"__module__": "my_models"}))
        'GCN'
    """
    return next((kind.__name__ for kind in model.__mro__ if kind.__module__.startswith("unspool.")), "")


def _row(model: type[nn.Module], data: str) -> Any:
    return tables.PAPER.get(base_model(model), {}).get(data)


def plain_name(dataset: str) -> str:
    """A dataset as the paper's tables name it.

    Example:
        >>> plain_name("Coauthor-CS")
        'cs'
    """
    return dataset.lower().removeprefix("ogbn-").replace("coauthor-", "").replace("amazon-", "")


def _column(preset: str, dataset: str) -> str:
    data = plain_name(dataset)
    if data not in tables.DATASETS:
        raise InputError(
            "preset",
            preset,
            f"a dataset of the paper ({', '.join(tables.DATASETS)}), and this is {dataset}",
            "take the preset default, which fits any",
        )
    return data
