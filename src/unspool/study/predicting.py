"""What the networks of many trials predict for all nodes, trained together: the stuff that averages are made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unspool.datasets import Dataset
from unspool.device import check_device, device_for
from unspool.errors import UNSHOWN, DataError, IncompatibleError, InputError
from unspool.files import Unsound, read_sealed, write_sealed
from unspool.study.engine import train_trials
from unspool.study.engine.progress import Progress
from unspool.study.engine.tracker import MemoryTracker
from unspool.study.search.space import Space
from unspool.train import Result, Trial, TrialLoader
from unspool.train.task_kind import TaskKind


def predictions(
    space: Space | Sequence[Trial],
    dataset: Dataset | str | TrialLoader,
    *,
    folder: str | os.PathLike[str] | None = None,
    device: torch.device | str | None = None,
    watch: Callable[[Progress], None] | None = None,
    most: int = 1024,
    seconds: float | None = None,
) -> dict[Trial, Tensor]:
    """Train trials, as many at once as fit, and give what each network predicts for every node at the epoch that was chosen.

    A study keeps numbers, and trains a trial again where its network is wanted. This keeps predictions, for whoever averages
    several networks, which is often better than the best of them: which one is best, validation nodes cannot tell for sure.

    Args:
        space: from :func:`~unspool.study.grid` or :func:`~unspool.study.random`, or trials. Those of an average have the same seed, and
            with it the same split.
        dataset: a name, a dataset with a split, or a :class:`~unspool.train.TrialLoader`, which also says what is predicted.
        folder: where predictions are kept, each in a file that is named by the trial's key; what is there is not trained again.
        device: a GPU where there is one when omitted.
        watch: told now and then how it is getting on.
        most: the largest number of trials at once.
        seconds: end after so long; trials that have not ended are missing from the answer.

    Returns:
        By trial, float32 on the CPU, one row per node: probabilities of classes, or numbers in the units of the targets.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> said = us.study.predictions(us.study.grid(us.models.GCN, us.models.APPNP, hidden=8, epochs=20), data)
        >>> mean = torch.stack(list(said.values())).mean(0)
        >>> mean.shape, bool(torch.allclose(mean.sum(-1), torch.ones(60)))
        (torch.Size([60, 2]), True)
    """
    if isinstance(dataset, TrialLoader) and device is not None:
        raise InputError("device", UNSHOWN, "nothing with a TrialLoader, which has its own", "give it to the loader")
    if device is not None:
        check_device(str(device))
    loader = dataset if isinstance(dataset, TrialLoader) else TrialLoader(dataset, device_for(device))
    if loader.kind is TaskKind.LINKS:
        raise IncompatibleError(
            "predictions are about nodes, and these networks score pairs of them; us.links.score_pairs asks a trained network"
        )
    trials = space.trials(loader.name) if isinstance(space, Space) else list(space)
    kept = _Kept(loader, None if folder is None else Path(folder))
    waiting = [trial for trial in dict.fromkeys(trials) if not kept.read(trial)]
    train_trials(waiting, loader.prepare, kept, most=most, watch=watch, seconds=seconds, keep=kept.hold)
    kept.check()
    return {trial: kept.said[trial] for trial in trials if trial in kept.said}


class _Kept(MemoryTracker):
    """Predictions in memory, and in a folder where there is one."""

    def __init__(self, loader: TrialLoader, folder: Path | None) -> None:
        super().__init__()
        self.loader, self.folder = loader, folder
        self.said: dict[Trial, Tensor] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def hold(self, trial: Trial, output: Tensor) -> None:
        """What a network said, in the words of the task."""
        task, answer = self.loader.task(trial.seed, trial.normalise_rows), self.loader.kind.answer(output.double())
        answer = answer if task.scaling is None else task.scaling.undo(answer)
        self.said[trial] = answer.float().cpu()

    def finish(self, ended: Sequence[tuple[Trial, Result]]) -> None:
        """Write predictions down."""
        super().finish(ended)
        for trial, _ in ended:
            if self.folder is not None and trial in self.said:
                numbers = self.said[trial].numpy()
                write_sealed(
                    self._file(trial), lambda file, numbers=numbers: np.save(file, numbers, allow_pickle=False)
                )

    def read(self, trial: Trial) -> bool:
        """Whether the folder has it, which is then held."""
        if self.folder is None or not (file := self._file(trial)).exists():
            return False
        try:
            numbers = np.load(read_sealed(file), allow_pickle=False)
        except (Unsound, ValueError, EOFError) as problem:
            raise DataError(
                str(file), f"is not what was written there ({problem})", "remove it, and run this again"
            ) from None
        self.said[trial] = torch.from_numpy(numbers)
        return True

    def check(self) -> None:
        """Refuse where a trial has ended without a prediction."""
        for trial, message in self.failures.items():
            raise IncompatibleError(f"{trial} has no prediction: {message}")
        for trial, result in self.results.items():
            if trial not in self.said:
                why = (
                    "it diverged"
                    if not result.epoch
                    else "it trains in batches, or from the disk, and sees no node whole"
                )
                raise IncompatibleError(f"{trial} has no prediction: {why}; leave it out")

    def _file(self, trial: Trial) -> Path:
        assert self.folder is not None
        return self.folder / f"{trial.key(self.loader.fingerprint)}.npy"
