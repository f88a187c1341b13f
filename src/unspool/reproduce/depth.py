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
from unspool.reproduce.recorded import settled
from unspool.reproduce.results import Record
from unspool.reproduce.settings import read_settings
from unspool.reproduce.table2 import check_sets
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
            chosen = settled(bench, "depth", data, kinds, how["seeds"]).chosen
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


def smoothing_answers(rows: Sequence[Record]) -> list[Answer]:
    """What is said of GCN and GCNII: the one *can severely degrade as the layer increases*, the other does not.

    The shallowest and the deepest network that were run are compared, where the deepest has at least ``deep`` layers (``depth.toml``).
    That GCNII does not degrade holds where the whole interval of what the shallow network has ahead lies below the margin.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> score = {("GCN", 2): 0.81, ("GCN", 32): 0.40, ("GCNII", 2): 0.80, ("GCNII", 32): 0.83}
        >>> rows = [
        ...     example_record(s, experiment="depth", model=m, depth=k, test_score=v + 0.001 * (s * k % 7))
        ...     for (m, k), v in score.items() for s in range(5)
        ... ]
        >>> [(a.sentence, a.verdict.value) for a in smoothing_answers(rows)]
        [('GCN degrades with depth', 'holds'), ('GCNII does not degrade with depth', 'holds'), ('GCNII is better than GCN at great depth', 'holds')]
    """
    how = read_settings("depth")
    found = {(c.first.dataset, c.first.model, c.first.depth): c for c in by_depth(rows)}
    degrades: list[Answer] = []
    recovers: list[Answer] = []
    better: list[Answer] = []
    for name in dict.fromkeys(dataset for dataset, _, _ in found):
        depths = {m: sorted(k for d, n, k in found if (d, n) == (name, m) and k) for m in ("GCN", "GCNII")}
        ends = {
            model: (found[name, model, some[0]], found[name, model, some[-1]])
            for model, some in depths.items()
            if some and some[-1] >= how["deep"] > some[0]
        }
        if "GCN" in ends:
            degrades += compare_cells("GCN degrades with depth", *ends["GCN"])
        if "GCNII" in ends:
            recovers += compare_cells("GCNII does not degrade with depth", *ends["GCNII"], how["margin"] / 100)
        both = sorted({k for k in depths["GCN"] if k >= how["deep"]} & set(depths["GCNII"]))
        if both:
            a, b = (found[name, model, both[-1]] for model in ("GCNII", "GCN"))
            better += compare_cells("GCNII is better than GCN at great depth", a, b)
    return [*corrected(degrades), *corrected(recovers), *corrected(better)]


def _best(rows: Sequence[Record], low: int, high: int) -> Cell | None:
    """The depth in a range that validation chooses."""
    inside = [row for row in rows if row.depth is not None and low <= row.depth <= high]
    found = choose(inside, ("dataset",))
    return found[0] if found else None
