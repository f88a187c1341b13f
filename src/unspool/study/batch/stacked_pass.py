"""The passes of a stack of trials: training with masks, evaluation without, their losses and scores."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from unspool.models import Model
from unspool.nn import Linear, Perceptron
from unspool.nn.flatten import Densify
from unspool.ops import SparseFeatures
from unspool.ops.kernels import fused
from unspool.ops.stacked_features import Riding, riding
from unspool.study.batch.stacked_upper import StackedUpper
from unspool.train import CrossEntropy, Loss, PreparedTrial, Task
from unspool.train.conduct import Unstackable, check_said, reading, said_with
from unspool.train.streams import stream_for
from unspool.train.upper import Upper
from unspool.unrolling import HopNetwork


class StackedPass:
    """What a stack computes in an epoch but for the step, and all that belongs to its slots but for the optimiser.

    Every slot has its own nodes to learn from and to be looked at, as rows of tensors: a new split is a new row and nothing else.

    Args:
        skeleton: the module that all trials are.
        task: features, graph, targets and loss, which all share.
        learnt, rest: parameters that are trained, and everything else, by name; shape (trials, ...).
        trials, rows: how many trials, and for how many epochs numbers are kept.
        awake: whether training and evaluation may differ.
        upper: what training makes small; the loss of the task when None.
        keep: whether what the trials say of all nodes is kept for as many epochs, in ``said``.
    """

    def __init__(
        self, skeleton: nn.Module, task: Task, learnt: dict[str, Tensor], rest: dict[str, Tensor], trials: int, rows: int, awake: bool,
        upper: Upper | None = None, keep: bool = False,
    ) -> None:  # fmt: skip
        self.skeleton, self.task, self.learnt, self.rest, self.trials = skeleton, task, learnt, rest, trials
        self.device, self.loss, self.awake = task.target.device, task.loss, awake or upper is not None
        self.x = shared_features(skeleton, task)
        self.by_rows = awake and upper is None and decodes_rows(skeleton, task)
        self.upper = None if upper is None else StackedUpper(upper, task, trials)
        self.before = {name: value.detach().clone() for name, value in rest.items()}
        self.epoch_before = torch.ones(trials, dtype=torch.int64, device=self.device)
        self.sets = {
            name: getattr(task, name).new_empty(trials, getattr(task, name).numel())
            for name in ("train", "valid", "test")
        }
        own = task.target.is_floating_point()
        self.goals = task.target.new_empty(trials, *task.target.shape) if own else None
        self.weights = None if task.weight is None else task.weight.new_empty(trials, *task.weight.shape)
        self.ring = torch.full((rows, trials, 4), torch.nan, dtype=torch.float64, device=self.device)
        self.place = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.now = torch.full((trials,), torch.nan, dtype=torch.float64, device=self.device)
        self.keep, self.rows = keep, rows
        self.said: Tensor | None = None
        self._written: dict[str, int] = {}  # how often what a look reads had been written to when its passes began
        self._side = stream_for(self, self.device)

    # -- slots ---------------------------------------------------------------------------------------------------------

    def load(self, where: Tensor, members: Sequence[PreparedTrial]) -> None:
        """Nodes, targets, weights and upper levels of some slots."""
        tasks = [member.task for member in members]
        if self.upper is not None:
            self.upper.load(where, members)
        for name, held in self.sets.items():
            held.index_copy_(0, where, torch.stack([getattr(task, name) for task in tasks]))
        if self.goals is not None:
            self.goals.index_copy_(0, where, torch.stack([task.target for task in tasks]))
        if self.weights is not None:
            # The signature sees to it that all have weights, or none.
            self.weights.index_copy_(0, where, torch.stack([task.weight for task in tasks if task.weight is not None]))

    @torch.no_grad()
    def follow(self, other: StackedPass, where: Tensor, before: bool) -> None:
        """Take over some slots of another; ``before``: as they were before its last pass."""
        pairs = [
            (self.learnt, other.learnt),
            (self.rest, other.before if before else other.rest),
            (self.sets, other.sets),
        ]
        for mine, theirs in pairs:
            for name, held in mine.items():
                held.copy_(theirs[name].index_select(0, where))
        if self.upper is not None and other.upper is not None:
            self.upper.follow(other.upper, where)
            epochs = other.epoch_before if before else other.upper.moving
            self.upper.moving.copy_(epochs.index_select(0, where))
        for mine, theirs in ((self.goals, other.goals), (self.weights, other.weights)):
            if mine is not None and theirs is not None:
                mine.copy_(theirs.index_select(0, where))

    @torch.no_grad()
    def put_back(self) -> None:
        """Undo what the last pass moved on: counters of dropout, running means."""
        for name, held in self.rest.items():
            held.copy_(self.before[name])
        if self.upper is not None:
            self.upper.moving.copy_(self.epoch_before)

    def rewind(self) -> None:
        """The next epoch's numbers go into the first row."""
        self.place.zero_()

    # -- passes ----------------------------------------------------------------------------------------------------------

    def learn(self) -> dict[str, Tensor]:
        """A training pass: the gradients; its losses are kept for the row that :meth:`look` writes."""
        self.skeleton.train()
        losses = (
            self._losses(self._outputs(self.rest), "train") if self.upper is None else self._upper_losses(self.upper)
        )
        grads = self._gradients(losses, torch.ones_like(losses))
        self.now.copy_(losses.detach())
        return grads

    @torch.no_grad()
    def look(self) -> None:
        """Look at all nodes, and write the row of this epoch."""
        self.skeleton.eval()
        self._note(self.now, self._looks(self._outputs(self.rest)))

    def learn_and_look(self) -> dict[str, Tensor]:
        """Both with the same weights: the row of the epoch whose step made them, and the gradients of the next.

        The look takes a stream of its own, so that small kernels of the one fill what the other leaves idle.
        """
        with torch.no_grad():
            for name, held in self.before.items():
                held.copy_(self.rest[name])
            if self.upper is not None:
                self.epoch_before.copy_(self.upper.moving)
        self._written = {name: held._version for name, held in (self.before | self.learnt).items()}
        ride = Riding()
        self.skeleton.train()
        if self.upper is not None:
            with riding(ride, collecting=True):
                losses = self._upper_losses(self.upper)
            return self._end(losses, losses, ride)
        with riding(ride, collecting=self.awake):
            outputs = self._outputs(self.rest, self.sets["train"] if self.by_rows else None)
        kernels = type(self.loss) is CrossEntropy and self.weights is None and fused(outputs) and _suits(outputs)
        if kernels and not self.by_rows:
            return self._end_fast(outputs, ride)
        losses = self._row_losses(outputs, "train") if self.by_rows else self._losses(outputs, "train")
        return self._end(losses, outputs, ride)

    def _upper_losses(self, upper: StackedUpper) -> Tensor:
        held = self.learnt | self.rest
        return upper.losses(self.skeleton, held, self.x, self.task, self.sets["train"], self.goals, self.weights)

    def _end(self, losses: Tensor, outputs: Tensor, ride: Riding) -> dict[str, Tensor]:
        """Gradients and the look."""
        with self._joined():
            with self._aside(), torch.no_grad():
                looked = self._looks(self._seen(outputs, ride))
            grads = self._gradients(losses, torch.ones_like(losses))
        with torch.no_grad():
            self._note(self.now, looked)
            self.now.copy_(losses.detach())
        return grads

    def _end_fast(self, outputs: Tensor, ride: Riding) -> dict[str, Tensor]:
        """The same by kernels over all trials."""
        from unspool.ops.kernels import losses_cuda

        with self._joined():
            with self._aside(), torch.no_grad():
                seen = self._seen(outputs, ride)
                self._keep(seen)
                valid, test = (losses_cuda.look(seen, self.sets[name], self.task.target) for name in ("valid", "test"))
            found, slope = losses_cuda.learn(outputs.detach(), self.sets["train"], self.task.target)
            grads = self._gradients(outputs, slope)
        train_count, valid_count, test_count = (self.sets[name].shape[1] for name in ("train", "valid", "test"))
        losses_cuda.note(found, valid, test, self.now, self.ring, self.place, (train_count, valid_count, test_count))
        self.place.add_(1)
        return grads

    def _seen(self, outputs: Tensor, ride: Riding) -> Tensor:
        """What the trials say in evaluation."""
        if not self.awake:
            return outputs.detach()
        self.skeleton.eval()
        with riding(ride, collecting=False):
            # Trap: batch normalisation has moved on its means for the next epoch already.
            seen = self._outputs(self.before)
        for name, held in (self.before | self.learnt).items():
            if held._version != self._written[name]:  # the pass of the next epoch, which has begun, would not know
                raise Unstackable(f"its forward writes into {name!r}, and not in training alone")
        return seen

    def _outputs(self, rest: dict[str, Tensor], rows: Tensor | None = None) -> Tensor:
        """What every trial says about every node, or about some rows of its own: (trials, nodes, outputs)."""
        held = self.learnt | rest
        with reading(self.skeleton, self.x):
            outputs, moved = vmap(self._output)(held) if rows is None else vmap(self._output)(held, rows)
        with torch.no_grad():
            for name, value in moved.items():
                rest[name].copy_(value)
        return outputs

    def _output(self, held: dict[str, Tensor], rows: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        given = {} if rows is None else {"rows": rows}
        output, moved = said_with(self.skeleton, held, (self.x, self.task.graph), given)
        if rows is None:
            check_said(self.skeleton, output, self.task)
        return output, moved

    def _gradients(self, outputs: Tensor, slope: Tensor) -> dict[str, Tensor]:
        found: Any = torch.autograd.grad(outputs, list(self.learnt.values()), slope, allow_unused=True)
        # Trap: a gradient may come transposed, and the fused Adam reads it as if it lay as its parameter does.
        return {name: grad.contiguous() for name, grad in zip(self.learnt, found, strict=True) if grad is not None}

    @contextlib.contextmanager
    def _aside(self) -> Generator[None]:
        if self._side is None:
            yield
            return
        self._side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._side):
            yield

    @contextlib.contextmanager
    def _joined(self) -> Generator[None]:
        """Wait for the look, also where something is raised.

        Trap: a capture whose streams have not come together again ends in an error of its own, which hides that memory was full; and without
        one, memory would go to others that the look still reads.
        """
        try:
            yield
        finally:
            self._join()

    def _join(self) -> None:
        if self._side is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._side)

    # -- numbers ---------------------------------------------------------------------------------------------------------

    def _rows(self, outputs: Tensor, part: str) -> tuple[Tensor, Tensor]:
        """Outputs and targets of one set of nodes, each trial's own."""
        ids = self.sets[part]
        return outputs.gather(1, ids[..., None].expand(-1, -1, outputs.shape[2])), self._targets(part)

    def _losses(self, outputs: Tensor, part: str) -> Tensor:
        """One loss per trial."""
        ids = self.sets[part]
        return self._row_losses(outputs.gather(1, ids[..., None].expand(-1, -1, outputs.shape[2])), part)

    def _row_losses(self, rows: Tensor, part: str) -> Tensor:
        """The same of the outputs of these nodes alone."""
        weight = None if self.weights is None else _own_rows(self.weights, self.sets[part])
        return _losses(self.loss, rows, self._targets(part), weight)

    def _targets(self, part: str) -> Tensor:
        ids = self.sets[part]
        return self.task.target[ids] if self.goals is None else _own_rows(self.goals, ids)

    def _looks(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Validation loss, validation score and test score of every trial."""
        self._keep(outputs)
        loss = self._losses(outputs, "valid").double()
        score = _scores(self.loss, *self._rows(outputs, "valid")).double()
        if self.sets["test"].numel() == 0:
            return loss, score, torch.full_like(loss, torch.nan)
        return loss, score, _scores(self.loss, *self._rows(outputs, "test")).double()

    def _keep(self, outputs: Tensor) -> None:
        """What the trials say in this epoch, in its row."""
        if not self.keep:
            return
        if self.said is None:
            self.said = outputs.new_empty(self.rows, *outputs.shape)
        self.said.index_copy_(0, self.place, outputs[None])

    def _note(self, losses: Tensor, looked: Sequence[Tensor]) -> None:
        numbers = torch.stack([losses, *looked], dim=-1)
        numbers = numbers.where(torch.isfinite(numbers[:, :1]), torch.nan)
        self.ring.index_copy_(0, self.place, numbers[None])
        self.place.add_(1)


def decodes_rows(skeleton: nn.Module, task: Task) -> bool:
    """Whether a training pass asks for the training nodes alone: where matrices on wide channels would meet every node in vain.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> task = train.Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> decodes_rows(us.models.JKNet(task.x.shape[1], 2), task)  # on the CPU
        False
    """
    net = getattr(skeleton, "propagation", None)
    if not (isinstance(skeleton, Model) and isinstance(net, HopNetwork) and net.coefficients.ndim == 3):
        return False
    values = task.x.values if isinstance(task.x, SparseFeatures) else task.x
    return fused(values) and net.coefficients.shape[-1] > NARROW


#: Channels up to which matrices at every node cost no more than the hops themselves.
NARROW = 16
#: Dense features that became operators, as long as they live: batches of a study follow one another.
_OPERATORS: Any = WeakTensorKeyDictionary()
#: Sparse ones that became dense, likewise.
_WRITTEN_OUT: WeakKeyDictionary[SparseFeatures, Tensor] = WeakKeyDictionary()


def shared_features(skeleton: nn.Module, task: Task) -> Any:
    """The features of a task: dense ones as an operator where the first layer takes one and has kernels for it, sparse ones written out
    where a model denoises the features themselves.

    Under dropout a tensor would become one tensor for each trial; an operator lays masks on while it multiplies.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> task = train.Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> shared_features(us.models.MLP(task.x.shape[1], 2), task) is task.x  # on the CPU
        True
    """
    x, first = task.x, getattr(skeleton, "p_pre", None)
    if isinstance(x, SparseFeatures) and isinstance(first, Densify):
        if x not in _WRITTEN_OUT:
            _WRITTEN_OUT[x] = x.to_dense()
        return _WRITTEN_OUT[x]
    if not (isinstance(x, Tensor) and x.ndim == 2 and isinstance(first, Perceptron | Linear) and fused(x)):
        return x
    known = _OPERATORS.get(x)
    if known is None:
        known = _OPERATORS[x] = SparseFeatures.from_tensor(x)
    return known


def _suits(outputs: Tensor) -> bool:
    from unspool.ops.kernels import losses_cuda

    return losses_cuda.suits(outputs)


def _own_rows(held: Tensor, ids: Tensor) -> Tensor:
    """Rows ``ids[t]`` of ``held[t]``, for every trial t."""
    return held[torch.arange(ids.shape[0], device=ids.device)[:, None], ids]


def _losses(loss: Loss, rows: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """One loss per trial, of rows of shape (trials, nodes, outputs)."""
    if not isinstance(loss, CrossEntropy):
        return vmap(loss.loss)(rows, target) if weight is None else vmap(loss.weighted)(rows, target, weight)
    # Trap: cross_entropy under vmap runs in Python, and loads a package for symbolic maths first (two seconds).
    each = functional.cross_entropy(rows.flatten(0, 1), target.flatten(), reduction="none").view(target.shape)
    return each.mean(-1) if weight is None else (weight * each).sum(-1) / weight.sum(-1)


def _scores(loss: Loss, rows: Tensor, target: Tensor) -> Tensor:
    """One score per trial."""
    if not isinstance(loss, CrossEntropy):
        return vmap(loss.score)(rows, target)
    return (rows.argmax(-1) == target).to(rows.dtype).mean(-1)
