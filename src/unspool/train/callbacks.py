"""Who looks on while a network is trained: callbacks after each epoch, which may end it, and a tracker for TensorBoard."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from torch import nn

from unspool.errors import InputError
from unspool.train.record import Epoch


class Verdict(Enum):
    """What a callback wants: ``STOP`` ends training after this epoch, ``GO_ON`` (or None) does not."""

    GO_ON = "go on"
    STOP = "stop"


@dataclass(frozen=True, eq=False)
class Moment:
    """What a callback is given after an epoch.

    Attributes:
        epoch: its number, from 1.
        train_loss, valid_loss: the losses of the epoch.
        valid_score, test_score: its scores; NaN where there are no test nodes.
        best: the best epoch so far, by the run's monitor.
        learning_rate: of the step that was taken.
        model: the network as it is after the step, in evaluation mode; to be looked at, not changed.

    Example:
        >>> now = Epoch(3, 0.9, 1.0, 0.5, 0.4)
        >>> Moment.of(now, now, 0.01, nn.Identity()).valid_loss
        1.0
    """

    epoch: int
    train_loss: float
    valid_loss: float
    valid_score: float
    test_score: float
    best: Epoch
    learning_rate: float
    model: nn.Module

    @staticmethod
    def of(now: Epoch, best: Epoch, learning_rate: float, model: nn.Module) -> Moment:
        """From what training writes down."""
        return Moment(
            now.epoch, now.train_loss, now.valid_loss, now.valid_score, now.test_score, best, learning_rate, model
        )


#: A callback: any function of a moment, whose answer says whether training goes on.
Callback = Callable[[Moment], Verdict | None]


def asks_to_stop(callbacks: Sequence[Callback], moment: Moment) -> bool:
    """Call all of them, and say whether one wants to stop.

    Example:
        >>> now = Epoch(3, 0.9, 1.0, 0.5, 0.4)
        >>> moment = Moment.of(now, now, 0.01, nn.Identity())
        >>> asks_to_stop([lambda m: Verdict.STOP if m.epoch >= 3 else None], moment)
        True
    """
    answers = [callback(moment) for callback in callbacks]
    for answer in answers:
        if answer is not None and not isinstance(answer, Verdict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("callbacks", answer, "functions that give Verdict.STOP, Verdict.GO_ON or None")
    return Verdict.STOP in answers


class TensorBoard:
    """A callback that writes losses, scores and the learning rate for TensorBoard (``pip install 'unspool[tensorboard]'``).

    Args:
        folder: where its files go; ``tensorboard --logdir FOLDER`` shows them.
        writer: something with ``add_scalar(name, value, step)`` and ``flush()`` in the place of TensorBoard's own.

    Example:
        >>> class Printer:
        ...     def add_scalar(self, name, value, step):
        ...         print(step, name, value)
        ...     def flush(self):
        ...         pass
        >>> now = Epoch(3, 0.9, 1.0, 0.5, float("nan"))
        >>> TensorBoard(writer=Printer())(Moment.of(now, now, 0.01, nn.Identity()))
        3 loss/train 0.9
        3 loss/valid 1.0
        3 score/valid 0.5
        3 learning_rate 0.01
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, writer: Any = None) -> None:
        if (folder is None) == (writer is None):
            raise InputError("folder", folder, "a folder for TensorBoard's files, or a writer, and not both")
        self._writer: Any = _own_writer(folder) if writer is None else writer

    def __call__(self, moment: Moment) -> None:
        """Write one epoch."""
        named = {
            "loss/train": moment.train_loss, "loss/valid": moment.valid_loss, "score/valid": moment.valid_score,
            "score/test": moment.test_score, "learning_rate": moment.learning_rate,
        }  # fmt: skip
        for name, value in named.items():
            if value == value:  # noqa: PLR0124  NaN is not equal to itself: there are no test nodes
                self._writer.add_scalar(name, value, moment.epoch)
        self._writer.flush()


def check_tensorboard() -> None:
    """Say in one sentence that TensorBoard is not installed, where it is not."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ModuleNotFoundError(
            "TensorBoard is not installed: pip install 'unspool[tensorboard]', or give a writer of your own",
            name="tensorboard",
        )


def _own_writer(folder: Any) -> Any:
    check_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(os.fspath(folder))
