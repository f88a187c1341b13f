"""What is asked of a cluster, and how many workers its machines have room for; no Ray is needed."""

import socket
import sys
from types import SimpleNamespace

import pytest

import unspool as us
from unspool import datasets
from unspool.study.machines.cluster import Cluster, Ray, import_ray


def node(name, alive=True, **resources):
    return {"NodeID": name, "NodeManagerHostname": f"host of {name}", "Alive": alive, "Resources": resources}


def fake(*nodes):
    """Ray as far as a cluster asks it, with these nodes."""
    context = SimpleNamespace(get_node_id=lambda: "home")
    return SimpleNamespace(
        nodes=lambda: list(nodes), get_runtime_context=lambda: context, __version__="2.60.0", is_initialized=lambda: False
    )  # fmt: skip


def space():
    return us.study.grid(us.models.MLP, seed=range(2), epochs=2)


@pytest.mark.parametrize("bad", ["", "ray://head:10001", "head", "head:port", "head:6379 x", 7])
def test_only_clusters_of_this_machine_have_an_address(bad):
    with pytest.raises(us.errors.InputError, match=r"machines=.*auto, local, or the HOST:PORT"):
        Ray(bad)


@pytest.mark.parametrize("good", ["auto", "local", "10.0.0.1:6379", "node-7.cluster.example:6379", "[::1]:6379"])
def test_addresses(good):
    assert Ray(good).address == good


@pytest.mark.parametrize(
    "options", [{"cpus": 0}, {"cpus": 1.5}, {"workers": 0}, {"workers": True}, {"gpus": -1}, {"gpus": 2}]
)
def test_numbers_are_checked(options):
    with pytest.raises(us.errors.InputError, match=f"{next(iter(options))}="):
        Ray(**options)


@pytest.mark.parametrize(
    ("options", "resources", "gpus", "room"),
    [
        ({}, {"CPU": 4.0}, 0, 4),
        ({"cpus": 3}, {"CPU": 8.0}, 0, 2),
        ({}, {"CPU": 8.0, "GPU": 2.0}, 1, 2),
        ({}, {"CPU": 8.0, "GPU": 2.0}, 0.5, 4),
        ({}, {"CPU": 8.0, "GPU": 1.0}, 0.1, 8),
        ({"cpus": 4}, {"CPU": 4.0, "GPU": 2.0}, 1, 1),
        ({}, {"CPU": 8.0}, 1, 0),
        ({}, {}, 0, 0),
    ],
)
def test_room(options, resources, gpus, room):
    assert Ray(**options).room(resources, gpus) == room


def test_dead_machines_have_no_room():
    found = Cluster(fake(node("a", CPU=2.0), node("b", CPU=4.0), node("c", alive=False, CPU=64.0)), Ray())
    assert [(one.id, one.host, one.room) for one in found.machines()] == [("a", "host of a", 2), ("b", "host of b", 4)]
    assert (found.device, found.gpus, found.workers(100), found.workers(3), str(found)) == (
        "cpu",
        0,
        6,
        3,
        "2 machines of Ray 2.60.0",
    )
    assert Cluster(fake(node("a", CPU=8.0)), Ray(workers=2)).workers(100) == 2


def test_gpus_are_taken_where_machines_have_them_and_nobody_says_otherwise():
    both = fake(node("a", CPU=8.0), node("b", CPU=8.0, GPU=2.0))
    seen = {device: Cluster(both, Ray(), device) for device in (None, "cpu", "cuda")}
    assert {device: (one.device, one.gpus, one.workers(100)) for device, one in seen.items()} == {
        None: ("cuda", 1, 2), "cpu": ("cpu", 0, 16), "cuda": ("cuda", 1, 2),
    }  # fmt: skip
    half = Cluster(both, Ray(gpus=0.5))
    assert (half.device, half.workers(100)) == ("cuda", 4)


def test_a_gpu_that_nobody_has_is_a_sentence():
    with pytest.raises(us.IncompatibleError, match="no worker has a GPU: none of the machines has declared one"):
        Cluster(fake(node("a", CPU=8.0)), Ray(), "cuda")


def test_no_room_is_a_sentence():
    with pytest.raises(us.IncompatibleError, match="no machine has room for a worker of 8 cores"):
        Cluster(fake(node("a", CPU=4.0)), Ray(cpus=8)).workers(3)


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(us.IncompatibleError, match=r"pip install 'unspool\[ray\]' on each of them"):
        import_ray()


def test_a_head_that_does_not_answer_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", fake())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(
            us.IncompatibleError, match=f"Ray cannot be reached at {address} .*ray start --address={address}"
        ):
            Ray(address).connected().__enter__()


@pytest.mark.parametrize(
    ("address", "raised", "said"),
    [
        ("local", Exception("The current node timed out during startup."), "Ray does not start on this machine .*timed out"),
        ("auto", ConnectionError("Could not find any running Ray instance."), "no Ray cluster runs on this machine; start one"),
        (
            "auto", RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.11.7\nThis process on x was "
                         "started with:\n    Ray: 2.60.0\n    Python: 3.12.1\n"),
            "the cluster runs Ray 2.50.0 and Python 3.11.7 and this machine Ray 2.60.0 and Python 3.12.1; install the same versions",
        ),
    ],
)  # fmt: skip
def test_what_ray_objects_to_is_a_sentence(monkeypatch, address, raised, said):
    def init(*_, **__):
        raise raised

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(**vars(fake()), init=init))
    with pytest.raises(us.IncompatibleError, match=said):
        Ray(address).connected().__enter__()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jobs": 2}, r"jobs=2: expected nothing with machines; say machines=Ray\(workers=...\)"),
        ({"threads": 2}, r"threads=2: expected nothing with machines; say machines=Ray\(cpus=...\)"),
        ({"device": "cuda:1"}, "expected 'cpu' or 'cuda' with machines"),
        ({"store": us.study.Store(None)}, "store: expected a file with machines"),
    ],
)
def test_what_machines_say_is_not_said_twice(options, said):
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    with pytest.raises(us.errors.InputError, match=said):
        us.study.run(space(), data, machines=Ray(), **options)
