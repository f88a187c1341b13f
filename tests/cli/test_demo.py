"""unspool demo: every layer printed, and a picture."""

import os

import pytest

from cli.people import ask

pytestmark = pytest.mark.long


def test_every_layer_is_printed_and_drawn(tmp_path):
    out = tmp_path / "deep" / "demo.png"
    text = ask("demo", "--nodes", "60", "--depth", "4", "--out", out)
    assert "0.15 ‖H − X‖²  +  0.85 ‖B H‖²" in text
    for word in ("noisy input", "exact", "trained on 40 other noise draws", out.name):
        assert word in text
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert os.listdir(out.parent) == ["demo.png"]  # nothing half-written stays


def test_the_same_numbers_twice(tmp_path):
    texts = [ask("demo", "--nodes", "50", "--depth", "3", "--out", tmp_path / "a.png") for _ in range(2)]
    assert texts[0] == texts[1]
