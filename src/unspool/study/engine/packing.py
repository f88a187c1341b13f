"""How trials will be packed, said before they train: which share a stack, and why others do not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unspool.ops import SparseFeatures
from unspool.ops.stacked_features import Form, form_of
from unspool.study.engine.batching import Alone, signature, sort_trials
from unspool.train import PreparedTrial, Trial

#: Stacks that are named; a wide random search has hundreds.
SHOWN = 6


@dataclass(frozen=True)
class Group:
    """Trials that share a stack, or that train one by one for the same reason.

    Attributes:
        models: the names of their models.
        trials: how many they are.
        alone: why they train one by one; None where they share a stack.
        settings: what tells a stack from others of the same model, in plain values.
    """

    models: tuple[str, ...]
    trials: int
    alone: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{self.trials:,} {' and '.join(self.models)}{f' with {told}' if told else ''}"


@dataclass(frozen=True)
class Packing:
    """The groups of some trials: stacks first, the largest of them before others.

    Attributes:
        groups: in this order.
        form: how a GPU multiplies the features of all of them, by the share of their entries that is there; None where they are not sparse.

    Example:
        >>> print(Packing((Group(("GCN",), 40), Group(("MLP",), 2, "its optimiser is SGD, not Adam"))))
        1 stack: 40 GCN
        one by one: 2 MLP (its optimiser is SGD, not Adam)
    """

    groups: tuple[Group, ...]
    form: Form | None = None

    @property
    def stacks(self) -> tuple[Group, ...]:
        """Those that share a stack."""
        return tuple(group for group in self.groups if group.alone is None)

    def __str__(self) -> str:
        stacks, lines = self.stacks, list[str]()
        if stacks:
            shown = [str(group) for group in stacks[:SHOWN]]
            more = [f"{len(stacks) - SHOWN:,} more"] if len(stacks) > SHOWN else []
            lines.append(f"{len(stacks):,} stack{'s'[: len(stacks) > 1]}: {'; '.join([*shown, *more])}")
        lines += [f"one by one: {group} ({group.alone})" for group in self.groups if group.alone is not None]
        return "\n".join(lines)


def packing(trials: Sequence[Trial], provide: Callable[[Trial], PreparedTrial]) -> Packing:
    """How :func:`~unspool.study.train_trials` will pack some trials; a network of every group is built for it, and none is trained.

    How many of a stack train at once is measured when it begins (memory decides), and a batch that breaks while it trains goes on one by one,
    with a warning.

    Args:
        trials: all of them, as in ``grid.trials(data)``.
        provide: makes a trial ready, as :meth:`~unspool.train.TrialLoader.prepare` does.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> loader = us.train.TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> deep = [Trial(us.models.GCN, {"depth": depth}, seed=seed) for depth in (2, 4) for seed in range(3)]
        >>> clipped = Trial(us.models.GCN, config=us.train.TrainConfig(clip=1.0))
        >>> print(packing([*deep, clipped], loader.prepare))
        2 stacks: 3 GCN with depth 2; 3 GCN with depth 4
        one by one: 1 GCN (its gradients are clipped)
    """
    found: dict[Hashable, list[Trial]] = {}
    form: Form | None = None
    for group in sort_trials(trials, provide):
        member = _first(group, provide)
        if isinstance(member, PreparedTrial):
            x = member.task.x
            form = form_of(x) if isinstance(x, SparseFeatures) else form
            found.setdefault(_shared(member, group, provide), []).extend(group)
        else:
            found.setdefault(Alone(f"it cannot be built: {member}"), []).extend(group)
    told = _telling(found)
    made = [Group(_names(some), len(some), _reason(alike), told[alike]) for alike, some in found.items()]
    return Packing(tuple(sorted(made, key=lambda one: (one.alone is not None, -one.trials))), form)


def _first(group: Sequence[Trial], provide: Callable[[Trial], PreparedTrial]) -> PreparedTrial | Exception:
    """The first of a group that can be built, or why none can; a trial that fails says so itself when its turn comes."""
    problem: Exception | None = None
    for trial in group:
        try:
            return provide(trial)
        except Exception as found:
            problem = found
    assert problem is not None
    return problem


def _shared(member: PreparedTrial, group: Sequence[Trial], provide: Callable[[Trial], PreparedTrial]) -> Hashable:
    """The signature of a group by its first; a network of somebody's own may be another for each seed."""
    found = signature(member)
    if len(group) == 1 or isinstance(found, Alone) or type(member.model).__module__.startswith("unspool."):
        return found
    last = _first(group[::-1], provide)
    if isinstance(last, PreparedTrial) and signature(last) != found:
        return Alone("something in it that is neither a parameter nor a buffer is another in each trial")
    return found


def _names(trials: Sequence[Trial]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(trial.name for trial in trials))


def _reason(alike: Hashable) -> str | None:
    return alike.reason if isinstance(alike, Alone) else None


def _telling(found: Mapping[Hashable, Sequence[Trial]]) -> dict[Hashable, dict[str, Any]]:
    """Settings that are the same in all trials of a stack and not in all stacks of its model."""
    stacks = {alike: some for alike, some in found.items() if _reason(alike) is None and len(_names(some)) == 1}
    fixed = {alike: _fixed(some) for alike, some in stacks.items()}
    told: dict[Hashable, dict[str, Any]] = {alike: {} for alike in found}
    for alike, mine in fixed.items():
        others = [fixed[one] for one in stacks if _names(stacks[one]) == _names(stacks[alike])]
        told[alike] = {
            name: value for name, value in mine.items() if any(repr(other.get(name)) != repr(value) for other in others)
        }
    return told


def _fixed(trials: Sequence[Trial]) -> dict[str, Any]:
    plain = [trial.to_plain()["settings"] for trial in trials]
    return {name: value for name, value in plain[0].items() if all(repr(one[name]) == repr(value) for one in plain)}
