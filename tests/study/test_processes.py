"""Studies of several processes, and of processes that are killed: the table is the same as if nothing had happened."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

import unspool as us
from unspool import datasets
from unspool.study import Status

pytestmark = pytest.mark.long


#: Float32, and batches of other widths: BLAS rounds differently, which moves losses by a few units in the seventh digit.
ROUNDING = 1e-5


@pytest.fixture(scope="module", params=[5, pytest.param(15, marks=pytest.mark.slow)], ids="{} kills".format)
def killing(request, tmp_path_factory):
    """What happened to the processes of killing.py."""
    script = [sys.executable, Path(__file__).with_name("killing.py"), tmp_path_factory.mktemp("killing"), request.param]
    done = subprocess.run([*map(str, script)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_same_told(found, wanted):
    """Tables as killing.py writes them."""
    assert found.keys() == wanted.keys()
    for key, (discrete, losses) in found.items():
        assert discrete == wanted[key][0]
        assert losses == pytest.approx(wanted[key][1], rel=ROUNDING)


@pytest.mark.parametrize("kind", ["alone", "batched"])
def test_killed_again_and_again_ends_as_if_never_killed(killing, kind):
    whole, killed = killing[kind], killing[f"killed {kind}"]
    assert whole["well"]
    assert len(whole["table"]) == 24
    assert killed["kills"] in (5, 15)
    assert killed["amid"] >= killed["kills"] // 5  # some were done, some not
    for study in killed["studies"]:
        assert study["well"]
        assert len(study["told"]) == len(set(study["told"]))  # nothing that is done is done again
        check_same_told(study["table"], whole["table"])
        if kind == "alone":
            assert study["table"] == whole["table"]  # the same batches of one: the same bits


def test_two_processes_train_every_trial_once(killing):
    found = killing["together"]
    assert found["well"]
    assert sorted(found["told"][0] + found["told"][1]) == sorted(killing["batched"]["table"])
    check_same_told(found["table"], killing["batched"]["table"])


def test_jobs_that_are_killed_with_their_parent_go_on(killing):
    assert killing["crew"]["amid"]
    assert killing["crew"]["well"]
    check_same_told(killing["crew"]["table"], killing["batched"]["table"])


# -- jobs --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def test_jobs_give_what_one_process_gives_and_need_no_file(data):
    space = us.study.grid(us.models.GCN, seed=range(6), hidden=4, epochs=3)
    seen = []
    found = us.study.run(space, data, device="cpu", jobs=2, watch=seen.append)
    wanted = {row.key: row.result for row in us.study.run(space, data, device="cpu").rows}
    assert {row.status for row in found.rows} == {Status.DONE}
    for row in found.rows:
        assert row.result.epoch == wanted[row.key].epoch
        assert row.result.valid_loss == pytest.approx(wanted[row.key].valid_loss, rel=ROUNDING)
    assert (seen[-1].done, seen[-1].total, seen[-1].running) == (6, 6, 0)
    assert seen[-1].best[0] == max(row.result.valid_score for row in found.rows)
    assert len(found.table) == 6
    folder = found.store.path.parent  # without a file they have one of their own
    assert folder.exists()
    found.store.close()
    del found, row
    gc.collect()
    assert not folder.exists()


def test_what_cannot_go_to_other_processes_is_said(data):
    with pytest.raises(us.IncompatibleError, match=r"cannot go to other processes.*jobs=1"):
        us.study.run(
            us.study.grid(us.models.MLP, seed=range(2)),
            data,
            loss=lambda output, target: output.sum(),
            jobs=2,
            device="cpu",
        )
