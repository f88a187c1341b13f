"""Print docs/bad-input.md: what can be wrong with data, options and arguments, and the message for each case.

The rows are the cases of tests/datasets/test_bad_inputs.py, tests/cli/test_bad_input.py and tests/cli/study/test_bad_input.py,
which compare every sentence with the message that is printed or raised:

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
# Error messages for bad input

Bad data, and options or arguments that cannot be met, end in one sentence: what is wrong, where, and what to do about it. In Python it
is the message of a `ValueError`, `TypeError` or `OSError`; a command prints it after `unspool: `, without a traceback, and ends with
exit code 2 (with `UNSPOOL_TRACEBACK=1` it shows the traceback too). Existing files stay as they were, and no file is left half-written.

**Files from others.** Reading a model, a snapshot or a table runs no code. Compressed files that
unpack to more than 4 GB are refused; `UNSPOOL_LARGEST_GB=16` allows more. Weights, cards and snapshots carry checksums,
so damage is found; a checksum does not say who made a file. A card (`model.json`) names the files that its model was trained on.
`unspool predict` and `unspool explain` read them when no data are given, so that your own runs need no more options, but only if their
contents have the hash of the data that the model was trained on. Otherwise nothing of them is printed or written: give the data with
`--edges` and `--features` to use them as they are.

The tests make every mistake below and compare the messages; `python tools/bad_inputs.py` prints this page from them. `DIR`
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
        commands = importlib.import_module("cli.test_bad_input").CASES
        study = importlib.import_module("cli.study.test_bad_input")
        studies = [*study.STUDIES, *study.DISTURBED]
    finally:
        sys.path.remove(str(TESTS))
    parts = [
        INTRODUCTION, "## Data", table(data), "## Commands and training", table(commands), "## Studies", table(studies),
    ]  # fmt: skip
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def table(cases: Iterable[tuple[str, Any, str]]) -> str:
    """One row for each case."""
    rows = [f"| {cell(what)} | {cell(sentence.replace('{}', 'DIR'))} |" for what, _, sentence in cases]
    return "\n".join(["| what is wrong | message |", "|---|---|", *rows])


def cell(text: str) -> str:
    """Text as it is, inside a table: nothing in it may count as Markdown."""
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    main()
