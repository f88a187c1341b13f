"""Files that are whole or not there, files that know when they were damaged, and folders with one process at work."""

import errno
import fcntl
import os
import random
import signal
import subprocess
import sys

import pytest

from unspool.files import Unsound, alone_in, read_sealed, remove_leftovers, utf8, write_sealed, write_whole

HOLD = "import sys, time; from unspool.files import alone_in\nwith alone_in(sys.argv[1]): print('in', flush=True); time.sleep(600)"


def flipped(content, place):
    """The same bytes with one bit changed."""
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def test_every_flipped_bit_of_a_sealed_file_is_found(tmp_path):
    file = tmp_path / "note"
    write_sealed(file, lambda f: f.write(b"a short note"))
    whole = file.read_bytes()
    assert read_sealed(file).read() == b"a short note"
    for place in range(8 * len(whole)):
        file.write_bytes(flipped(whole, place))
        with pytest.raises(Unsound):
            read_sealed(file)


def test_a_sealed_file_that_is_cut_or_grows_is_found(tmp_path):
    file = tmp_path / "note"
    write_sealed(file, lambda f: f.write(b"a short note"))
    whole = file.read_bytes()
    for changed in (
        *(whole[:length] for length in range(len(whole))),
        whole + b"\n",
        b"x" + whole,
        whole + whole[-81:],
    ):
        file.write_bytes(changed)
        with pytest.raises(Unsound):
            read_sealed(file)


def test_a_folder_takes_one_process_at_a_time(tmp_path):
    with alone_in(tmp_path) as locked:
        assert locked
        with pytest.raises(BlockingIOError, match="another run is at work in"), alone_in(tmp_path):
            pass
    with alone_in(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_process_that_was_killed_is_in_nobodys_way(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(BlockingIOError), alone_in(tmp_path):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (tmp_path / ".unspool.lock").exists()  # the file stays, the lock does not
    with alone_in(tmp_path) as locked:
        assert locked
    assert not list(tmp_path.iterdir())


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    """Between opening and locking, the one before may have gone and taken its file along."""
    file, lock, times = tmp_path / ".unspool.lock", fcntl.flock, []

    def late(handle, how):
        if not times:
            file.unlink()
        times.append(handle)
        return lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with alone_in(tmp_path):
        monkeypatch.undo()
        assert len(times) == 2
        with pytest.raises(BlockingIOError), alone_in(tmp_path):
            pass


def test_a_file_system_without_locks_is_said_to_be_one(tmp_path, monkeypatch):
    def none(handle, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with alone_in(tmp_path) as locked:
        assert not locked


@pytest.mark.parametrize("what", ["folder", "link"])
def test_something_else_in_the_place_of_the_lock_is_left_alone(tmp_path, what):
    (tmp_path / "mine").write_text("mine")
    lock = tmp_path / ".unspool.lock"
    if what == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match=r"cannot write .*unspool.lock: .*; move it away"), alone_in(tmp_path):
        pass
    assert lock.exists()
    assert (tmp_path / "mine").read_text() == "mine"


def test_leftovers_are_those_of_our_own_names(tmp_path):
    chance = random.Random(0)
    ours = [f".model.json.{chance.randbytes(8).hex()}", f".run.pt.{chance.randbytes(8).hex()}"]
    theirs = [
        ".model.json.swp",
        ".model.json.0123456789ABCDEF",
        ".env.local",
        "model.json.0123456789abcdef",
        ".git",
        ".run.pt.",
    ]
    for name in (*ours, *theirs):
        (tmp_path / name).write_text("")
    (tmp_path / ".model.json.aaaaaaaaaaaaaaaa").mkdir()
    (tmp_path / ".model.json.bbbbbbbbbbbbbbbb").symlink_to(tmp_path / ".git")
    remove_leftovers(tmp_path, r"model\.json|run\.pt")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*theirs, ".model.json.aaaaaaaaaaaaaaaa", ".model.json.bbbbbbbbbbbbbbbb"}


def test_a_killed_write_leaves_what_can_be_removed(tmp_path, monkeypatch):
    """The names of temporary files and those that are removed are the same."""
    monkeypatch.setattr(os, "replace", lambda a, b: os._exit(0))
    pid = os.fork()
    if not pid:
        write_whole(tmp_path / "model.json", lambda f: f.write(b"half"))
    os.waitpid(pid, 0)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 1
    remove_leftovers(tmp_path, r"model\.json")
    assert not list(tmp_path.iterdir())


def test_any_file_name_can_be_written_down():
    name = os.fsdecode(b"caf\xe9 \xff.csv")
    assert utf8(name).encode() == rb"caf\udce9 \udcff.csv"
    assert utf8("café ‖B H‖²") == "café ‖B H‖²"
