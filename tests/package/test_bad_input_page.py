"""The page of bad inputs says what the tests hear."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tool():
    place = importlib.util.spec_from_file_location("bad_inputs", ROOT / "tools" / "bad_inputs.py")
    made = importlib.util.module_from_spec(place)
    place.loader.exec_module(made)
    return made


def test_the_page_is_what_the_tool_prints():
    page = (ROOT / "docs" / "bad-input.md").read_text(encoding="utf-8")
    assert page == tool().page(), "run: python tools/bad_inputs.py > docs/bad-input.md"
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| what is wrong")]
    assert len(rows) >= 40
    assert all(line.replace(r"\|", "").count("|") == 3 for line in rows)
    assert "{}" not in page


def test_cells_cannot_break_the_table():
    assert tool().cell("a|b *c*") == r"a\|b \*c\*"
    assert tool().table([("one", None, "in {}/x")]).splitlines()[2] == "| one | in DIR/x |"
