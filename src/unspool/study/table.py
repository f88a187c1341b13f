"""What many trials say together: which settings are best on validation data, and what they reach on test data."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from unspool.refusal import Refusal
from unspool.study.best import Best, Measure, Sample
from unspool.study.export import AnyRow, decay_words, order, results_of, settings_of, shown, spread
from unspool.study.trial import Result

#: So many groups of a dataset are printed.
SHOWN = 10


@dataclass(frozen=True, eq=False)
class Table:
    """The trials of a study, to be looked at: immutable, and every answer a new object.

    Trials that are not finished are kept aside; they only tell which groups are complete.

    Args:
        rows: of a store, in any state. :meth:`of` sorts them and drops repeats.
        score: what the scores are (``train.Loss.score_name``); accuracies are shown in per cent.

    Example:
        >>> table = example_table()
        >>> table.varied, len(table)
        (('model', 'dropout', 'seed'), 18)
        >>> print(table.filter(model="GCN"))
        cora: 9 of 9 trials finished, 3 settings
        dropout  validation      test            seeds
        0.5      81.47 ± 0.19 %  81.37 ± 0.23 %  3
        0.2      80.17 ± 0.19 %  80.07 ± 0.23 %  3
        0.8      79.97 ± 0.19 %  79.87 ± 0.23 %  3
    """

    rows: tuple[AnyRow, ...]
    score: str = "accuracy"

    @staticmethod
    def of(rows: Iterable[AnyRow], score: str = "accuracy") -> Table:
        """A table of these rows, each once, in the order of the study."""
        once = {row.key: row for row in rows}
        return Table(tuple(sorted(once.values(), key=lambda row: row.number)), score)

    @cached_property
    def _flat(self) -> list[dict[str, Any]]:
        flat = [settings_of(row) for row in self.rows]
        words = [decay_words(row.described["plan"]["decay"]) for row in self.rows]
        meant: dict[tuple[Any, Any], set[str]] = {}
        for one, word in zip(flat, words, strict=True):
            meant.setdefault((one["model"], one["decay"]), set()).add(word)
        # Trap: decay 0.1 of the first layer and decay 0.1 of all layers are shown as the same number.
        unclear = [len(meant[one["model"], one["decay"]]) > 1 for one in flat]
        return [{**one, "decay": w} if u else one for one, w, u in zip(flat, words, unclear, strict=True)]

    def __len__(self) -> int:
        return sum(row.result is not None for row in self.rows)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The flat names of all settings."""
        return tuple(dict.fromkeys(name for one in self._flat for name in one))

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The settings that differ between trials of one model on one dataset; and these two, where there are several."""
        seen: dict[str, dict[Any, set[Any]]] = {name: {} for name in self.columns}
        for one in self._flat:
            for name, values in seen.items():
                about = () if name in ("model", "data") else (one["model"], one["data"])
                values.setdefault(about, set()).add(one.get(name))
        return tuple(name for name, values in seen.items() if any(len(v) > 1 for v in values.values()))

    def records(self) -> list[dict[str, Any]]:
        """The finished trials as flat rows; settings that a model does not have are ``None``.

        Example:
            >>> first = example_table().records()[0]
            >>> first["dropout"], first["valid_score"]
            (0.2, 0.803)
        """
        pairs = zip(self.rows, self._flat, strict=True)
        empty = dict.fromkeys(self.columns)
        return [{**empty, **one, **results_of(row)} for row, one in pairs if row.result is not None]

    def frame(self) -> Any:
        """The finished trials as a pandas ``DataFrame``."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ValueError("a data frame needs pandas: pip install pandas, or take records()") from None
        return pandas.DataFrame(
            self.records(), columns=[*self.columns, *results_of(self.rows[0])] if self.rows else None
        )

    def filter(self, **values: Any) -> Table:
        """The trials with these settings; a list, set or range means any of its values.

        Models may be named by their class, or without their module.

        Example:
            >>> len(example_table().filter(model="GCN", dropout=[0.2, 0.5]))
            6
        """
        kept = list(range(len(self.rows)))
        for name, value in values.items():
            if name not in self.columns:
                raise ValueError(f"no setting is called {name!r}; there are {', '.join(self.columns)}")
            wanted = list(value) if isinstance(value, list | set | frozenset | range) else [value]
            there = [
                k for k in range(len(self.rows)) if any(_matches(name, self._flat[k].get(name), w) for w in wanted)
            ]
            if not there:
                known = sorted({one.get(name) for one in self._flat}, key=order)
                raise ValueError(f"no trial has {name}={value!r}; there are {', '.join(map(shown, known))}")
            kept = [k for k in kept if k in set(there)]
        return replace(self, rows=tuple(self.rows[k] for k in kept))

    def best(self, over: str | Sequence[str] = "seed", by: Measure = Measure.VALID_SCORE) -> Best:
        """The settings with the best mean validation score (or loss) over the seeds.

        Test scores are reported, and never looked at to choose. Equal means go by the other measure, then by order. Groups
        that still miss trials are left out while any group is complete; a group with a diverged trial comes last.

        Example:
            >>> example_table().filter(model="GCN").best().settings["dropout"]
            0.5
        """
        names = _names(over)
        kinds = {one["data"] for one in self._flat}
        if len(kinds) > 1 and "data" not in names:
            told = " and ".join(sorted(kinds))
            raise Refusal(
                f"scores on {told} cannot be compared; use filter(data=...), best_each() or over=('data', 'seed')"
            )
        ranked, left_out = self._ranked(names, by)
        if not ranked:
            raise Refusal("no trial has finished yet, so there is no best one")
        return _noted(ranked[0], left_out)

    def best_each(
        self, *names: str, over: str | Sequence[str] = "seed", by: Measure = Measure.VALID_SCORE
    ) -> tuple[Best, ...]:
        """The best group for each model, or for each value of other settings, on each dataset.

        Example:
            >>> [(b.model, b.settings["dropout"]) for b in example_table().best_each("model")]
            [('GCN', 0.5), ('UGDGNN', 0.5)]
        """
        parts = self._parts("data", *(names if names else ("model",)))
        told = self._telling(_names(over))
        found = (part._ranked(_names(over), by) for part in parts)
        return tuple(replace(_noted(ranked[0], left_out), varied=told) for ranked, left_out in found if ranked)

    def leaders(
        self, n: int = 10, over: str | Sequence[str] = "seed", by: Measure = Measure.VALID_SCORE
    ) -> tuple[Best, ...]:
        """The ``n`` best groups of each dataset, as :meth:`best` ranks them.

        Example:
            >>> [round(b.valid.mean, 3) for b in example_table().leaders(2)]
            [0.825, 0.815]
        """
        names = _names(over)
        parts = [self] if "data" in names else self._parts("data")
        ranked = (best for part in parts for best in part._ranked(names, by)[0][:n])
        return tuple(replace(best, varied=self._telling(names)) for best in ranked)

    def __str__(self) -> str:
        names = [name for name in self._telling(("seed",)) if name != "data"]
        texts: list[str] = []
        for part in self._parts("data"):
            ranked, left_out = part._ranked(("seed",), Measure.VALID_SCORE)
            many = len(part._groups(("seed",)))
            notes = [f"the {SHOWN} best of {len(ranked)}"] if len(ranked) > SHOWN else []
            notes += [left_out] if left_out else []
            head = (
                f"{part.rows[0].data}: {len(part)} of {len(part.rows)} trials finished, {many} setting{'s'[: many > 1]}"
            )
            foot = [f"({'; '.join(notes)})"] if notes else []
            texts.append("\n".join([head, *_aligned(names, ranked[:SHOWN]), *foot]))
        return "\n\n".join(texts) if texts else "no trials"

    def _parts(self, *names: str) -> list[Table]:
        """One table for each combination of values, in order of appearance."""
        rows: dict[tuple[Any, ...], list[AnyRow]] = {}
        for row, one in zip(self.rows, self._flat, strict=True):
            rows.setdefault(tuple(one.get(name) for name in names), []).append(row)
        return [replace(self, rows=tuple(held)) for held in rows.values()]

    def _telling(self, over: tuple[str, ...]) -> tuple[str, ...]:
        # How one came by the settings changes nothing, so presets tell no groups apart.
        return tuple(name for name in self.varied if name not in over and name != "preset")

    def _groups(self, over: tuple[str, ...]) -> list[dict[tuple[Any, ...], int]]:
        """Groups of trials that agree in everything but ``over``: where each member is among the rows."""
        unknown = [name for name in over if name not in self.columns]
        if unknown and self.rows:
            raise ValueError(f"over={unknown[0]!r}: no setting is called so; there are {', '.join(self.columns)}")
        groups: dict[Any, dict[tuple[Any, ...], int]] = {}
        for place, one in enumerate(self._flat):
            same = frozenset((k, v) for k, v in one.items() if k not in over and k != "preset")
            member = tuple(one.get(name) for name in over) if over else (self.rows[place].key,)
            held = groups.setdefault(same, {})
            # The same name may have been given to changed data: the trial that was added last counts, if it is done.
            if member not in held or self.rows[place].result is not None:
                held[member] = place
        return list(groups.values())

    def _ranked(self, over: tuple[str, ...], by: Measure) -> tuple[list[Best], str]:
        """The groups from best to worst, complete ones only if there are any; and what was left out."""
        groups = self._groups(over)
        full = max((len(places) for places in groups), default=0)
        found = [best for best in (self._best_of(places, over, full) for places in groups) if best.n]
        complete = [best for best in found if best.n == full]
        less = len(groups) - len(complete)
        told = (
            f"{less} setting{'s'[: less > 1]} with fewer than {full} finished trials left out"
            if complete and less
            else ""
        )
        return sorted(complete if complete else found, key=lambda best: best.rank(by)), told

    def _best_of(self, places: dict[tuple[Any, ...], int], over: tuple[str, ...], full: int) -> Best:
        done = sorted((m for m, k in places.items() if self.rows[k].result is not None), key=lambda m: [*map(order, m)])
        results = [result for m in done if (result := self.rows[places[m]].result) is not None]
        one = self._flat[next(iter(places.values()))]
        diverged = sum(_diverged(result) for result in results)
        failed = sum(self.rows[k].status.name == "FAILED" for k in places.values())
        notes = (
            f"{len(done)} of {full} trials finished" if len(done) < full else "",
            f"{failed} failed" if failed else "",
            f"{diverged} of {len(done)} diverged" if diverged else "",
        )
        return Best(
            settings={k: v for k, v in one.items() if k not in over and k != "preset"},
            over=over,
            members=tuple(done),
            valid=Sample(tuple(r.valid_score for r in results)),
            loss=Sample(tuple(r.valid_loss for r in results)),
            test=Sample(tuple(r.test_score for r in results)),
            diverged=diverged,
            varied=self._telling(over),
            score=self.score,
            note="; ".join(filter(None, notes)),
        )


def example_table(seeds: int = 3) -> Table:
    """A small made-up study to try things on: two models, three rates of dropout, some seeds.

    Example:
        >>> len(example_table(seeds=2))
        12
    """
    rows: list[Any] = []
    plan = {"rate": 0.01, "decay": {"first": 5e-4, "hops": 0.0}, "epochs": 200}
    gains = {"GCN": 0.0, "UGDGNN": 0.01}, {0.2: 0.802, 0.5: 0.815, 0.8: 0.8}
    for model, gain in gains[0].items():
        for dropout, middle in gains[1].items():
            for seed in range(seeds):
                score = round(middle + gain + 0.001 * (1, -2.5, 0.5, 2)[seed % 4] * 1, 6)
                told = {"model": model, "settings": {"dropout": dropout}, "plan": plan, "seed": seed}
                rows.append(SimpleNamespace(
                    key=f"{model}{dropout}{seed}", number=len(rows), data="cora", status=SimpleNamespace(name="DONE"), message=None,
                    described={**told, "normalise_rows": True, "preset": "default"}, finished_at=None,
                    result=Result(50, 200, 0.1, 2 - score, score, round(score - 0.001 * (seed % 3), 6), "all epochs", 0.5),
                ))  # fmt: skip
    return Table.of(rows)


def _noted(best: Best, more: str) -> Best:
    return replace(best, note="; ".join(filter(None, (best.note, more))))


def _diverged(result: Result) -> bool:
    return result.reason == "diverged" or result.valid_score != result.valid_score  # only NaN differs from itself


def _names(over: str | Sequence[str]) -> tuple[str, ...]:
    return (over,) if isinstance(over, str) else tuple(over)


def _matches(name: str, value: Any, wanted: Any) -> bool:
    if name == "model":
        known = wanted.__name__ if isinstance(wanted, type) else wanted
        return value == known or str(value).endswith(f".{known}")
    return value == wanted


def _aligned(names: Sequence[str], leaders: Sequence[Best]) -> list[str]:
    """One line for each leader under a line of headings."""
    if not leaders:
        return ["no trial has finished yet"]
    lines = [[*names, "validation", "test", "seeds"]]
    for best in leaders:
        numbers = [spread(x.mean, x.std, best.score) for x in (best.valid, best.test)]
        lines.append([*(shown(best.settings.get(name)) for name in names), *numbers, f"{best.n}  {best.note}"])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
