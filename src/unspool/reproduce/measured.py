"""Numbers that are not trials: errors of signals, accuracies of damaged and clean nodes apart, norms, energies.

A trial has one score; what is measured here has several, under names. One row is one number, so that every experiment shares one
file format, one reader and one writer.

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> keep(folder, "signals", [example_measured(seed) for seed in range(2)])
>>> [(one.model, one.amount, one.quantity, one.value) for one in read_measured(folder)]
[('rows', 10.0, 'error', 0.11), ('rows', 10.0, 'error', 0.12)]
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unspool.files import one_at_a_time, write_whole

#: The experiments whose results are such numbers.
MEASURED = ("signals", "damage", "nonlinearity", "identity")


@dataclass(frozen=True)
class Measured:
    """One number.

    Attributes:
        experiment: which one: ``signals``, ``damage``, ``nonlinearity`` or ``identity``.
        dataset: the data set, or the graph, in lower case.
        model: the network, or the fidelity.
        kind: what was varied, as a name: ``outliers``, ``channels``, ``channels in training``, ``edges``, ``depth``.
        amount: how much of it: a length, per cent of the edges, a number of layers; 0 is nothing.
        seed: of the damage and of the network.
        quantity: what was measured: ``error``, ``accuracy``, each also ``on damaged`` and ``on clean`` nodes, ``norm``, ...
        value: the number.
        settings: what decided it, by name.

    Example:
        >>> example_measured(3).value
        0.14
    """

    experiment: str
    dataset: str
    model: str
    kind: str
    amount: float
    seed: int
    quantity: str
    value: float
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])

    @property
    def cell(self) -> tuple[str, str, str, float]:
        """What is replaced as a whole when it is measured again."""
        return (self.dataset, self.model, self.kind, self.amount)


COLUMNS = tuple(f.name for f in dataclasses.fields(Measured))


def read_measured(folder: str | os.PathLike[str], experiment: str | None = None) -> list[Measured]:
    """The numbers of one experiment, or of all; none where nothing was measured.

    Example:
        >>> read_measured("nowhere")
        []
    """
    names = MEASURED if experiment is None else (_known(experiment),)
    files = [Path(folder) / f"{name}.csv" for name in names]
    return [one for file in files if file.is_file() for one in _rows(file)]


def keep(folder: str | os.PathLike[str], experiment: str, new: Sequence[Measured]) -> None:
    """Put numbers into the file of an experiment: cells that are there already are replaced, others stay."""
    file = Path(folder) / f"{_known(experiment)}.csv"
    cells = {one.cell for one in new}
    with one_at_a_time(folder):  # other processes may add other cells
        held = [one for one in read_measured(folder, experiment) if one.cell not in cells]
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([_told(getattr(one, name)) for name in COLUMNS] for one in [*held, *new])
        write_whole(file, lambda out: out.write(text.getvalue().encode()))


def chosen(
    found: Iterable[Measured], quantity: str, where: Callable[[Measured], bool] = lambda one: True
) -> dict[tuple[str, str, str, float], dict[int, float]]:
    """One quantity by cell and seed.

    Example:
        >>> chosen([example_measured(seed) for seed in range(2)], "error")
        {('sensor', 'rows', 'outliers', 10.0): {0: 0.11, 1: 0.12}}
    """
    made: dict[tuple[str, str, str, float], dict[int, float]] = {}
    for one in found:
        if one.quantity == quantity and where(one):
            made.setdefault(one.cell, {})[one.seed] = one.value
    return made


def example_measured(seed: int = 0, **changes: Any) -> Measured:
    """A made-up number, to try things on.

    Example:
        >>> example_measured(model="squares").model
        'squares'
    """
    made = Measured(
        "signals", "sensor", "rows", "outliers", 10.0, seed, "error", round(0.11 + 0.01 * seed, 4), {"weight": 3.0}
    )
    return dataclasses.replace(made, **changes)


# -- files -------------------------------------------------------------------------------------------------------------


def _known(experiment: str) -> str:
    if experiment not in MEASURED:
        raise ValueError(f"no experiment called {experiment!r} measures anything; there are {', '.join(MEASURED)}")
    return experiment


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _rows(file: Path) -> list[Measured]:
    way_out = f"move it away and run `unspool reproduce {_command(file.stem)}` again"
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            reader = csv.DictReader(opened)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            lines = [] if missing else list(reader)
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{file} is not a CSV file; {way_out}") from None
    if missing:
        raise ValueError(f"{file} has no column {missing[0]!r}; {way_out}")
    made: list[Measured] = []
    for number, line in enumerate(lines, 2):
        try:
            made.append(_read(line))
        except (ValueError, TypeError):
            raise ValueError(f"{file}: row {number} cannot be read; {way_out}") from None
    return made


def _read(line: Mapping[str, str]) -> Measured:
    amount, value, settings = float(line["amount"]), float(line["value"]), json.loads(line["settings"])
    if not (math.isfinite(amount) and math.isfinite(value) and isinstance(settings, dict)):
        raise ValueError("not a number")
    words = {name: line[name] for name in ("experiment", "dataset", "model", "kind", "quantity")}
    return Measured(**words, amount=amount, seed=int(line["seed"]), value=value, settings=settings)


def _command(experiment: str) -> str:
    return "robust" if experiment in ("signals", "damage") else experiment
