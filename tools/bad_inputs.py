"""Print docs/bad-input.md: what is wrong with data and wishes, and the sentence that says so.

The rows are the cases of tests/datasets/test_bad_inputs.py, tests/cli/test_bad_wishes.py and tests/cli/test_study_wishes.py, which
compare every sentence with what is said:

    python tools/bad_inputs.py > docs/bad-input.md
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"

INTRODUCTION = """\
# What you read when something is wrong

Bad data and wishes that cannot be granted end in one sentence: what is wrong, where, and the way out. In Python it is the
message of a `ValueError`, `TypeError` or `OSError`; a command prints it after `unspool: `, without a traceback, and ends with
exit code 2 (with `UNSPOOL_TRACEBACK=1` it shows the traceback too). Files that were there before stay as they were, and none
is left half-written.

**Files from others.** Reading a model, a snapshot or a table runs no code. Compressed files that
unpack to more than 4 GB are refused; `UNSPOOL_LARGEST_GB=16` allows more. Weights, cards, checkpoints and snapshots carry checksums,
so damage is found; a checksum does not say who made a file. A card (`model.json`) names the files that its model was trained on, and
`unspool predict` and `unspool explain` take them without being asked, so that your own runs need no more options; but only if what is in
them is, by its hash, what the model was trained on. Otherwise nothing of them is printed or written: name the data with `--edges` and
`--features` to use them as they are.

The tests make every mistake below and compare what is said; `python tools/bad_inputs.py` prints this page from them. `DIR`
stands for a folder.
"""


def main() -> None:
    """Print the page."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(page(), end="")


def page() -> str:
    """The whole page as Markdown."""
    sys.path.insert(0, str(TESTS))
    try:
        data = importlib.import_module("datasets.test_bad_inputs").CASES
        wishes = importlib.import_module("cli.test_bad_wishes").CASES
        studies = importlib.import_module("cli.test_study_wishes").STUDIES
    finally:
        sys.path.remove(str(TESTS))
    parts = [
        INTRODUCTION, "## Data", table(data), "## Commands and training", table(wishes), "## Studies", table(studies),
    ]  # fmt: skip
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def table(cases: Iterable[tuple[str, Any, str]]) -> str:
    """One row for each case."""
    rows = [f"| {cell(what)} | {cell(sentence.replace('{}', 'DIR'))} |" for what, _, sentence in cases]
    return "\n".join(["| what is wrong | what you read |", "|---|---|", *rows])


def cell(text: str) -> str:
    """Text as it is, inside a table: nothing in it may count as Markdown."""
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    main()
