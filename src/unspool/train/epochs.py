"""One epoch as a machine: a step on the training items, or one on each batch of them, and a look at all; on a GPU, one CUDA graph."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Generator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError, mention
from unspool.train.adam import Adam
from unspool.train.batches import Batch, Batches, batches_of, said
from unspool.train.conduct import Conduct, assigned, check_said, reading
from unspool.train.config import Precision, Rates, TrainConfig
from unspool.train.hyper import Hyper, HyperLevel
from unspool.train.loss import Link, Own
from unspool.train.spreading import SpreadTraining
from unspool.train.streams import stream_for
from unspool.train.task import Task
from unspool.train.threads import threads_for
from unspool.train.upper.level import UpperLevel

#: Epochs that run as they are written before one is captured: libraries choose their kernels, Adam makes its memory.
WARM_UP = 3


class Epochs:
    """Runs epochs of one model; each call is one, and gives train loss, valid loss, valid score and test score.

    On the CPU an epoch is plain torch. On CUDA the first epochs are too; then the whole epoch (forward, backward, optimiser,
    evaluation) is captured as one CUDA graph, and an epoch is a single launch that ends with one small copy to the host. An
    optimiser or a loss that cannot be captured keeps running as written, and so does an epoch in batches; ``captured`` says which it is,
    and ``stepped`` whether a step has been taken. ``said`` is what the network said of all nodes in the last look; None with batches.

    Args:
        model, optimiser, task, config: as in :func:`unspool.train.fit`.
        seed: of the masks of an upper level's perturbations, and of the order of batches.
        done: epochs that were run before, where a run is continued.
        hyper: parameters that learn on validation nodes.
        spread: the part of this process, where several train together.
        batches: a source of batches in the place of the configured one.
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: Any,
        task: Task,
        config: TrainConfig,
        seed: int = 0,
        done: int = 0,
        hyper: Hyper | None = None,
        spread: SpreadTraining | None = None,
        batches: Batches | None = None,
    ) -> None:
        self.model, self.optimiser, self.task, self.config = model, optimiser, task, config
        self.device = task.target.device
        self.captured = False
        self.stepped = False
        self._calls, self._done = 0, done
        self._wants_closure = _wants_closure(optimiser)
        # A captured epoch would keep the learning rate of the moment.
        steady = config.lr_schedule is Rates.CONSTANT
        self._willing = self.device.type == "cuda" and steady and not self._wants_closure and _capturable(optimiser)
        self._batches = batches_of(model, task, config, seed) if batches is None else batches
        if self._batches is not None:
            self._willing = False  # batches differ from epoch to epoch
            if hyper is not None:
                raise IncompatibleError(
                    f"{mention('hyper')} looks at all nodes in every step, which batches and hops on the disk do not show; leave it out"
                )
            named = "batch_size" if batches is None else "batches"
            if self._wants_closure and (config.batch_size is not None or batches is not None):
                raise IncompatibleError(
                    f"{type(optimiser).__name__} looks at the same loss several times in a step; leave {mention(named)} out"
                )
        half = config.precision is Precision.BFLOAT16
        self._upper = None if config.upper is None else UpperLevel(config.upper, model, task, seed, done, half)
        self._hyper = None if hyper is None else HyperLevel(hyper, model, task, config, self._loss)
        if self._hyper is not None:
            self._willing, self.task = False, self._hyper.task  # looks at values
        self._spread = spread
        self._willing = self._willing and spread is None  # processes speak between
        self._stream = stream_for(self, self.device) if self._willing else None
        self._willing = self._stream is not None
        self._replay: Any = None
        self._before: tuple[Conduct, tuple[int, ...]] | None = None
        self._numbers: Tensor | None = None
        self.said: Tensor | None = None

    def __call__(self) -> list[float]:
        """One epoch."""
        self._calls += 1
        if self.config.lr_schedule is not Rates.CONSTANT:
            for group in self.optimiser.param_groups:
                group["lr"] = self.config.rate(self._done + self._calls)
        with on_stream(self._stream, self.device):
            if self._willing and self._calls == WARM_UP:
                self._before = (Conduct(self.model), assigned(self.model))
            if self._willing and self._calls == WARM_UP + 1 and self._steady():
                self._capture()
            if self._replay is None:
                found = self._epoch().tolist()
                return found if self._spread is None else self._spread.numbers(found)
            self._replay()
            assert self._numbers is not None
            return self._numbers.tolist()

    def culprit(self) -> str | None:
        """The term of the upper level that is not finite although the network is, after an epoch that gave no numbers."""
        try:
            return None if self._upper is None else self._upper.culprit()
        except ValueError:  # on a GPU the step has spread it, and the network itself refuses what it sees
            return None

    def _epoch(self) -> Tensor:
        """Four numbers on the device of the task."""
        self.model.train()
        losses: list[Tensor] = []
        for batch in (None,) if self._batches is None else self._batches.training(self._done + self._calls):
            loss = self._step(batch)
            if loss is None:
                return torch.full((4,), torch.nan, dtype=torch.float64)
            losses.append(loss.detach().double().reshape(()))
        if self._upper is not None:
            self._upper.advance()
        self.model.eval()
        with torch.no_grad():
            parts = [self.task.valid, *([self.task.test] if self.task.test.numel() else [])]
            (valid, score), *tested = map(self._look, self._outputs(parts), parts)
            test = tested[0][1] if tested else torch.full_like(valid, torch.nan)
            return torch.stack([losses[0] if len(losses) == 1 else torch.stack(losses).mean(), valid, score, test])

    def _step(self, batch: Batch | None) -> Tensor | None:
        """One step, on everything or on a batch; its loss, or None where that is not finite."""
        self.optimiser.zero_grad(set_to_none=True)
        if self._wants_closure:
            loss = self.optimiser.step(partial(self._closure, batch))
        else:
            loss = self._closure(batch)
            if self.device.type == "cpu" and not bool(torch.isfinite(loss.detach())):
                return None  # before the step spreads it
            self.optimiser.step()
        self.stepped = True
        return loss

    def _closure(self, batch: Batch | None) -> Tensor:
        """The training loss, with its gradients."""
        if self._wants_closure:
            self.optimiser.zero_grad(set_to_none=True)
        if self._hyper is None:
            loss = self._loss() if batch is None else self._loss_of(batch)
            loss.backward()
        else:
            loss = self._hyper.step()
        if self._spread is not None:
            self._spread.sum_gradients(self.model)
        if self.config.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        return loss

    def _loss(self) -> Tensor:
        """What training makes small: the upper level, or the loss of the task alone."""
        if self._upper is not None:
            return self._upper.loss()
        task = self.task
        rows, wanted = task.loss.learn(self._output(), task.train, task.target)
        return task.loss_of(rows, wanted, task.train)

    def _loss_of(self, batch: Batch) -> Tensor:
        """What a batch adds to the mean over all of them."""
        return batch.factor * self.task.loss.over(self._said(*batch[:3]), batch.target, batch.weight)

    def _outputs(self, parts: list[Tensor]) -> list[Tensor]:
        """What the network says of the items of some parts."""
        if self._batches is not None:
            return self._batches.look(self._said, parts)
        self.said = self._output()
        return [self.task.loss.read(self.said, ids) for ids in parts]

    def _look(self, found: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        target = self.task.target.index_select(0, ids)
        return self.task.loss_of(found, target, ids).double(), self.task.loss.score(found, target).double()

    def _output(self) -> Tensor:
        if self._spread is not None:
            return self._spread.output(self.model)
        with reading(self.model, self.task.x):
            output = self._said(self.task.x, self.task.graph, None)
        if not isinstance(self.task.loss, Own | Link):
            check_said(self.model, output, self.task)
        return output

    def _said(self, x: Any, graph: Any, rows: Tensor | None) -> Tensor:
        if self.config.precision is Precision.FULL:
            return said(self.model, x, graph, rows)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            output = said(self.model, x, graph, rows)
        return output.float()

    def _steady(self) -> bool:
        """Whether the last epoch moved parameters and buffers alone: a captured one would do nothing else, and to these tensors."""
        assert self._before is not None
        conduct, buffers = self._before
        self._willing = conduct.changed() is None and buffers == assigned(self.model)
        return self._willing

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self._numbers = self._epoch()
        except RuntimeError:  # a loss that looks at values, say: it runs as it is written
            self._willing = False
            self.optimiser.zero_grad(set_to_none=True)
            return
        self._replay, self.captured = graph.replay, True


@contextlib.contextmanager
def on_stream(stream: Any, device: torch.device) -> Generator[None]:
    """Captured work runs on one stream of its own, from the first epoch on; without a stream nothing changes.

    Example:
        >>> with on_stream(None, torch.device("cpu")):
        ...     pass
    """
    with own_stream(stream, device):
        yield
    if stream is not None:
        torch.cuda.current_stream(device).wait_stream(stream)


@contextlib.contextmanager
def own_stream(stream: Any, device: torch.device) -> Generator[None]:
    """The same, but nothing that is sent later waits for it: packs beside each other would stand one behind the other.

    Example:
        >>> with own_stream(None, torch.device("cpu")):
        ...     pass
    """
    if stream is None:
        yield
        return
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield


@contextlib.contextmanager
def few_threads(task: Task) -> Generator[None]:
    """As many threads as :func:`~unspool.train.threads.threads_for` says while a graph is trained on the CPU; torch's own after.

    An epoch on a few thousand nodes is hundreds of operations of some ten microseconds. A second thread gains little on
    them (8 against 12 ms an epoch on CiteSeer, two quiet cores), and where another program wants its core, every operation
    waits for it: 650 ms were measured. It also makes results independent of the number of cores.

    Example:
        >>> import torch
        >>> from unspool import datasets, train
        >>> with few_threads(train.Task.of(datasets.load("citeseer"))):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    wanted = threads_for(task.nodes) if task.target.device.type == "cpu" else before
    if wanted != before:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        if wanted != before:
            torch.set_num_threads(before)


def make_optimiser(config: TrainConfig, model: nn.Module, hyper: Hyper | None = None) -> Any:
    """The configured optimiser over the model's parameters, fused where it is Adam and ready for CUDA graphs where it can be."""
    if hyper is not None:
        # Some of those that are refused would not even take the groups: L-BFGS has one for all.
        tried = config.optimiser([{"params": list(model.parameters()), "weight_decay": 0.0}], lr=config.lr)
        if _wants_closure(tried) or config.lr_schedule is not Rates.CONSTANT:
            raise IncompatibleError(
                "hyper goes with a constant learning rate, and an optimiser that takes one step; leave it out"
            )
    groups = config.parameter_groups(model) if hyper is None else hyper.groups(model, config)
    if config.optimiser is torch.optim.Adam and all(p.device.type in ("cpu", "cuda") for p in model.parameters()):
        return Adam(groups, lr=config.lr)
    knows = inspect.signature(config.optimiser).parameters
    devices = {p.device.type for group in groups for p in group["params"]}
    options: dict[str, Any] = {}
    if "capturable" in knows and devices == {"cuda"}:
        options["capturable"] = True
    if "fused" in knows and devices <= {"cuda", "cpu"}:
        options["fused"] = True
    made = config.optimiser(groups, lr=config.lr, **options)
    if "weight_decay" not in made.defaults and any(group["weight_decay"] for group in groups):
        raise IncompatibleError(
            f"{type(made).__name__} has no weight decay; give {mention('weight_decay', 0)}, or another optimiser"
        )
    return made


def _capturable(optimiser: Any) -> bool:
    return all(group.get("capturable", False) for group in optimiser.param_groups)


def _wants_closure(optimiser: Any) -> bool:
    """Whether a step evaluates the loss itself, as L-BFGS does."""
    step = inspect.unwrap(type(optimiser).step)
    closure = inspect.signature(step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty
