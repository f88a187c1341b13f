"""Studies on a real Ray cluster on loopback: killed, interrupted and left alone, every row is that of one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What happened in loopback.py."""
    pytest.importorskip("ray")
    script = [sys.executable, str(Path(__file__).with_name("loopback.py")), str(tmp_path_factory.mktemp("loopback"))]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"}
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=600, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_cluster_is_seen(found):
    assert found["cluster"][0].startswith("3 machines of Ray ")
    assert found["cluster"][1] == 3


def test_each_worker_has_a_gpu_of_its_own_and_rows_are_those_of_one_process(found):
    assert found["gpus"]["table"] == found["alone"]
    assert sorted(gpu for _, gpu in found["gpus"]["workers"]) == ["0", "1"]
    assert len({pid for pid, _ in found["gpus"]["workers"]}) == 2
    best = max(float(result.partition("valid_score=")[2].partition(",")[0]) for result in found["alone"].values())
    assert found["gpus"]["last"] == [24, 24, 0, best]


def test_the_command_line_says_where_it_trains(found):
    told = found["cli"]
    assert (told["code"], told["done"]) == (0, 4)
    start = told["said"][0]
    assert (start["event"], start["machines"], start["jobs"], start["device"]) == ("start", 3, 3, "cpu")
    assert (told["said"][-1]["event"], told["said"][-1]["done"], told["said"][-1]["running"]) == ("summary", 4, 0)


def test_interrupted_and_killed_a_study_ends_as_if_nothing_had_happened(found):
    told = found["disturbed"]
    assert [told[name]["amid"] for name in ("interrupted", "owner", "node")] == [True, True, True]
    assert told["interrupted"]["said"].startswith("KeyboardInterrupt")
    assert "the process that keeps" in told["owner"]["said"]
    assert "run again: everything finished before is kept" in told["owner"]["said"]
    assert told["node"]["said"] == "nothing"  # others took its trials up
    assert [told[name]["held"] for name in ("interrupted", "owner", "node")] == [[], [], []]
    assert 4 <= told["interrupted"]["done"] < told["owner"]["done"] < told["node"]["done"] == 24
    assert told["table"] == found["alone"]
    assert len(found["locks"]) <= 3  # those of the killed owner, which the next to claim removes
