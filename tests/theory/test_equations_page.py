"""docs/equations.md: a row for everything that the paper numbers, and certificates that exist, all of them."""

import re
from pathlib import Path

import pytest

from unspool.theory import CLAIMS

TEXT = (Path(__file__).parents[2] / "docs/equations.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| ")][
    1:
]

#: The paper's own counters: equations (11) to (13) stand in the appendix.
NUMBERED = [f"({n})" for n in range(1, 14)] + ["Example 1", "Theorem 2", "Theorem 7", "Theorem 12"]
NUMBERED += (
    [f"Proposition {n}" for n in (3, 4, 5, 6, 8, 9, 10, 11)] + [f"Table {n}" for n in (1, 2, 3, 4)] + ["Figure 1"]
)
NUMBERED += [f"Section {n}" for n in ("2", "2.1", "2.2", "3", "3.1", "3.2", "4", "5")]


@pytest.mark.parametrize("number", NUMBERED)
def test_everything_with_a_number_has_a_row(number):
    pattern = re.compile(rf"(?<![\w.]){re.escape(number)}(?![\w.]*\d)")
    assert any(pattern.search(row[0]) for row in ROWS), f"{number} has no row"


def test_rows_are_whole():
    assert all(len(row) == 4 and all(row) for row in ROWS)
    assert "waits" not in TEXT
    assert "not yet" not in TEXT


def test_quoted_certificates_exist_and_all_are_quoted():
    quoted = {name for row in ROWS if "certificate" in row[3] for name in re.findall(r'"([^"]+)"', row[3])}
    assert quoted == {claim.name for claim in CLAIMS}
