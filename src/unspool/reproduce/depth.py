"""Figure 1 of the paper: accuracy over depth, and its two sentences put to the test.

*Increasing the propagation depth can help to improve the classification performance*, and *a small number of layers
suffices (4 to 10 on the benchmark datasets)*. Settings are those of Table 2; only the depth changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unspool.reproduce.bench import Bench, Item
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.claims import Answer, compare_cells, corrected
from unspool.reproduce.results import Record
from unspool.reproduce.settings import read_settings
from unspool.reproduce.table2 import check_sets, chosen_settings
from unspool.study import Trial
from unspool.study.search.words import signature


def run_depth(bench: Bench) -> list[Record]:
    """Run every depth of every model that has one, and keep them in ``depth.csv``.

    Models without a column in the paper's Table 4 take the setting that was found for Table 2.
    """
    how = bench.scope.asked("depth")
    kinds = [kind for kind in bench.scope.kinds("depth") if "depth" in signature(kind).names]
    check_sets(how["datasets"])
    kept: list[Record] = []
    with bench.timed("depth"):
        for name in how["datasets"]:
            data = bench.data(name)
            if data is None:
                continue
            chosen = chosen_settings(bench, "depth", data, kinds, "paper", how["seeds"]).chosen
            deep = [at for trial in chosen.values() for at in deepened(trial, how["depths"])]
            items = [Item(replace(trial, seed=seed), "paper") for trial in deep for seed in range(how["seeds"])]
            rows = [done.record for done in bench.train("depth", data, items)]
            bench.keep("depth", rows)
            kept += rows
    return kept


def deepened(trial: Trial, depths: Sequence[int]) -> list[Trial]:
    """A trial at several depths; those that the model cannot have are left out.

    Example:
        >>> import unspool as us
        >>> [t.settings["depth"] for t in deepened(Trial(us.models.SGC, {"depth": 2}), [0, 1, 64])]
        [1, 64]
    """
    made = [replace(trial, settings={**trial.settings, "depth": depth}) for depth in depths]
    return [one for one in made if _can_be_built(one)]


def _can_be_built(trial: Trial) -> bool:
    try:
        trial.build(4, 2)
    except ValueError:
        return False
    return True


def by_depth(rows: Sequence[Record]) -> list[Cell]:
    """One cell for each dataset, model and depth."""
    return choose(rows, ("dataset", "model", "depth"))


def depth_answers(rows: Sequence[Record], model: str = "UGDGNN") -> list[Answer]:
    """The two sentences for one model, dataset by dataset; p-values are corrected over datasets (Holm).

    *Depth helps*: the best depth of at least 4 against one layer. *4 to 10 suffice*: the best depth beyond 10 against the best
    of 4 to 10; the sentence holds where the whole interval of what going deeper adds lies below a margin (``depth.toml``), and fails
    where deeper is better by more than the seeds explain. The best of several depths is the one with the highest mean validation
    score.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> score = {1: 0.70, 5: 0.80, 20: 0.801}
        >>> rows = [
        ...     example_record(s, experiment="depth", model="UGDGNN", depth=k, valid_score=v, test_score=v + 0.001 * (s * k % 7))
        ...     for k, v in score.items() for s in range(5)
        ... ]
        >>> [(a.sentence[:11], a.verdict.value) for a in depth_answers(rows)]
        [('depth helps', 'holds'), ('4 to 10 lay', 'holds')]
    """
    how = read_settings("depth")
    (low, high), margin = how["enough"], how["margin"] / 100
    mine = [row for row in rows if row.model == model and row.depth is not None]
    helps: list[Answer] = []
    enough: list[Answer] = []
    for dataset in dict.fromkeys(row.dataset for row in mine):
        here = [row for row in mine if row.dataset == dataset]
        one = _best(here, 1, 1)
        some, more, any_deeper = _best(here, low, high), _best(here, high + 1, 10**6), _best(here, low, 10**6)
        if one is not None and any_deeper is not None:
            helps += compare_cells(f"depth helps {model}", any_deeper, one)
        if some is not None and more is not None:
            enough += compare_cells(f"{low} to {high} layers suffice for {model}", more, some, margin)
    return [*corrected(helps), *corrected(enough)]


def _best(rows: Sequence[Record], low: int, high: int) -> Cell | None:
    """The depth in a range that validation chooses."""
    inside = [row for row in rows if row.depth is not None and low <= row.depth <= high]
    found = choose(inside, ("dataset",))
    return found[0] if found else None
