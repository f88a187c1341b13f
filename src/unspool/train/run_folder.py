"""The folder of a training job: one trained model for each seed, and whatever is needed to go on where a run was cut off."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import nn

from unspool.errors import IncompatibleError, mention
from unspool.evaluate.plain import to_plain
from unspool.files import no_empty_folder, remove_leftovers
from unspool.graph.spreading import Layout
from unspool.models import BuiltFrom, Model, save_pretrained
from unspool.models.pretrained import CARD, HISTORY, WEIGHTS, load_with_card, read_card
from unspool.ops.stored_hops import StoredHops
from unspool.settings import REQUIRED
from unspool.train.callbacks import Callback
from unspool.train.class_weight import Balance
from unspool.train.evaluation import evaluate_trained
from unspool.train.fitting import Run
from unspool.train.link_evaluation import evaluate_links
from unspool.train.loader import TrialLoader
from unspool.train.record import Ending, Epoch
from unspool.train.task_kind import TaskKind
from unspool.train.training import train_trial
from unspool.train.trial import Trial, stored

#: A run that has not ended yet.
SNAPSHOT = "run.pt"
#: All that is written into the folder of a seed, as a regular expression; whatever else lies there is the user's.
OURS = "|".join([*map(re.escape, (CARD, HISTORY, SNAPSHOT)), WEIGHTS])


class RunFolder:
    """Trains seeds of a trial into a folder, ``seed0``, ``seed1``, ...; each holds a model that :func:`unspool.load` reads.

    A model that is there already stays, whole, until the new one takes its place in one move.

    Args:
        path: the folder.
        trial: what is trained; its seed does not count.
        loader: the data.
        facts: what else the cards are to say, such as the machine.

    Example:
        >>> import pathlib, tempfile, unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(epochs=5))
        >>> runs = RunFolder(pathlib.Path(tempfile.mkdtemp()), trial, train.TrialLoader(data))
        >>> run = runs.train(seed=3)
        >>> us.load(runs.place(3)).card["metrics"]["epochs"], runs.finished(3) == run.best.test_score
        (5, True)
    """

    def __init__(self, path: Path, trial: Trial, loader: TrialLoader, facts: Mapping[str, Any] | None = None) -> None:
        self.path, self.trial, self.loader = path, trial, loader
        self.facts: Mapping[str, Any] = {} if facts is None else facts

    def place(self, seed: int) -> Path:
        """The folder of one seed."""
        return self.path / f"seed{seed}"

    def train(
        self,
        seed: int,
        *,
        resume: bool = False,
        snapshot_every: float = 10.0,
        watch: Callable[[Epoch, Epoch], None] | None = None,
        callbacks: Sequence[Callback] = (),
        spread: Layout | None = None,
    ) -> Run:
        """Train one seed and keep it.

        Args:
            seed: of the weights, the masks and, where splits are drawn, the split.
            resume: go on where the last run was cut off.
            snapshot_every: seconds between snapshots.
            watch: called after each epoch with it and the best so far.
            callbacks, spread: as of :func:`~unspool.train.fit`.
        """
        self._check_storable()
        place = self.place(seed)
        trial, snapshot = self.trial.with_seed(seed), place / SNAPSHOT
        with no_empty_folder(place):
            place.mkdir(parents=True, exist_ok=True)
            remove_leftovers(place, OURS)
            model, run = train_trial(
                trial, self.loader, watch=watch, callbacks=callbacks, snapshot=snapshot, snapshot_every=snapshot_every, restart=not resume,
                spread=spread,
            )  # fmt: skip
            save_trained(model, run, trial, self.loader, place, self.facts)
        if run.ending is not Ending.INTERRUPTED:
            snapshot.unlink(missing_ok=True)
        return run

    def _check_storable(self) -> None:
        """Before hours are spent on it: what cannot be kept is named."""
        schema, settings = self.trial.schema, self.trial.settings
        whole = issubclass(self.trial.model, Model)  # others are built again from what was given alone
        schema.to_plain(schema.complete(settings) if whole else schema.check(settings))

    def finished(self, seed: int, model: type[nn.Module] | None = None) -> float | None:
        """The test score of a run that came to its end, if there is one; one of another trial is refused."""
        place = self.place(seed)
        # A later run that was cut off is to be continued.
        if not (place / CARD).is_file() or (place / SNAPSHOT).is_file():
            return None
        card = read_card(place)
        metrics: Mapping[str, Any] = card.get("metrics") or {}
        if metrics.get("ending") == Ending.INTERRUPTED.name.lower():
            return None
        trial = self.trial.with_seed(seed)
        if metrics.get("ending") == Ending.STOPPED.name.lower() and metrics.get("epochs", 0) <= trial.config.epochs:
            # More epochs change nothing where the run ended by itself.
            trial = _with_epochs(trial, card)
        if card.get("key") != trial.key(self.loader.fingerprint):
            raise IncompatibleError(
                f"{place} was trained with {_difference(card, trial, self.loader)}; choose another {mention('path')}, "
                f"or leave {mention('resume')} out"
            )
        load_with_card(place, model=self.trial.model if model is None else model)  # a damaged model is not finished
        return metrics.get("test_score")


def save_trained(
    model: nn.Module, run: Run, trial: Trial, loader: TrialLoader, place: Path, facts: Mapping[str, Any] | None = None
) -> Path:
    """Write a trained trial into a folder, with everything that is known about it."""
    ending = {"epochs": len(run.history), "ending": run.ending.name.lower(), "seconds": run.seconds}
    return save_pretrained(
        model,
        place,
        built_from=BuiltFrom(int(loader.data.features.shape[1]), loader.outputs, trial.settings, trial.model_code),
        history=_history(run),
        trial=trial.to_plain(),
        key=trial.key(loader.fingerprint),
        data=_data(loader, trial),
        task=_task(loader, trial),
        **_links(model, loader, trial),
        metrics={**asdict(run.best), "seed": trial.seed, **ending},
        evaluation=to_plain(evaluate_trained(model, loader, trial)),
        **({} if facts is None else dict(facts)),
    )


def _data(loader: TrialLoader, trial: Trial) -> dict[str, Any]:
    data, source = loader.data, loader.source
    split = None if data.split is None or loader.kind is TaskKind.LINKS else loader.split(trial.seed)
    size = data.statistics()
    return {
        "name": data.name,
        "hash": data.hash,
        "fingerprint": loader.fingerprint,
        "split": None if split is None else split.hash,
        "split_name": None if split is None else split.name,
        "classes": list(data.classes),
        "features": None if data.feature_names is None else list(data.feature_names),
        "targets": [] if source is None else list(source.get("target_columns", [])),
        "categories": {name: list(held) for name, held in data.categories.items()},
        **({"normalisation": data.features.graph["normalisation"]} if isinstance(data.features, StoredHops) else {}),
        "transforms": ["row_normalised"] if trial.normalise_rows else [],
        "notes": list(data.notes),
        "size": {"nodes": size.nodes, "edges": size.edges, "features": size.features},
        "source": None if source is None else dict(source),
    }


def _task(loader: TrialLoader, trial: Trial) -> dict[str, Any]:
    scaling = loader.task(trial.seed, trial.normalise_rows).scaling
    found: dict[str, Any] = {"kind": loader.kind.value, "score": loader.score}
    rule = loader.class_weight
    if rule is not None:
        named = rule.value if isinstance(rule, Balance) else dict(zip(loader.data.classes, rule, strict=True))
        found["class_weight"] = named
    if loader.data.sample_weight is not None:
        found["sample_weight"] = True
    return found if scaling is None else {**found, "centre": scaling.centre.tolist(), "scale": scaling.scale.tolist()}


def _links(model: nn.Module, loader: TrialLoader, trial: Trial) -> dict[str, Any]:
    """What the card of a network that looks for links says more: how it was measured, ranks, and what is reached without it."""
    if loader.kind is not TaskKind.LINKS:
        return {}
    task = loader.task(trial.seed, trial.normalise_rows)
    return {"links": evaluate_links(model, task, trial.seed).to_plain()}


def _history(run: Run) -> bytes:
    """All epochs as a table."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["epoch", "train_loss", "valid_loss", "valid_score", "test_score"])
    rows.writerows([e.epoch, *(f"{v:.6g}" for v in e.to_list()[1:])] for e in run.history)
    return text.getvalue().encode()


def _with_epochs(trial: Trial, card: Mapping[str, Any]) -> Trial:
    there = ((card.get("trial") or {}).get("config") or {}).get("epochs")
    if not isinstance(there, int) or there < 1:
        return trial
    return replace(trial, config=trial.config.replace(epochs=there))


def _difference(card: Mapping[str, Any], trial: Trial, loader: TrialLoader) -> str:
    """What a card has other than a trial, in words."""
    there, here = card.get("trial") or {}, trial.to_plain()
    if there.get("model") != here["model"]:
        return f"the model {there.get('model')}, not {here['model']}"
    schema = trial.schema
    every = {name: stored(schema, name, value) for name, value in schema.complete(trial.settings).items()}
    usual = {s.name: stored(schema, s.name, s.default) for s in schema.values() if s.default is not REQUIRED}
    known = {**usual, **(card.get("settings") or {})}
    for name, value in every.items():
        if known.get(name) != value:
            return f"{name} {known.get(name)}, not {value}"
    for name, value in here["config"].items():
        if (there.get("config") or {}).get(name) != value:
            return f"{name} {(there.get('config') or {}).get(name)}, not {value}"
    if there.get("normalise_rows") != here["normalise_rows"]:
        return "other rows of features (scaled or not)"
    if (card.get("data") or {}).get("fingerprint") != loader.fingerprint:
        return _data_difference(card.get("data") or {}, card.get("task") or {}, trial, loader)
    taught = trial.config.upper is not None and trial.config.upper.objects
    return "another teacher, or other code of the model" if taught else "other code of the model"


def _data_difference(data: Mapping[str, Any], task: Mapping[str, Any], trial: Trial, loader: TrialLoader) -> str:
    if data.get("hash") == loader.data.hash and task.get("kind") != loader.kind.value:
        return f"the loss {task.get('kind')}, not {loader.kind.value}"
    if data.get("hash") == loader.data.hash and data.get("split") != _data(loader, trial)["split"]:
        return "another split"
    return "other data, another split or another loss"
