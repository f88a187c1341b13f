"""Which trials may share a stack, and why others train one by one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from unspool import train
from unspool.ops.stored_hops import StoredHops
from unspool.study.batch import TrialBatch
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.batch.stacked_batch import StackedBatch, decays, stackable
from unspool.study.batch.stacked_upper import upper_alone
from unspool.study.batch.written import Unwritable, written
from unspool.train import PreparedTrial, Trial
from unspool.train.trial import looks
from unspool.unrolling import Checkpointed, Implicit, Unrolled

#: Trials that fill a GPU by themselves: no other batch trains beside as many.
FULL = 128
#: Losses that go under ``vmap``. Link draws at random, and Own may do anything.
_STACKABLE_LOSSES = (
    train.CrossEntropy, train.Binary, train.MultiLabel, train.Ordinal, train.Regression, train.Counts, train.Ranking,
)  # fmt: skip


@dataclass(frozen=True)
class Alone:
    """That a trial trains by itself.

    Attributes:
        reason: why, about the trial: "its gradients are clipped".
    """

    reason: str


def signature(member: PreparedTrial) -> Hashable:
    """What must be equal for two trials to share a stack; :class:`Alone` where a trial has to train by itself.

    Two models fit together if they are the same but for the *values* of parameters and buffers. This is looked up in the
    models themselves, not in a list of names: everything else that a model is made of (numbers, choices, parts) is written
    out and hashed. Dropout keeps its rate in a buffer, so rates may differ; whether a rate is zero may not, because dropout
    that never drops is left out of the stack. Data must be the same objects, and sets of nodes of the same size.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task = train.Task.of(data)
        >>> def of(**settings):
        ...     trial = Trial(us.models.APPNP, settings)
        ...     return signature(PreparedTrial(trial, trial.build(data.features.shape[1], 2), task))
        >>> of(teleport=0.1, dropout=0.5) == of(teleport=0.2, dropout=0.8)
        True
        >>> of(depth=10) == of(depth=2)
        False
    """
    config, task = member.trial.config, member.task
    reason = _alone(member)
    if reason is not None:
        return Alone(reason)
    try:
        what = written(stackable(member))
    except Unwritable as problem:
        return Alone(str(problem))
    trained = tuple(decays(member))
    if not trained:
        return Alone("nothing in its model is trained")
    sizes = (task.train.numel(), task.valid.numel(), task.test.numel())
    # Numbers are scaled by each split, and lie in the stack; classes are one tensor for all.
    goal = (task.target.shape, task.target.dtype) if task.target.is_floating_point() else id(task.target)
    weight = None if task.weight is None else task.weight.shape
    upper = None if config.upper is None else config.upper.shape
    return (upper, what, trained, task.loss, sizes, id(task.x), id(task.graph), goal, weight)


def open_batch(members: Sequence[PreparedTrial], keep: bool = False) -> TrialBatch:
    """A batch for trials of one signature; ``keep`` whether what they say of all nodes is kept.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = Trial(us.models.MLP, config=train.TrainConfig(optimiser=torch.optim.SGD))
        >>> type(open_batch([PreparedTrial(trial, trial.build(data.features.shape[1], 2), train.Task.of(data))])).__name__
        'SingleTrial'
    """
    # A stack of one on the CPU gains nothing and pays for vmap: 12 ms an epoch in place of 8 (UGDGNN on Cora).
    single = len(members) == 1 and members[0].task.target.device.type == "cpu"
    kind = SingleTrial if single or isinstance(signature(members[0]), Alone) else StackedBatch
    return kind(members, keep)


def sort_trials(trials: Sequence[Trial], provide: Callable[[Trial], PreparedTrial]) -> list[list[Trial]]:
    """Trials that probably share a stack, together; in the order in which they were given.

    Not every model is built for this. Trials with the same settings but for fractions are compared by one of them, whose
    fractions are changed one at a time: a fraction that changes the signature separates its trials, another does not. The
    signature of each trial is looked at again when it is built, so a wrong guess costs time and nothing else.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task = train.Task.of(data)
        >>> provide = lambda trial: PreparedTrial(trial, trial.build(data.features.shape[1], 2), task)
        >>> grid = [Trial(us.models.GPRGNN, {"dropout": d, "depth": k}) for d in (0.2, 0.5) for k in (2, 4)]
        >>> [len(group) for group in sort_trials(grid, provide)]
        [2, 2]
    """
    rough: dict[Hashable, list[Trial]] = {}
    for trial in trials:
        rough.setdefault(_rough(trial), []).append(trial)
    groups: dict[Hashable, list[Trial]] = {}
    for key, some in rough.items():
        telling = _telling(some, provide)
        for trial in some:
            values = tuple(trial.settings[name] for name in telling)
            groups.setdefault((key, values), []).append(trial)
    return list(groups.values())


# -- inside ------------------------------------------------------------------------------------------------------------


def _rough(trial: Trial) -> Hashable:
    """Everything that is known to matter without building a model; of fractions, only whether they are zero."""
    settings = tuple(
        (
            name,
            value == 0.0
            if isinstance(value, float)
            else repr(value)
            if isinstance(value, int | str | None)
            else looks(value),
        )
        for name, value in sorted(trial.settings.items())
    )
    config = trial.config
    upper = None if config.upper is None else config.upper.shape
    how = (config.optimiser, config.precision, config.lower_level, config.alone, upper_alone(config.upper), upper)
    return (trial.model, settings, trial.normalise_rows, *how)


def _telling(trials: list[Trial], provide: Callable[[Trial], PreparedTrial]) -> list[str]:
    """Fractions among the settings that change the signature."""
    first = trials[0]
    names = [name for name, value in first.settings.items() if isinstance(value, float)]
    found: list[str] = []
    base: Hashable | None = None
    for name in names:
        other = next((t.settings[name] for t in trials if t.settings[name] != first.settings[name]), None)
        if other is None:
            continue
        try:
            base = signature(provide(first)) if base is None else base
            changed = replace(first, settings={**first.settings, name: other})
            same = base == signature(provide(changed))
        except Exception:  # whatever is wrong with these settings is told when the trial's own turn comes
            same = False
        if not same:
            found.append(name)
    return found


def _alone(member: PreparedTrial) -> str | None:
    """Why a trial is known to need a batch for itself."""
    config, task = member.trial.config, member.task
    if isinstance(task.x, StoredHops):
        return "its rows are read from the disk"
    if type(task.loss) not in _STACKABLE_LOSSES:
        return f"its loss, {type(task.loss).__name__}, draws at random or may do anything"
    for reason in (config.alone, upper_alone(config.upper)):
        if reason is not None:
            return reason
    for part in member.model.modules():
        if isinstance(part, Unrolled) and isinstance(part.adjoint, Checkpointed):
            return "its steps are checkpointed, which torch cannot do for several trials together"
        # Trap: on the CPU an exact solve ends when all columns have converged, so trials would feel each other.
        if isinstance(part, Unrolled) and isinstance(part.adjoint, Implicit) and task.target.device.type == "cpu":
            return "its lower level is solved exactly, and on a CPU that ends when it has converged"
    return None
