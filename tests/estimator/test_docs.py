"""The page about estimators: its code runs."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


ROOT = Path(__file__).parents[2]


def test_code_on_the_page_runs(capsys):
    text = (ROOT / "docs" / "estimators.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), "docs/estimators.md", "exec"), {"__name__": "page"})
    assert "αₖ ‖H − X‖²" in capsys.readouterr().out
