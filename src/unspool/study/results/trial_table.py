"""What many trials say together: which settings are best on validation data, and what they reach on test data."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from unspool.errors import IncompatibleError
from unspool.notebook import paragraphs
from unspool.notebook import table as html_table
from unspool.study.results.best import Best, Measure, Sample, aligned, measure
from unspool.study.results.exporting import RESULTS, distinguishing_columns, order, results_of, shown
from unspool.study.store import Row, Status
from unspool.text import printable
from unspool.train import DataRecord, Ending, Result, TrainConfig

#: So many groups of a dataset are printed.
SHOWN = 10


@dataclass(frozen=True, eq=False)
class TrialTable:
    """The trials of a study, to be looked at: immutable, and every answer a new object.

    Trials that are not finished are kept aside; they only tell which groups are complete.

    Args:
        rows: of a store, in any state. :meth:`of` sorts them and drops repeats.

    Example:
        >>> table = example_table()
        >>> table.varied, len(table)
        (('model', 'dropout', 'seed'), 18)
        >>> print(table.filter(model="GCN"))
        cora: 9 of 9 trials finished, 3 settings
        dropout  validation      test            seeds
        0.5      81.57 ± 0.15 %  81.63 ± 0.10 %  3
        0.2      80.13 ± 0.15 %  80.27 ± 0.10 %  3
        0.8      80.03 ± 0.15 %  80.12 ± 0.10 %  3
    """

    rows: tuple[Row, ...]

    @staticmethod
    def of(rows: Iterable[Row]) -> TrialTable:
        """A table of these rows, each once, in the order of the study."""
        once = {row.key: row for row in rows}
        return TrialTable(tuple(sorted(once.values(), key=lambda row: row.number)))

    @cached_property
    def _flat(self) -> list[dict[str, Any]]:
        return distinguishing_columns(self.rows)

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
            (0.2, 0.8)
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
        return pandas.DataFrame(self.records(), columns=[*self.columns, *RESULTS])

    def filter(self, **values: Any) -> TrialTable:
        """The trials with these settings; a list, set or range means any of its values.

        Models may be named by their class, or without their module.

        Example:
            >>> len(example_table().filter(model="GCN", dropout=[0.2, 0.5]))
            6
        """
        kept = set(range(len(self.rows)))
        for name, value in values.items():
            if name not in self.columns:
                raise ValueError(f"no setting is called {name!r}; there are {', '.join(self.columns)}")
            wanted = list(value) if isinstance(value, list | set | frozenset | range) else [value]
            there = {k for k, one in enumerate(self._flat) if any(_matches(name, one.get(name), w) for w in wanted)}
            if not there:
                known = sorted({one.get(name) for one in self._flat}, key=order)
                raise ValueError(f"no trial has {name}={value!r}; there are {', '.join(map(shown, known))}")
            kept &= there
        return self._only(sorted(kept))

    def groups(self, over: str | Sequence[str] = "seed") -> tuple[Best, ...]:
        """All groups with a finished trial, complete or not, in the order of the study."""
        places, names = self._groups(_names(over)), _names(over)
        return tuple(best for best in (self._best_of(held, names) for held in places) if best.n)

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
            raise IncompatibleError(
                f"scores on {told} cannot be compared; use filter(data=...), best_each() or over=('data', 'seed')"
            )
        ranked, left_out = self._ranked(names, measure(by))
        if not ranked:
            raise IncompatibleError(f"no trial has finished{self._failures() or ' yet'}, so there is no best one")
        return ranked[0].noted(left_out)

    def _failures(self) -> str:
        """How many failed, and why the first did; empty where none has."""
        failed = [row for row in self.rows if row.status is Status.FAILED]
        return f": {len(failed)} of {len(self.rows)} failed ({failed[0].message})" if failed else ""

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
        found = (part._ranked(_names(over), measure(by)) for part in parts)
        return tuple(replace(ranked[0].noted(left_out), varied=told) for ranked, left_out in found if ranked)

    def leaders(
        self, n: int = 10, over: str | Sequence[str] = "seed", by: Measure = Measure.VALID_SCORE
    ) -> tuple[Best, ...]:
        """The ``n`` best groups of each dataset, as :meth:`best` ranks them.

        Example:
            >>> [round(b.valid.mean, 3) for b in example_table().leaders(2)]
            [0.826, 0.817]
        """
        if n < 1:
            raise ValueError(f"n={n}: ask for at least one")
        names = _names(over)
        parts = [self] if "data" in names else self._parts("data")
        ranked = (best for part in parts for best in part._ranked(names, measure(by))[0][:n])
        return tuple(replace(best, varied=self._telling(names)) for best in ranked)

    def __repr__(self) -> str:
        return str(self)

    def html(self) -> str:
        """The best settings of each dataset as tables for a notebook."""
        names = [name for name in self._telling(("seed",)) if name != "data"]
        made: list[str] = []
        for part in self._parts("data"):
            rows = [
                [*(shown(best.settings.get(name)) for name in names), *best.scores, best.n, best.note]
                for best in part._ranked(("seed",), Measure.VALID_SCORE)[0][:SHOWN]
            ]
            head = f"{part._flat[0]['data']}: {len(part)} of {len(part.rows)} trials finished{part._failures()}"
            made.append(html_table(head, [*names, "validation", "test", "seeds", ""], rows))
        return "".join(made) if made else paragraphs(["no trials"])

    _repr_html_ = html

    def __str__(self) -> str:
        names = [name for name in self._telling(("seed",)) if name != "data"]
        texts: list[str] = []
        for part in self._parts("data"):
            ranked, left_out = part._ranked(("seed",), Measure.VALID_SCORE)
            many = len(part._groups(("seed",)))
            notes = [
                note for note in (f"the {SHOWN} best of {len(ranked)}" if len(ranked) > SHOWN else "", left_out) if note
            ]
            name = part._flat[0]["data"]
            head = f"{name}: {len(part)} of {len(part.rows)} trials finished, {many} setting{'s'[: many > 1]}"
            head += part._failures()
            foot = [f"({'; '.join(notes)})"] if notes else []
            texts.append("\n".join([head, *aligned(names, ranked[:SHOWN]), *foot]))
        return printable("\n\n".join(texts)) if texts else "no trials"

    def _parts(self, *names: str) -> list[TrialTable]:
        """One table for each combination of values, in order of appearance."""
        places: dict[tuple[Any, ...], list[int]] = {}
        for place, one in enumerate(self._flat):
            places.setdefault(tuple(one.get(name) for name in names), []).append(place)
        return [self._only(held) for held in places.values()]

    def _only(self, places: Sequence[int]) -> TrialTable:
        part = replace(self, rows=tuple(self.rows[k] for k in places))
        # What was told apart in the whole table keeps its names in a part.
        part.__dict__["_flat"] = [self._flat[k] for k in places]
        return part

    def _telling(self, over: tuple[str, ...]) -> tuple[str, ...]:
        # How one came by the settings changes nothing, so presets tell no groups apart.
        return tuple(name for name in self.varied if name not in over and name != "preset")

    def _groups(self, over: tuple[str, ...]) -> list[dict[tuple[Any, ...], int]]:
        """Groups of trials that agree in everything but ``over``: where each member is among the rows."""
        unknown = [name for name in over if name not in self.columns]
        if unknown and self.rows:
            raise ValueError(
                f"over={unknown[0]!r}: there is no such setting; the settings are {', '.join(self.columns)}"
            )
        groups: dict[Any, dict[tuple[Any, ...], int]] = {}
        for place, one in enumerate(self._flat):
            same = frozenset((k, v) for k, v in one.items() if k not in over and k != "preset")
            member = tuple(one.get(name) for name in over) if over else (self.rows[place].key,)
            held = groups.setdefault(same, {})
            # A rate of 1 and one of 1.0 are two trials of the store and the same settings: the one that is done counts.
            if member not in held or self.rows[place].result is not None:
                held[member] = place
        return list(groups.values())

    def _ranked(self, over: tuple[str, ...], by: Measure) -> tuple[list[Best], str]:
        """The groups from best to worst, complete ones only if there are any; and what was left out."""
        places = self._groups(over)
        found = [(self._best_of(held, over), len(held)) for held in places]
        complete = [best for best, planned in found if best.n == planned]
        less, told = len(places) - len(complete), []
        if complete and less:
            told.append(f"{less} setting{'s'[: less > 1]} with unfinished trials left out")
        sizes = {best.n for best in complete}
        if len(sizes) > 1:
            told.append(f"settings have {min(sizes)} to {max(sizes)} trials each")
        kept = complete if complete else [best for best, _ in found if best.n]
        return sorted(kept, key=lambda best: best.rank(by)), "; ".join(told)

    def _best_of(self, places: dict[tuple[Any, ...], int], over: tuple[str, ...]) -> Best:
        full = len(places)
        done = sorted((m for m, k in places.items() if self.rows[k].result is not None), key=lambda m: [*map(order, m)])
        results = [result for m in done if (result := self.rows[places[m]].result) is not None]
        one = self._flat[next(iter(places.values()))]
        diverged = sum(_diverged(result) for result in results)
        failed = sum(self.rows[k].status is Status.FAILED for k in places.values())
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
            score=self.rows[next(iter(places.values()))].data.score,
            note="; ".join(filter(None, notes)),
            numbers=tuple(self.rows[places[member]].number for member in done),
        )


def example_table(seeds: int = 3) -> TrialTable:
    """A small made-up study to try things on: two models, three rates of dropout, some seeds.

    Example:
        >>> len(example_table(seeds=2))
        12
    """
    rows: list[Row] = []
    config = TrainConfig(weight_decay={"first": 5e-4, "hops": 0.0}, epochs=200).to_plain()
    middles = {("GCN", 0.2): 0.802, ("GCN", 0.5): 0.815, ("GCN", 0.8): 0.800, ("UGDGNN", 0.2): 0.810, ("UGDGNN", 0.5): 0.826, ("UGDGNN", 0.8): 0.818}  # fmt: skip
    for (model, dropout), middle in middles.items():
        for seed in range(seeds):
            luck = (7 * seed + len(rows)) % 5 - 2
            score, test = (round(middle + 0.001 * v, 6) for v in (luck, 2 - seed % 3 + luck / 2))
            trial = {
                "model": model, "settings": {"dropout": dropout}, "config": config, "seed": seed, "normalise_rows": True,
                "preset": "default", "code": "",
            }  # fmt: skip
            result = Result(50, 200, 0.1, 2 - score, score, test, Ending.ALL_EPOCHS, 0.5)
            rows.append(Row(f"{model}{dropout}{seed}", len(rows), DataRecord("cora", ""), trial, Status.DONE, result))
    return TrialTable.of(rows)


def _diverged(result: Result) -> bool:
    return result.ending is Ending.DIVERGED or result.valid_score != result.valid_score  # only NaN differs from itself


def _names(over: str | Sequence[str]) -> tuple[str, ...]:
    return (over,) if isinstance(over, str) else tuple(over)


def _matches(name: str, value: Any, wanted: Any) -> bool:
    if name == "model":
        known = wanted.__name__ if isinstance(wanted, type) else wanted
        return value == known or str(value).endswith((f":{known}", f".{known}"))
    return value == wanted
