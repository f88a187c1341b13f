"""Writing the report of a reproduction, or of a training job."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from unspool import report as reports
from unspool.cli.card import what_is_wrong
from unspool.cli.data_options import DataOptions
from unspool.cli.paths import check_folder
from unspool.cli.progress import LiveScreen
from unspool.cli.terminal import Terminal, echo
from unspool.cli.train_options import optional_model
from unspool.cli.training_data import check_there
from unspool.datasets import Dataset
from unspool.datasets.registry import is_registered
from unspool.models.pretrained import CARD
from unspool.report.model_card import FILE as MODEL_CARD
from unspool.report.seeds import read_job
from unspool.reproduce import write_report
from unspool.reproduce.report_page import Step


def run(
    folder: Path,
    out: Path | None,
    markdown: Path | None,
    latex: Path | None,
    trials: int,
    model: str | None,
    changed_code: bool,
) -> None:
    """Write the page of a folder, whichever kind it is, and say where it is."""
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: a page is a .html file; choose this ending (Markdown has --markdown)")
    for option, file in (("--out", out), ("--markdown", markdown), ("--latex", latex)):
        if file is not None:
            check_folder(file.parent, option)
    if (folder / CARD).is_file() or any(folder.glob(f"seed*/{CARD}")):
        data = _data(folder)
        if data is None:
            echo("note: the data of the training are not here, so errors are listed without explanations", err=True)
        page = reports.training(folder, out, dataset=data, model=optional_model(model), changed_code=changed_code)
        card = {} if out is not None else {"model card": page.parent / MODEL_CARD}
        _say({"page": page, "Markdown": page.with_suffix(".md"), **card})
        return
    if not folder.is_dir() or not any(folder.iterdir()):
        if folder.suffix.lower() == ".db":
            raise ValueError(
                f"{folder} is a study; its page is written by: unspool study report {shlex.quote(str(folder))}"
            )
        there = "is empty" if folder.is_dir() else "is not a folder" if folder.exists() else "does not exist"
        raise FileNotFoundError(
            f"{folder} {there}, so there is nothing to report; `unspool train` or `unspool reproduce table2` fills a folder with results"
        )
    inner = folder / "results"
    if not any(folder.glob("*.csv")) and any(inner.glob("*.csv")):
        raise ValueError(f"{folder} has its results in a subfolder; run: unspool report {inner}")
    page = Path("report.html") if out is None else out
    with Steps() as steps:
        write_report(folder, page, markdown=markdown, latex=latex, trials=trials, watch=steps.show)
    _say({"page": page, "Markdown": markdown, "LaTeX": latex})


class Steps(LiveScreen[Progress]):
    """How far a report is, on standard error: a bar on a terminal, elsewhere a line when something new begins."""

    def __init__(self) -> None:
        super().__init__(Terminal(stderr=True), as_json=False)
        self._bars: dict[str, Any] = {}
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn())
            self._live = Progress(*columns, console=self.console, transient=True)

    def show(self, step: Step) -> None:
        """One step more."""
        if step.stage not in self._bars:
            self._bars[step.stage] = None if self._live is None else self._live.add_task(step.stage, total=step.total)
            if self._live is None:
                self.console.print(f"{step.stage} ({step.total})")
        if self._live is not None:
            self._live.update(self._bars[step.stage], completed=step.done)


def _data(folder: Path) -> Dataset | None:
    """The data of a job as they were before training, where they are here and have not changed."""
    card = read_job(folder).first.card
    if what_is_wrong(card) is not None:
        return None
    facts = card.get("data") or {}
    source = facts.get("source") or {}
    if not source or (":" in str(source.get("dataset", "")) and not is_registered(source["dataset"])):
        return None
    try:
        check_there(source)
        held = DataOptions.from_record(source).load(split_or_none=True)
    except (ValueError, TypeError, OSError, ImportError):
        return None
    return held if held.hash == facts.get("hash") else None


def _say(files: dict[str, Path | None]) -> None:
    for name, file in files.items():
        if file is not None:
            echo(f"{name}: {file} ({file.stat().st_size / 1e6:.2f} MB)")
