"""``unspool study model``: the trained network of one trial, as a folder."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from torch import nn

from unspool.cli.card import what_is_wrong
from unspool.cli.data_options import DataOptions
from unspool.cli.paths import check_folder
from unspool.cli.study.open_study import console_for, find_row, is_diverged
from unspool.cli.study.screen import echo
from unspool.cli.train_options import loader_of, optional_model
from unspool.cli.training_data import check_there, files_of
from unspool.datasets.registry import is_registered
from unspool.device import check_device, device_for
from unspool.errors import IncompatibleError
from unspool.report import machine
from unspool.study import Row, Status, train_again
from unspool.study.results.commands import data_words
from unspool.train import Trial, TrialLoader
from unspool.train.run_folder import save_trained


def run(
    file: Path, wanted: str, model: str | None, data: DataOptions, out: Path, device: str | None, as_json: bool
) -> None:
    """Train the trial again, compare, write."""
    row = find_row(file, wanted)
    if row.status is not Status.DONE:
        way = (
            "study run --retry-failed trains it again"
            if row.status is Status.FAILED
            else "run the study again to train it"
        )
        raise ValueError(f"trial {row.number} of {file} has no trained network: it is {row.status.value}; {way}")
    if is_diverged(row):
        raise ValueError(
            f"trial {row.number} of {file} has no trained network: its losses became infinite; choose one with a lower learning rate"
        )
    data.check()
    check_device(device_for(device))
    check_folder(out)
    loader = _loader(file, row, data, device_for(device))
    hand_over(row, loader, out, model=optional_model(model))
    if as_json:
        echo({"number": row.number, "key": row.key, "folder": str(out)})
        return
    console = console_for()
    console.print(f"trial {row.number} was trained again with the same result; its network is in {out}", markup=False)
    words = ["unspool", "predict", str(out), *([] if model is None else ["--model", model]), *data_words(row)]
    console.print(f"  {shlex.join(words)}", markup=False)


def hand_over(
    row: Row, loader: TrialLoader, out: Path, trial: Trial | None = None, model: type[nn.Module] | None = None
) -> None:
    """Train the trial of a row again, and write its network."""
    trial, made, run = train_again(row, loader, trial, model=model)
    facts = {"device": str(loader.device), "hardware": machine(str(loader.device))}
    save_trained(made, run, trial, loader, out, facts)


def _loader(file: Path, row: Row, data: DataOptions, device: str) -> TrialLoader:
    """The data of a trial: those that the user names, else those that the study names and this machine has."""
    source = row.data.source
    problem = what_is_wrong({"data": {"source": source}, "task": {"kind": row.data.kind}})
    if problem is not None:
        raise ValueError(f"trial {row.number} of {file} is damaged: {problem}; restore a copy, or run it again")
    if data.own or data.dataset is not None:
        counted = () if source is None else tuple(source.get("class_weight", ()))
        return loader_of(replace(data, class_weight=counted), row.data.kind, device)
    if source is None:
        raise ValueError(
            f"the study does not say where {row.data.name} came from; give the data with --dataset or --edges"
        )
    name = source.get("dataset", "")
    if ":" in name and not is_registered(name):
        raise IncompatibleError(
            f"the study was run on {name}, which is not imported just because a file names it; name it with --dataset"
        )
    named = DataOptions.from_record(source)
    named = replace(named, data=data.data, split=named.split if data.split is None else data.split)
    return _of_files(row, named, device) if named.own else loader_of(named, row.data.kind, device)


def _of_files(row: Row, named: DataOptions, device: str) -> TrialLoader:
    """The files that a study names, if they hold what the trial was trained on; otherwise nothing of them is quoted."""
    check_there(named.record())
    try:
        loader = loader_of(named, row.data.kind, device)
    except (ValueError, TypeError, OSError, ImportError):
        loader = None
    if loader is None or loader.fingerprint != row.data.fingerprint:
        raise ValueError(
            f"{', '.join(files_of(named.record()))}: not what trial {row.number} was trained on, or not readable; give the data "
            "with --edges and --features"
        )
    return loader
