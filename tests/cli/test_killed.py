"""Kill -9 at random moments: every resume works, and the end is that of a run that was left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from unspool.models.pretrained import load_with_card

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_many_times(tmp_path, kills):
    script = Path(__file__).with_name("killed.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(kills)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"killed {kills}, and over a finished model {kills // 2}" in done.stdout
    for seed in ("seed0", "seed1"):
        (whole, a), (cut, b) = (load_with_card(tmp_path / name / seed) for name in ("whole", "cut"))
        seconds = a["metrics"].pop("seconds"), b["metrics"].pop("seconds")
        assert min(seconds) > 0
        assert json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
        assert all(torch.equal(p, q) for p, q in zip(whole.parameters(), cut.parameters(), strict=True))
        histories = [(tmp_path / name / seed / "history.csv").read_text() for name in ("whole", "cut")]
        assert histories[0] == histories[1]
        # Nothing half-written lies about: neither snapshots nor what a killed process was writing.
        assert sorted(p.suffix for p in (tmp_path / "cut" / seed).iterdir()) == [".csv", ".json", ".safetensors"]
