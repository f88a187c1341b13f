"""``unspool study run --keep``: the networks of the best settings, as folders beside the file of the study."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from unspool import study
from unspool.cli.paths import check_folder
from unspool.cli.study.model import hand_over
from unspool.cli.study.open_study import is_diverged
from unspool.cli.study.screen import echo
from unspool.models.pretrained import CARD, HISTORY, WEIGHTS, history_fits, read_card
from unspool.study import Row, Trial
from unspool.train import TrialLoader

_PLACE = re.compile(r"best\d+/seed\d+")


def folder_for(file: Path) -> Path:
    """Where the networks of a study go; no two files share it.

    Example:
        >>> folder_for(Path("out/study.db")).as_posix()
        'out/study.db.models'
    """
    return file.with_name(f"{file.name}.models")


def check_before(file: Path) -> None:
    """Refuse before the training what would go wrong after it: a folder that cannot be written, older networks that are damaged."""
    check_folder(folder_for(file))
    for place in _places(folder_for(file)):
        read_card(place)


def keep(
    file: Path,
    best: Sequence[study.Best],
    rows: Sequence[Row],
    loader: TrialLoader,
    trials: dict[str, Trial],
    as_json: bool,
    console: Console,
) -> None:
    """Write the networks of the best settings, in the place of those that an earlier run has kept.

    Args:
        file: of the study.
        best: the settings, the best first.
        rows: of all trials.
        loader: of their data.
        trials: by their keys.
        as_json: JSON lines instead of text.
        console: where text goes.
    """
    folder, by_number = folder_for(file), {row.number: row for row in rows}
    for old in _places(folder):
        _remove(old)
    for place, one in enumerate(best, 1):
        for number in one.numbers:
            row = by_number[number]
            if is_diverged(row):
                console.print(f"trial {number} diverged, so it has no network", markup=False)
                continue
            out = folder / f"best{place}" / f"seed{row.trial['seed']}"
            hand_over(row, loader, out, trials[row.key])
            if as_json:
                echo({"event": "kept", "number": number, "folder": str(out)})
            else:
                console.print(f"kept trial {number} in {out}", markup=False)


def _places(folder: Path) -> list[Path]:
    """Where networks of an earlier run are."""
    found = [card.parent for card in folder.glob(f"best*/seed*/{CARD}")]
    return sorted(place for place in found if _PLACE.fullmatch(place.relative_to(folder).as_posix()))


def _remove(place: Path) -> None:
    """Remove what we have written; what else lies there is the user's, and stays."""
    card = read_card(place)
    ours = [CARD, *([HISTORY] if "history_sha256" in card and history_fits(place, card) else [])]
    weights = str(card.get("weights"))
    for name in [*ours, *([weights] if re.fullmatch(WEIGHTS, weights) else [])]:
        (place / name).unlink(missing_ok=True)
    for empty in (place, place.parent):
        with suppress(OSError):
            empty.rmdir()
