"""Figure 1 of the paper: accuracy over depth, and its two sentences put to the test.

*Increasing the propagation depth can help to improve the classification performance*, and *a small number of layers
suffices (4 to 10 on the benchmark datasets)*. Settings are those of Table 2; only the depth changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_entries, corrected
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.recorded_settings import table2_settings
from unspool.reproduce.records import Record
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.table2 import check_datasets
from unspool.train import Trial


def run_depth(runner: ExperimentRunner) -> list[Record]:
    """Run every depth of every model that has one, and keep them in ``depth.csv``.

    Models without a column in the paper's Table 4 take the setting that was found for Table 2.
    """
    how = runner.options.experiment("depth")
    kinds = [kind for kind in runner.options.model_classes("depth") if "depth" in kind.schema]
    check_datasets(how["datasets"])
    kept: list[Record] = []
    with runner.timed("depth"):
        for data in runner.datasets(how["datasets"]):
            chosen = table2_settings(runner, "depth", data, kinds, how["seeds"]).chosen
            deep = [at for trial in chosen.values() for at in deepened(trial, how["depths"])]
            trained = runner.train("depth", data, [t.with_seed(s) for t in deep for s in range(how["seeds"])])
            runner.keep("depth", trained.values())
            kept += trained.values()
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


def by_depth(records: Sequence[Record]) -> list[Entry]:
    """One entry for each dataset, model and depth."""
    return choose(records, ("dataset", "model", "depth"))


def depth_tests(records: Sequence[Record], model: str = "UGDGNN") -> list[ClaimTest]:
    """The two sentences for one model, dataset by dataset; p-values are corrected over datasets (Holm).

    *Depth helps*: the best depth of at least 4 against one layer. *4 to 10 suffice*: the best depth beyond 10 against the best
    of 4 to 10; the sentence holds where the whole interval of what going deeper adds lies below a margin (``depth.toml``), and fails
    where deeper is better by more than the seeds explain. The best of several depths is the one with the highest mean validation
    score.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> score = {1: 0.70, 5: 0.80, 20: 0.801}
        >>> records = [
        ...     example_record(s, experiment="depth", model="UGDGNN", depth=k, valid_score=v, test_score=v + 0.001 * (s * k % 7))
        ...     for k, v in score.items() for s in range(5)
        ... ]
        >>> [(test.claim.topic.name, test.verdict.value) for test in depth_tests(records)]
        [('DEPTH_HELPS', 'holds'), ('FEW_LAYERS_SUFFICE', 'holds')]
    """
    how = read_experiment("depth")
    low, high = how["enough"]
    helps = Claim(Topic.DEPTH_HELPS, f"depth helps {model}")
    suffice = Claim(Topic.FEW_LAYERS_SUFFICE, f"{low} to {high} layers suffice for {model}", how["margin"] / 100)
    mine = [one for one in records if one.model == model and one.depth is not None]
    tests: dict[Claim, list[ClaimTest]] = {helps: [], suffice: []}
    for dataset in dict.fromkeys(one.dataset for one in mine):
        here = [one for one in mine if one.dataset == dataset]
        one, any_deeper = _best(here, 1, 1), _best(here, low, 10**6)
        some, more = _best(here, low, high), _best(here, high + 1, 10**6)
        if one is not None and any_deeper is not None:
            tests[helps] += compare_entries(helps, any_deeper, one)
        if some is not None and more is not None:
            tests[suffice] += compare_entries(suffice, more, some)
    return [test for each in tests.values() for test in corrected(each)]


def smoothing_tests(records: Sequence[Record]) -> list[ClaimTest]:
    """What is said of GCN and GCNII: the one *can severely degrade as the layer increases*, the other does not.

    The shallowest and the deepest network that were run are compared, where the deepest has at least ``deep`` layers (``depth.toml``).
    That GCNII does not degrade holds where the whole interval of what the shallow network has ahead lies below the margin.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> score = {("GCN", 2): 0.81, ("GCN", 32): 0.40, ("GCNII", 2): 0.80, ("GCNII", 32): 0.83}
        >>> records = [
        ...     example_record(s, experiment="depth", model=m, depth=k, test_score=v + 0.001 * (s * k % 7))
        ...     for (m, k), v in score.items() for s in range(5)
        ... ]
        >>> [(test.claim.text, test.verdict.value) for test in smoothing_tests(records)]
        [('GCN degrades with depth', 'holds'), ('GCNII does not degrade with depth', 'holds'), ('GCNII is better than GCN at great depth', 'holds')]
    """
    how = read_experiment("depth")
    degrades = Claim(Topic.GCN_DEGRADES, "GCN degrades with depth")
    keeps = Claim(Topic.GCNII_DOES_NOT_DEGRADE, "GCNII does not degrade with depth", how["margin"] / 100)
    better = Claim(Topic.GCNII_ABOVE_GCN_WHEN_DEEP, "GCNII is better than GCN at great depth")
    found = {(e.first.dataset, e.first.model, e.first.depth): e for e in by_depth(records)}
    tests: dict[Claim, list[ClaimTest]] = {degrades: [], keeps: [], better: []}
    for name in dict.fromkeys(dataset for dataset, _, _ in found):
        depths = {m: sorted(k for d, n, k in found if (d, n) == (name, m) and k) for m in ("GCN", "GCNII")}
        for claim, model in ((degrades, "GCN"), (keeps, "GCNII")):
            some = depths[model]
            if some and some[-1] >= how["deep"] > some[0]:
                tests[claim] += compare_entries(claim, found[name, model, some[0]], found[name, model, some[-1]])
        both = sorted({k for k in depths["GCN"] if k >= how["deep"]} & set(depths["GCNII"]))
        if both:
            a, b = (found[name, model, both[-1]] for model in ("GCNII", "GCN"))
            tests[better] += compare_entries(better, a, b)
    return [test for each in tests.values() for test in corrected(each)]


def _best(records: Sequence[Record], low: int, high: int) -> Entry | None:
    """The depth in a range that validation chooses."""
    inside = [one for one in records if one.depth is not None and low <= one.depth <= high]
    found = choose(inside, ("dataset",))
    return found[0] if found else None
