"""Trials of one shape as one stack: the same module, run once for all of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unspool.nn import Dropout
from unspool.study.batch import check_ahead
from unspool.study.batch.adam import StackedAdam
from unspool.study.batch.fixed_hops import with_fixed_hops
from unspool.study.batch.fixed_numbers import with_fixed_numbers
from unspool.study.batch.stacked_pass import StackedPass
from unspool.train import PreparedTrial
from unspool.train.conduct import Conduct, Unstackable
from unspool.train.epochs import WARM_UP, own_stream
from unspool.train.streams import stream_for

#: Epochs whose numbers wait on a GPU before they are copied to the host.
RING = 64


class StackedBatch:
    """A batch for any module that is written with this package's parts and losses.

    Parameters and buffers of all trials lie side by side in tensors of shape (slots, ...). One module serves as the skeleton:
    ``vmap`` runs it over them, so every trial has its own weights, rates and masks and all share the features and the graph.
    What a trial computes is what it computes alone, to rounding. Members must have the same
    :func:`~unspool.study.engine.batching.signature`.

    On the CPU an epoch is a training pass, a step, and a look at all nodes. On CUDA the look rides with the training pass of the
    next epoch, whose weights are the same: an epoch is a step, then both passes, and what the one reads the other need not read
    again. After a few epochs that run as written the step and the passes are captured as CUDA graphs; numbers wait on the device
    until the end of :meth:`run_epochs`.

    Args:
        members: the first trials, one per slot.
        keep: whether what the trials say of all nodes is kept, in ``said``.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task = train.Task.of(data)
        >>> trials = [Trial(us.models.GCN, {"hidden": 8, "dropout": rate}) for rate in (0.1, 0.5, 0.8)]
        >>> batch = StackedBatch([PreparedTrial(t, t.build(data.features.shape[1], 2), task) for t in trials])
        >>> batch.run_epochs(5).shape
        (5, 3, 4)
    """

    #: Kinds of devices on which the look at an epoch rides with the training pass of the next.
    rides_on = frozenset({"cuda"})

    def __init__(self, members: Sequence[PreparedTrial], keep: bool = False) -> None:
        self._first, self._keep = members[0], keep
        task = members[0].task
        self._device = task.target.device
        skeleton = copy.deepcopy(stackable(members[0])).to(self._device)
        count = len(members)
        asleep = _asleep(skeleton)
        trained = decays(members[0])
        learnt: dict[str, Tensor] = {}
        rest: dict[str, Tensor] = {}
        for name, value in state(skeleton).items():
            if name not in asleep:
                held = learnt if name in trained else rest
                held[name] = value.detach().new_empty(count, *value.shape).requires_grad_(name in trained)
        upper = members[0].trial.config.upper
        self._stream = stream_for(self, self._device)
        self._willing = self._stream is not None  # to be captured: what is captured needs a stream of its own
        self._conduct = Conduct(skeleton.eval())
        self._pass = StackedPass(skeleton, task, learnt, rest, count, RING, any_awake(skeleton), upper, keep)
        self._adam = StackedAdam(learnt)
        self._rides = self._device.type in self.rides_on
        self._ready = False  # whether there are gradients of a pass whose step is still to be taken
        self._grads: dict[str, Tensor] = {}
        self._calls = 0
        self._replay: tuple[Any, Any] | None = None
        self._begun = 0
        self.load(range(count), members)

    @property
    def slots(self) -> int:
        """How many trials train at once."""
        return self._pass.trials

    @property
    def said(self) -> Tensor | None:
        """What each slot said of all nodes after each of the last epochs, at most :data:`RING`; None where it is not kept."""
        return self._pass.said

    @torch.no_grad()
    def load(self, slots: Sequence[int], members: Sequence[PreparedTrial]) -> None:
        """Start trials anew in these slots."""
        if not members:
            return
        held = self._pass
        where = torch.as_tensor(list(slots), device=self._device)
        if self._ready:  # the pass is taken again with the new ones: what it moved on in the others is put back
            held.put_back()
            self._ready = False
        states = [state(stackable(m)) for m in members]
        for name, stack in (held.learnt | held.rest).items():
            stack.index_copy_(0, where, torch.stack([s[name].detach() for s in states]).to(self._device, stack.dtype))
        held.load(where, members)
        each = [decays(m) for m in members]
        self._adam.begin(
            slots, [m.trial.config.lr for m in members], {name: [d[name] for d in each] for name in held.learnt}
        )

    def run_epochs(self, epochs: int) -> NDArray[np.float64]:
        """Train all slots for some epochs."""
        parts: list[NDArray[np.float64]] = []
        for first in range(0, epochs, RING):
            self.start_epochs(min(RING, epochs - first))
            parts.append(self.finish_epochs())
        return np.concatenate(parts)

    def start_epochs(self, epochs: int) -> None:
        """Give the device some epochs to do; see :class:`~unspool.study.batch.AsyncBatch`."""
        self._begun = check_ahead(epochs, RING)
        self._conduct.drew()  # whoever has drawn until now is not this module
        with own_stream(self._stream, self._device):
            if self._rides and not self._ready:
                self._pass.rewind()
                self._take_pass()
                self._ready = True
                if self._calls == 0 and self._stream is not None:
                    # Trap: it makes what all batches on these data share (tiles of X, matrices of the graph), and others wait for no stream of ours.
                    self._stream.synchronize()
            self._pass.rewind()
            for _ in range(epochs):
                self._one()
            self._check()

    def finish_epochs(self) -> NDArray[np.float64]:
        """Wait for what was begun."""
        if self._stream is not None:
            self._stream.synchronize()
        return self._pass.ring[: self._begun].cpu().numpy().copy()

    def compact(self, slots: Sequence[int]) -> StackedBatch:
        """A smaller batch of these slots, with their trials as far as they are."""
        made = StackedBatch([self._first] * len(slots), self._keep)
        where = torch.as_tensor(list(slots), device=self._device)
        made._pass.follow(self._pass, where, before=self._ready)
        made._adam.follow(self._adam, slots)
        return made

    # -- one epoch -------------------------------------------------------------------------------------------------

    def _one(self) -> None:
        """One epoch, its numbers in the ring."""
        self._calls += 1
        if not self._rides:
            self._grads = self._pass.learn()
            self._adam.step(self._grads)
            self._pass.look()
        elif self._replay is not None:
            self._replay[0].replay()
            self._replay[1].replay()
        else:
            self._adam.step(self._grads)
            if self._willing and self._calls > WARM_UP:
                self._check()
                self._capture()
            self._take_pass()

    def _take_pass(self) -> None:
        if self._replay is not None:
            self._replay[1].replay()
        else:
            self._grads = self._pass.learn_and_look()

    def _check(self) -> None:
        """Refuse a module that keeps something beside its state: all slots would share it."""
        if self._replay is not None:
            return
        self._pass.skeleton.eval()
        if (name := self._conduct.changed()) is not None:
            raise Unstackable(f"its forward changes {name!r}, which is neither a parameter nor a buffer")
        if self._conduct.drew():
            raise Unstackable("its forward draws from NumPy's or Python's generator, which no trial's seed sets")

    def _capture(self) -> None:
        """Step and passes as two graphs: a slot that is loaded again needs the passes without the step."""
        step, passes = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(passes, stream=self._stream):
                grads = self._pass.learn_and_look()
            with torch.cuda.graph(step, pool=passes.pool(), stream=self._stream):
                self._adam.step(grads)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # a part that looks at values: it runs as it is written
            self._willing = False
            return
        self._grads, self._replay = grads, (step, passes)


def stackable(member: PreparedTrial) -> nn.Module:
    """The model of a trial, with fixed numbers in tensors where that is known to be the same."""
    return with_fixed_numbers(with_fixed_hops(member.model, member.task.graph))


def state(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each once.

    Example:
        >>> import unspool as us
        >>> list(state(us.nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def decays(member: PreparedTrial) -> dict[str, float]:
    """The weight decay of every parameter that the trial's config trains, by name.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = Trial(us.models.SGC, config=train.TrainConfig(weight_decay=0.1))
        >>> decays(PreparedTrial(trial, trial.build(data.features.shape[1], 2), train.Task.of(data)))
        {'p_pre.weight': 0.1, 'p_pos.bias': 0.1}
    """
    groups = member.trial.config.parameter_groups(member.model)
    by_object = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    return {name: by_object[id(p)] for name, p in member.model.named_parameters() if id(p) in by_object}


def _asleep(model: nn.Module) -> set[str]:
    """State of dropout whose rate is zero in all trials (the signature sees to that): it would compute masks for nothing."""
    return {
        f"{name}.{part}" if name else part
        for name, module in model.named_modules()
        if isinstance(module, Dropout) and float(module.rate) == 0
        for part in ("rate", "key", "count")
    }


def any_awake(model: nn.Module) -> bool:
    """Whether training and evaluation may differ: a part drops, normalises over the nodes, or is not known.

    Example:
        >>> import unspool as us
        >>> any_awake(us.models.SGC(5, 2)), any_awake(us.models.MLP(5, 2)), any_awake(nn.Sequential(nn.Dropout(0.1)))
        (False, True, True)
    """
    return any(float(part.rate) > 0 if isinstance(part, Dropout) else not _plain(part) for part in model.modules())


def _plain(part: nn.Module) -> bool:
    """Whether a part is one of this package's, or one of torch's that holds others."""
    return type(part).__module__.startswith("unspool.") or type(part) in _HOLDERS


_HOLDERS = (
    nn.ModuleList,
    nn.ModuleDict,
    nn.Sequential,
    nn.ParameterList,
    nn.ParameterDict,
    nn.Identity,
    nn.Linear,
    nn.ReLU,
)
