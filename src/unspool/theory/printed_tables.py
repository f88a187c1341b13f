"""The numbers behind the presets, as printed: learning rate, weight decay, dropout, layers, alpha; None for a star."""

from __future__ import annotations

from typing import Any

DATASETS = ("cora", "citeseer", "pubmed", "cs", "physics", "photo", "arxiv")

Row = tuple[float, float, float | None, int | None, float | None]


def _columns(*rows: Row) -> dict[str, Row]:
    return dict(zip(DATASETS, rows, strict=True))


_STAR = None

#: Table 4 of the paper (its last), model by model over the datasets. A star means fixed or not applicable:
#: 2 layers for GCN and SGC, no dropout in SGC, no teleport elsewhere.
PAPER: dict[str, dict[str, Row]] = {
    "GCN": _columns(
        (0.01, 5e-4, 0.8, 2, _STAR), (0.05, 5e-4, 0.5, 2, _STAR), (0.005, 5e-4, 0.1, 2, _STAR), (0.005, 5e-5, 0.8, 2, _STAR),
        (0.01, 0.0, 0.5, 2, _STAR), (0.01, 0.0, 0.8, 2, _STAR), (0.005, 0.0, 0.1, 2, _STAR),
    ),
    "SGC": _columns(
        (0.05, 5e-5, _STAR, 2, _STAR), (0.05, 5e-5, _STAR, 2, _STAR), (0.05, 5e-5, _STAR, 2, _STAR), (0.005, 5e-5, _STAR, 2, _STAR),
        (0.005, 0.0, _STAR, 2, _STAR), (0.05, 0.0, _STAR, 2, _STAR), (0.05, 0.0, _STAR, 2, _STAR),
    ),
    "APPNP": _columns(
        (0.005, 5e-5, 0.1, 5, 0.1), (0.01, 5e-4, 0.1, 5, 0.2), (0.005, 5e-4, 0.1, 5, 0.2), (0.05, 5e-5, 0.8, 20, 0.2),
        (0.005, 5e-4, 0.1, 10, 0.1), (0.05, 5e-5, 0.1, 10, 0.1), (0.01, 0.0, 0.1, 5, 0.1),
    ),
    "JKNet": _columns(
        (0.05, 5e-4, 0.5, 5, _STAR), (0.05, 5e-4, 0.8, 5, _STAR), (0.05, 5e-4, 0.8, 5, _STAR), (0.05, 5e-5, 0.8, 5, _STAR),
        (0.01, 0.0, 0.8, 5, _STAR), (0.05, 5e-5, 0.5, 10, _STAR), (0.005, 5e-4, 0.1, 10, _STAR),
    ),
    "GCNII": _columns(
        (0.01, 5e-4, 0.5, 20, _STAR), (0.05, 0.0, 0.5, 20, _STAR), (0.05, 0.0, 0.5, 20, _STAR), (0.01, 5e-4, 0.1, 20, _STAR),
        (0.05, 5e-4, 0.5, 20, _STAR), (0.01, 5e-5, 0.1, 5, _STAR), (0.005, 5e-4, 0.1, 10, _STAR),
    ),
    "DAGNN": _columns(
        (0.01, 5e-4, 0.8, 10, _STAR), (0.005, 5e-4, 0.5, 5, _STAR), (0.005, 5e-4, 0.8, 20, _STAR), (0.005, 5e-4, 0.8, 10, _STAR),
        (0.005, 0.0, 0.8, 5, _STAR), (0.05, 5e-4, 0.5, 5, _STAR), (0.005, 0.0, 0.1, 20, _STAR),
    ),
    "GPRGNN": _columns(
        (0.01, 5e-4, 0.5, 10, 0.1), (0.005, 5e-4, 0.5, 10, 0.1), (0.01, 5e-4, 0.1, 20, 0.5), (0.01, 0.0, 0.5, 5, 0.1),
        (0.005, 5e-5, 0.1, 20, 0.5), (0.005, 5e-4, 0.1, 5, 0.1), (0.01, 5e-4, 0.1, 5, 0.1),
    ),
    "UGDGNN": _columns(
        (0.005, 5e-4, 0.8, 5, _STAR), (0.01, 5e-5, 0.8, 5, _STAR), (0.005, 5e-4, 0.1, 5, _STAR), (0.005, 5e-5, 0.1, 5, _STAR),
        (0.005, 0.0, 0.8, 5, _STAR), (0.005, 0.0, 0.5, 5, _STAR), (0.005, 0.0, 0.1, 10, _STAR),
    ),
}  # fmt: skip

#: Table 2 of the paper: mean accuracy and standard deviation over ten repetitions, in per cent, by dataset.
ACCURACY: dict[str, tuple[tuple[float, float], ...]] = {
    "GCN": ((83.24, 0.50), (71.41, 0.63), (79.10, 0.42), (91.76, 0.37), (93.71, 0.67), (90.37, 1.11), (69.93, 0.11)),
    "SGC": ((81.49, 0.35), (71.50, 0.25), (78.77, 0.41), (91.93, 0.38), (93.67, 0.74), (89.16, 1.06), (65.35, 0.10)),
    "APPNP": ((82.88, 0.25), (71.53, 0.59), (79.10, 0.29), (91.95, 0.43), (93.76, 0.57), (90.42, 0.64), (69.84, 0.43)),
    "JKNet": ((80.98, 1.07), (68.46, 1.37), (76.35, 0.79), (90.98, 0.72), (93.25, 0.82), (87.55, 2.21), (70.40, 0.19)),
    "GCNII": ((84.07, 0.60), (72.32, 0.61), (79.56, 0.42), (91.03, 0.43), (93.79, 0.65), (80.01, 2.43), (70.73, 0.43)),
    "DAGNN": ((83.97, 0.55), (71.56, 0.48), (79.11, 0.71), (91.96, 0.40), (93.81, 0.84), (90.42, 1.26), (70.67, 0.31)),
    "GPRGNN": ((83.76, 0.60), (71.64, 0.47), (79.14, 0.63), (92.03, 0.61), (93.75, 0.72), (91.63, 0.95), (70.82, 0.17)),
    "UGDGNN": ((84.15, 0.55), (71.68, 0.70), (79.22, 0.35), (92.18, 0.66), (94.14, 0.50), (90.49, 0.85), (70.91, 0.22)),
}


def printed_accuracy(model: str, data: str) -> tuple[float, float] | None:
    """What Table 2 prints for a model on a dataset: (mean, standard deviation), or None.

    Example:
        >>> printed_accuracy("UGDGNN", "cora")
        (84.15, 0.55)
    """
    return ACCURACY[model][DATASETS.index(data)] if model in ACCURACY and data in DATASETS else None


#: The grid of the paper's search, for models that have no column.
PAPER_GRID: dict[str, tuple[float, ...]] = {
    "lr": (0.005, 0.01, 0.05),
    "dropout": (0.1, 0.5, 0.8),
    "weight_decay": (0.0, 5e-5, 5e-4),
    "depth": (5, 10, 20),
}
PAPER_TELEPORT: tuple[float, ...] = (0.1, 0.2, 0.5, 0.9)

#: What the paper does not say, and what this package does.
_UNSTATED_FOR_ALL = (
    "epoch kept: lowest validation loss, all 1000 epochs run",
    "rows of X scaled to sum 1, except on ogbn-arxiv",
    "decay on weight matrices and biases, none on hop coefficients",
    "no batch normalisation",
)
_UNSTATED_BY_MODEL = {
    "GCNII": "GCNII: teleport 0.1, θ = log(0.5/l + 1)",
    "JKNet": "JKNet: the linear sum, square W on the hidden channels",
    "AirGNN": "AirGNN (not run in the paper): residual 0.5",
    "UGDGNN": "UGDGNN: propagation on class channels, γ starts at 1/K, ζ at 0.8, the encoder from Glorot weights, W uniform; ξ = 1 − ζ (stated)",
}
UNSTATED: tuple[str, ...] = (*_UNSTATED_FOR_ALL, *_UNSTATED_BY_MODEL.values())


def unstated(model: str) -> tuple[str, ...]:
    """The choices that concern a model: those for all, and its own.

    Example:
        >>> unstated("UGDGNN")[-1][:6]
        'UGDGNN'
    """
    own = _UNSTATED_BY_MODEL.get(model)
    return _UNSTATED_FOR_ALL if own is None else (*_UNSTATED_FOR_ALL, own)


def official(model: str, data: str) -> dict[str, Any] | None:
    """How the authors of a model run it on a dataset, from their papers and public code; None if they do not say."""
    maker = _OFFICIAL.get(model)
    return None if maker is None else maker(data)


def _gcn(data: str) -> dict[str, Any] | None:
    if data == "arxiv":
        return {
            "settings": {"depth": 3, "hidden": 256, "dropout": 0.5, "batch_norm": True},
            "lr": 0.01, "weight_decay": 0.0, "epochs": 500, "monitor": "valid_score",
        }  # fmt: skip
    return {
        "settings": {"depth": 2, "hidden": 16, "dropout": 0.5}, "lr": 0.01, "weight_decay": {"first": 5e-4}, "epochs": 200,
    }  # fmt: skip


def _sgc(data: str) -> dict[str, Any]:
    return {"settings": {"depth": 2}, "lr": 0.2, "weight_decay": 5e-6, "epochs": 100, "monitor": "last_epoch"}


def _appnp(data: str) -> dict[str, Any]:
    teleport = 0.2 if data in ("cs", "physics") else 0.1
    return {
        "settings": {"depth": 10, "hidden": 64, "teleport": teleport, "dropout": 0.5, "bias": False}, "lr": 0.01,
        "weight_decay": {"first": 0.005}, "epochs": 10_000, "monitor": "valid_score", "stop": "patience", "patience": 100,
    }  # fmt: skip


def _ppnp(data: str) -> dict[str, Any]:
    config = _appnp(data)
    settings = {k: v for k, v in config["settings"].items() if k != "depth"}
    return {**config, "settings": settings}


def _gcnii(data: str) -> dict[str, Any] | None:
    found = {"cora": (64, 64, 0.5, 0.6), "citeseer": (32, 256, 0.6, 0.7), "pubmed": (16, 256, 0.4, 0.5)}.get(data)
    if found is None:
        return None  # on ogbn-arxiv the authors run a different network: two weights per layer, residual, batch norm
    depth, hidden, strength, drop = found
    return {
        "settings": {"depth": depth, "hidden": hidden, "strength": strength, "dropout": drop, "teleport": 0.1},
        "lr": 0.01, "weight_decay": {"convolution": 5e-4 if data == "pubmed" else 0.01, "first": 5e-4, "linear": 5e-4},
        "epochs": 1500, "stop": "patience", "patience": 100,
    }  # fmt: skip


def _dagnn(data: str) -> dict[str, Any]:
    depth, drop = {
        "cora": (10, 0.8), "citeseer": (10, 0.5), "pubmed": (20, 0.8), "cs": (5, 0.8), "physics": (5, 0.8), "photo": (5, 0.5),
        "arxiv": (16, 0.2),
    }[data]  # fmt: skip
    decay = {"cora": 0.005, "citeseer": 0.02, "pubmed": 0.005, "photo": 5e-4}.get(data, 0.0)
    large = data == "arxiv"
    settings = {"depth": depth, "hidden": 256 if large else 64, "dropout": drop, "batch_norm": large}
    return {
        "settings": settings, "lr": 0.005 if large else 0.01, "weight_decay": decay, "epochs": 1000,
        "stop": "above_mean", "patience": 100, "min_epochs": 500,
    }  # fmt: skip


def _gprgnn(data: str) -> dict[str, Any]:
    return {
        "settings": {"depth": 10, "hidden": 64, "teleport": 0.1, "dropout": 0.5}, "lr": 0.01,
        "weight_decay": {"first": 5e-4, "linear": 5e-4}, "epochs": 1000, "stop": "above_mean", "patience": 200, "min_epochs": 200,
    }  # fmt: skip


def _airgnn(data: str) -> dict[str, Any]:
    return {
        "settings": {"depth": 10, "hidden": 64, "residual": 0.5, "dropout": 0.8}, "lr": 0.01, "weight_decay": 5e-4,
        "epochs": 1000, "stop": "above_mean", "patience": 100, "min_epochs": 500,
    }  # fmt: skip


_OFFICIAL: dict[str, Any] = {
    "GCN": _gcn, "SGC": _sgc, "APPNP": _appnp, "PPNP": _ppnp, "GCNII": _gcnii, "DAGNN": _dagnn, "GPRGNN": _gprgnn, "AirGNN": _airgnn,
}  # fmt: skip
