"""The folder that --out names: one run at a time, old models until new ones are whole, and files of others left alone."""

import os
import shutil
import sys
import time

import pytest

from cli.people import ask, card, history, own, refuse, same, train, write_people
from unspool import report
from unspool.cli.main import cli
from unspool.cli.train import Reporter
from unspool.files import alone_in
from unspool.models.pretrained import load_with_card, read_card

pytestmark = pytest.mark.long


CLASSES = ("--label-column", "team")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = write_people(tmp_path_factory.mktemp("people"))
    train(place / "job", *own(place, *CLASSES))
    return place


@pytest.fixture
def out(trained, tmp_path):
    """A finished job to train over."""
    return shutil.copytree(trained / "job", tmp_path / "job")


def held(place):
    """All files of a folder by name."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def again(folder, out, *more):
    """The command, into a folder that may hold a model."""
    return ["train", "GCN", "--epochs", 15, "--quiet", "--no-report", "--out", out, *own(folder, *CLASSES), *more]


class Killed(BaseException):
    """As if the process ended here."""


def end_at(patch, epoch, how):
    watch = Reporter.__call__

    def broken(self, now, best):
        watch(self, now, best)
        if now.epoch == epoch:
            raise how

    patch.setattr(Reporter, "__call__", broken)


# -- the old model -----------------------------------------------------------------------------------------------------


def test_divergence_keeps_the_old_model(trained, out):
    before = held(out)
    assert "is not finite in epoch" in refuse(*again(trained, out, "--lr", "1e30"))
    assert held(out) == before


@pytest.mark.parametrize("fits", [2, 3, 4])  # the probe and a snapshot; the weights, too; the history, too
def test_a_full_disk_keeps_the_old_model(trained, out, monkeypatch, fits):
    before = held(out)
    sync, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > fits:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refuse(*again(trained, out, "--setting", "hidden=4"))
    monkeypatch.undo()
    changed = {name for name, content in held(out).items() if before.get(name) != content}
    assert load_with_card(out / "seed0")[1]["settings"]["hidden"] == 8
    assert ("seed0/history.csv" in changed) == (fits == 4)  # which its reader knows by its checksum
    assert set(before) - changed >= {"seed0/model.json", f"seed0/{card(out)['weights']}"}


@pytest.mark.parametrize("every", [0, 100])
def test_a_kill_keeps_the_old_model_and_the_new_run_can_be_continued(trained, out, tmp_path, monkeypatch, every):
    words = again(trained, out, "--setting", "hidden=4", "--snapshot-every", every)
    before = held(out)
    with monkeypatch.context() as patch:
        end_at(patch, 6, Killed())
        with pytest.raises(Killed):
            cli([str(word) for word in words], standalone_mode=False)
    left = held(out)
    assert {name: left[name] for name in before} == before
    assert set(left) - set(before) == ({"seed0/run.pt"} if every == 0 else set())
    if every:  # nothing of the new run is there
        assert "was trained with hidden 8, not 4" in refuse(*words, "--resume")
        return
    ask(*words, "--resume")
    assert card(out)["settings"]["hidden"] == 4
    cli([str(word) for word in again(trained, tmp_path / "whole", "--setting", "hidden=4")], standalone_mode=False)
    same(out / "seed0", tmp_path / "whole" / "seed0")
    assert sorted(held(out)) == sorted(held(tmp_path / "whole"))


def test_a_snapshot_stays_until_the_first_one_of_a_new_run(trained, tmp_path, monkeypatch):
    out = tmp_path / "job"
    words = again(trained, out, "--setting", "hidden=8")
    with monkeypatch.context() as patch:
        end_at(patch, 9, KeyboardInterrupt())
        train(out, *own(trained, *CLASSES), "--snapshot-every", 0, code=130)
    before = (out / "seed0" / "run.pt").read_bytes()
    with monkeypatch.context() as patch:
        end_at(patch, 3, Killed())
        with pytest.raises(Killed):
            cli([str(word) for word in words], standalone_mode=False)
    assert (out / "seed0" / "run.pt").read_bytes() == before
    cli([str(word) for word in (*words, "--resume")], standalone_mode=False)
    same(out / "seed0", trained / "job" / "seed0")


def test_a_new_run_does_not_continue_an_old_snapshot(trained, tmp_path, monkeypatch):
    out = tmp_path / "job"
    with monkeypatch.context() as patch:
        end_at(patch, 9, KeyboardInterrupt())
        train(out, *own(trained, *CLASSES), "--snapshot-every", 0, code=130)
    train(out, *own(trained, *CLASSES), "--lr", "0.02")  # another config, which --resume refuses
    assert card(out)["trial"]["config"]["lr"] == 0.02
    assert len(history(out)) == 15
    assert not (out / "seed0" / "run.pt").exists()


@pytest.mark.parametrize("name", ["people.csv", "friends.csv"])
def test_a_cut_run_is_not_continued_on_other_files(tmp_path, monkeypatch, name):
    folder = write_people(tmp_path / "people")
    words = [*own(folder, *CLASSES), "--snapshot-every", 0]
    with monkeypatch.context() as patch:
        end_at(patch, 9, KeyboardInterrupt())
        train(tmp_path / "job", *words, code=130)
    lines = (folder / name).read_text().splitlines()
    changed = [*lines[:-1], lines[-1].replace("p59,-", "p59,")] if name == "people.csv" else lines[:-1]
    (folder / name).write_text("\n".join(changed) + "\n")
    words = [*again(folder, tmp_path / "job", "--setting", "hidden=8", "--resume")]
    assert "run.pt began on other data" in refuse(*words)


def test_a_history_of_another_run_is_not_drawn(trained, out, tmp_path):
    """The moment between the new history and the new card."""
    train(tmp_path / "other", *own(trained, *CLASSES), epochs=4)
    shutil.copy(tmp_path / "other" / "seed0" / "history.csv", out / "seed0" / "history.csv")
    found = report.seeds.read_job(out).seeds[0]
    assert found.history == ()
    assert "another run" in found.trouble
    assert report.seeds.read_job(trained / "job").seeds[0].trouble is None


# -- files of others ---------------------------------------------------------------------------------------------------


def test_files_of_the_user_survive_every_run(trained, out):
    mine = {
        ".env.local": b"secret", ".probe": b"mine", "notes.txt": b"n", ".model.json.swp": b"vim", "weights-best.safetensors": b"w",
        "seed0/.git.keep": b"k", "seed0/.DS_Store.x": b"d", "seed0/weights-best.safetensors": b"w", "seed0/weights-0123456789ab.safetensors": b"w",
        "seed0/.run.pt.backup": b"r", "seed0/model-old.json": b"{}", "seed0/history.csv.bak": b"h",
    }  # fmt: skip
    for name, content in mine.items():
        (out / name).write_bytes(content)
    (out / "seed0" / ".run.pt.0123456789abcdef").write_bytes(b"half")  # what a killed run was writing
    old = read_card(out / "seed0")["weights"]
    for more in (
        ("--setting", "hidden=4"),
        ("--setting", "hidden=4", "--resume"),
        ("--setting", "hidden=8", "--seeds", 2),
    ):
        cli([str(word) for word in again(trained, out, *more)], standalone_mode=False)
        left = held(out)
        assert {name: left[name] for name in mine} == mine
        assert "seed0/.run.pt.0123456789abcdef" not in left
        assert not [name for name in left if name.endswith((".lock", ".pt"))]
    assert (out / "seed0" / old).exists()  # the last run is the first one again, to the bit
    assert len(list((out / "seed0").glob("weights-*"))) == 3


# -- two at once -------------------------------------------------------------------------------------------------------


def test_a_second_run_into_the_same_folder_is_refused_at_once(trained, out):
    before = held(out)
    with alone_in(out):
        said = refuse(*again(trained, out))
    assert f"another run is at work in {out}" in said
    assert held(out) == before
    with alone_in(out / "seed0"):  # nobody's business
        train(out, *own(trained, *CLASSES))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_of_two_processes_one_trains_and_one_is_refused(trained, tmp_path, monkeypatch):
    out, ready, go = tmp_path / "out", tmp_path / "ready", tmp_path / "go"

    def wait(self, now, best):
        while now.epoch == 3 and not go.exists():
            ready.touch()
            time.sleep(0.01)

    monkeypatch.setattr(Reporter, "__call__", wait)
    words = [str(word) for word in again(trained, out, "--setting", "hidden=8", "--snapshot-every", 0)]
    first = _child(words)
    while not ready.exists():
        time.sleep(0.01)
    before = held(out)
    assert _ended(_child(words)) == 3
    assert held(out) == before
    go.touch()
    assert _ended(first) == 0
    same(out / "seed0", trained / "job" / "seed0")
    assert sorted(path.suffix for path in out.rglob("*") if path.is_file()) == [
        ".csv", ".json", ".json", ".safetensors",
    ]  # fmt: skip


def _ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _child(words):
    """Train in a process of its own; its exit code is 3 where another one is at work."""
    pid = os.fork()
    if pid:
        return pid
    try:
        cli(words, standalone_mode=False)
        os._exit(0)
    except BlockingIOError:
        os._exit(3)
    finally:
        os._exit(1)


# -- what is typed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e999"])
def test_seconds_between_snapshots_are_finite(trained, tmp_path, value):
    assert "--snapshot-every" in ask(*again(trained, tmp_path, f"--snapshot-every={value}"), code=2)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have such names")
@pytest.mark.parametrize("option", ["--out", "--features", "--feature-column"])
def test_a_name_that_is_not_utf8_is_refused_before_the_work(trained, tmp_path, option):
    strange = tmp_path / os.fsdecode(b"caf\xe9.csv")
    shutil.copy(trained / "people.csv", strange)
    said = refuse(*again(trained, tmp_path / "out", option, strange))
    assert "the name is not UTF-8" in said
    assert not (tmp_path / "out").exists()
