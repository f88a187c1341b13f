"""Numbers that are not trials as tables: what was measured, by what was varied, for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from unspool.reproduce.damage import CHANNELS, EDGES, LONG, PARTS, TRAINED
from unspool.reproduce.identity import SENTENCES
from unspool.reproduce.measured import Measured, chosen
from unspool.reproduce.page_cells import called

#: What a kind of damage is called, and its axis.
DAMAGES = {
    CHANNELS: ("outliers behind the encoder, after training", "length of the outliers"),
    LONG: ("outliers behind the encoder, after training, with 300 steps", "length of the outliers"),
    TRAINED: ("outliers behind the encoder, in training too", "length of the outliers"),
    EDGES: ("random edges added, after training", "edges added (%)"),
}
_NODES = {"": "all", " on damaged": "damaged", " on clean": "clean"}


@dataclass(frozen=True)
class Grid:
    """A table: words at the left, numbers at the right, each with how it is written.

    Example:
        >>> Grid("errors", ("fidelity",), ("1", "3"), ((("rows",), (0.11, None)),), 3).texts
        [('rows', '0.110', '–')]
    """

    title: str
    words: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[float | None, ...]], ...]
    digits: int = 2

    @property
    def texts(self) -> list[tuple[str, ...]]:
        """The rows as they are written."""
        return [
            (*words, *("–" if v is None else f"{v:.{self.digits}f}" for v in numbers)) for words, numbers in self.rows
        ]


def grids(found: Sequence[Measured], experiment: str) -> list[Grid]:
    """The tables of one experiment; none where nothing was measured.

    Example:
        >>> from unspool.reproduce.measured import example_measured
        >>> [grid.title for grid in grids([example_measured(s) for s in range(3)], "signals")]
        ['sensor: relative error, mean over 3 draws']
    """
    mine = [one for one in found if one.experiment == experiment]
    if not mine:
        return []
    return {"signals": _signals, "damage": _damage, "nonlinearity": _nonlinearity, "identity": _identity}[experiment](
        mine
    )


def mean(found: Sequence[Measured], quantity: str) -> dict[tuple[str, str, str, float], float]:
    """One quantity by cell, the mean over seeds."""
    return {cell: fmean(values.values()) for cell, values in chosen(found, quantity).items()}


def _signals(found: list[Measured]) -> list[Grid]:
    amounts = sorted({one.amount for one in found})
    rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]] = []
    for model in dict.fromkeys(one.model for one in found):
        for part, nodes in _NODES.items():
            values = mean(found, f"error{part}")
            rows.append(
                ((norm(model), nodes), tuple(values.get((found[0].dataset, model, "outliers", a)) for a in amounts))
            )
    heads = tuple(f"length {a:g}" if a else "none" for a in amounts)
    title = f"{found[0].dataset}: relative error, mean over {len({one.seed for one in found})} draws"
    return [Grid(title, ("fidelity", "nodes"), heads, tuple(rows), 3)]


def norm(model: str) -> str:
    """A fidelity as it is written.

    Example:
        >>> norm("rows"), norm("squares")
        ('‖H − X‖₂,₁', '‖H − X‖²')
    """
    return {"rows": "‖H − X‖₂,₁", "squares": "‖H − X‖²"}.get(model, model)


def _damage(found: list[Measured]) -> list[Grid]:
    """For each kind of damage what every model has left, before and after, damaged and clean nodes apart."""
    made: list[Grid] = []
    for name in dict.fromkeys(one.dataset for one in found):
        for kind, (words, _) in DAMAGES.items():
            here = [one for one in found if (one.dataset, one.kind) == (name, kind)]
            amounts = sorted({one.amount for one in here})
            rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]] = []
            for model in dict.fromkeys(one.model for one in here):
                for part in PARTS:
                    now, lost = mean(here, f"accuracy{part}"), mean(here, f"lost{part}")
                    first = (name, model, kind, amounts[0])
                    same = kind != EDGES or not part  # with more edges other nodes are hit
                    before = 100 * (now[first] + lost[first]) if first in now and same else None
                    after = tuple(_per_cent(now.get((name, model, kind, amount))) for amount in amounts)
                    rows.append(((model, _NODES[part]), (before, *after)))
            if rows:
                many = len({one.seed for one in here})
                title = f"{called(name)}: test accuracy (%), {words}; {many} seeds, each with a damage of its own"
                sign = "{:g} %" if kind == EDGES else "length {:g}"
                made.append(
                    Grid(title, ("model", "nodes"), ("before", *(sign.format(a) for a in amounts)), tuple(rows))
                )
    return made


def _nonlinearity(found: list[Measured]) -> list[Grid]:
    made: list[Grid] = []
    for name, kind in dict.fromkeys((one.dataset, one.kind) for one in found):
        here = [one for one in found if (one.dataset, one.kind) == (name, kind)]
        amounts = sorted({one.amount for one in here})
        rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]] = []
        for quantity, times in (("accuracy", 100.0), ("train accuracy", 100.0), ("energy", 1.0)):
            values = mean(here, quantity)
            for model in dict.fromkeys(one.model for one in here):
                cells = [values.get((name, model, kind, amount)) for amount in amounts]
                rows.append(((model, _QUANTITIES[quantity]), tuple(None if v is None else times * v for v in cells)))
        many = len({one.seed for one in here})
        title = f"{called(name)}, {kind}: with and without H ≥ 0 over depth; {many} seeds"
        made.append(Grid(title, ("network", "what"), tuple(f"K = {a:g}" for a in amounts), tuple(rows), 3))
    return made


_QUANTITIES = {
    "accuracy": "test accuracy (%)", "train accuracy": "training accuracy (%)", "energy": "Dirichlet energy over size of H",
    "norm": "norm of W", "norm of hops": "norm of γ(ζI + ξW), or W", "gap": "training less test accuracy (points)",
}  # fmt: skip


def _identity(found: list[Measured]) -> list[Grid]:
    names = ("norm", "norm of hops", "train accuracy", "accuracy", "gap")
    times = {quantity: factor for _, quantity, _, factor in SENTENCES} | {"train accuracy": 100.0}
    rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]] = []
    for cell in dict.fromkeys(one.cell for one in found):
        numbers = [mean(found, quantity).get(cell) for quantity in names]
        told = tuple(None if v is None else times[q] * v for q, v in zip(names, numbers, strict=True))
        rows.append(((called(cell[0]), cell[1]), told))
    many = len({one.seed for one in found})
    title = f"The identity outside W (UGDGNN) and inside (JKNet on class channels), same settings; {many} seeds"
    return [Grid(title, ("dataset", "model"), tuple(_QUANTITIES[q] for q in names), tuple(rows))]


def _per_cent(value: float | None) -> float | None:
    return None if value is None else 100 * value
