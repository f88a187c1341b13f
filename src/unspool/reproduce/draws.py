"""Which settings of a large space are tried: drawn by a hash of what they are, the same ones each time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from unspool.train import Monitor, Precision, Stop, Trial

#: Choices of a configuration in the words that the published searches were drawn by.
_WORDS = {
    Monitor.VALID_LOSS: "lowest validation loss", Monitor.VALID_SCORE: "highest validation score, then lowest loss",
    Monitor.LAST_EPOCH: "the last epoch", Stop.NEVER: "never", Stop.PATIENCE: "no improvement for `patience` epochs",
    Stop.ABOVE_MEAN: "validation loss above the mean of the last `patience` epochs, not before epoch `earliest`",
    Precision.FULL: "as the parameters", Precision.BFLOAT16: "bfloat16 activations",
}  # fmt: skip
#: Settings that models gained after the first draws; they count where they are not the default.
_GAINED = {
    "APPNP": ("propagation_dropout", "masks"), "GPRGNN": ("masks",), "JKNet": ("channels",),
    "UGDGNN": ("propagation_dropout", "masks", "start"),
}  # fmt: skip


def draw_hash(trial: Trial) -> str:
    """The place of a setting in draws of a few among many.

    Trap: it looks like a key and is not one. Keys change with what is stored under them; which settings were drawn must not, or the
    published searches could not be run again. So nothing here ever changes, words and numbers included.

    Example:
        >>> import unspool as us
        >>> draw_hash(Trial(us.models.GCN, config=us.train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=200, patience=100)))
        'a164a4e994ee48ec41ff2fc2'
    """
    config = trial.config
    # One number was written out group by group when the published searches were drawn.
    groups = ("first", "linear", "convolution", "gate")
    by_group = isinstance(config.weight_decay, Mapping)
    plan: dict[str, Any] = {
        "rate": config.lr, "epochs": config.epochs, "patience": config.patience, "earliest": config.min_epochs,
        "select": _WORDS[config.monitor], "stop": _WORDS[config.stop], "precision": _WORDS[config.precision],
        "decay": config.weight_decay if by_group else dict.fromkeys(groups, config.weight_decay), "optimiser": "Adam",
    }  # fmt: skip
    drawn = {
        "model": trial.name, "settings": _spelt_out(trial), "seed": int(trial.seed), "code": "e3b0c44298fc",
        "normalise_rows": trial.normalise_rows, "plan": plan,
    }  # fmt: skip
    return hashlib.sha256(json.dumps([1, "draw", drawn], sort_keys=True).encode()).hexdigest()[:24]


def _spelt_out(trial: Trial) -> dict[str, Any]:
    """All settings in plain values; those that were gained only where they differ from their default."""
    every = trial.schema.complete(trial.settings)
    if trial.name == "GPRGNN" and every["propagation_dropout"] is None:
        every["propagation_dropout"] = every["dropout"]
    plain = trial.schema.to_plain(every)
    usual = trial.schema.to_plain(trial.schema.complete({}))
    return {n: v for n, v in plain.items() if n not in _GAINED.get(trial.name, ()) or v != usual[n]}
