"""Which machines train a study, and how many workers they have room for."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import socket
import threading
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unspool.errors import IncompatibleError, InputError

#: The address of the head of a cluster.
_PLACE = re.compile(r"[\w.\-]+:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5}")
#: Seconds for a head to answer.
PATIENCE = 5.0


@dataclass(frozen=True)
class Ray:
    """The machines of a Ray cluster, for :func:`unspool.study.run` and ``unspool study run --machines``.

    A worker is a process that trains batches of trials, as one process does; each takes so many cores, or a GPU, of what the machines
    have declared to Ray. A program that is connected to Ray already keeps its connection.

    Args:
        address: ``"auto"``: the cluster that this machine belongs to; ``"local"``: this machine alone, with all its cores and GPUs;
            or the address of the head of a cluster that this machine belongs to, as in ``"10.0.0.1:6379"``.
        cpus: cores of each worker, and the threads that it trains with.
        gpus: GPUs of each worker, 0 to 1; one where the machines have GPUs when omitted. A study trains on one kind of device.
        workers: the largest number of workers; as many as there is room for when omitted.

    Example:
        >>> Ray("10.0.0.1:6379", cpus=2).room({"CPU": 8.0}, gpus=0)
        4
        >>> Ray(cpus=2).room({"CPU": 8.0, "GPU": 2.0}, gpus=1)
        2
    """

    address: str = "auto"
    cpus: int = 1
    gpus: float | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        given: Any = self.address
        known = given in ("auto", "local") or (isinstance(given, str) and _PLACE.fullmatch(given))
        if not known:
            raise InputError(
                "machines", given, "auto, local, or the HOST:PORT of a Ray cluster that this machine belongs to"
            )
        for name, count in (("cpus", self.cpus), ("workers", self.workers)):
            if count is not None and (type(count) is not int or count < 1):
                raise InputError(name, count, "a whole number of at least 1")
        if self.gpus is not None and not 0 <= self.gpus <= 1:
            raise InputError("gpus", self.gpus, "a share of a GPU between 0 and 1")

    def room(self, resources: Mapping[str, float], gpus: float) -> int:
        """How many workers a machine with these resources has room for."""
        by_core = int(resources.get("CPU", 0) // self.cpus)
        return min(by_core, int(resources.get("GPU", 0) / gpus + 1e-9)) if gpus else by_core

    @contextlib.contextmanager
    def connected(self, device: str | None = None) -> Generator[Cluster]:
        """The cluster, for a block; begun and ended with it where this process has no connection.

        Args:
            device: where workers train: ``"cpu"`` or ``"cuda"``; GPUs where the machines have any when omitted.
        """
        ray = import_ray()
        if ray.is_initialized():
            yield Cluster(ray, self, device)
            return
        with _quiet():
            _connect(ray, self.address)
            try:
                yield Cluster(ray, self, device)
            finally:
                ray.shutdown()


@dataclass(frozen=True)
class Machine:
    """A machine of a cluster that is alive.

    Attributes:
        id: Ray's name for it.
        host: for people.
        room: how many workers it has room for.
    """

    id: str
    host: str
    room: int


class Cluster:
    """Machines that are there now.

    Args:
        ray: the module, connected.
        asked: what was asked for.
        device: ``"cpu"``, ``"cuda"``, or None: as the machines are.

    Attributes:
        device: where workers train.
        gpus: what each takes of a GPU.
        home: Ray's name for this machine.
    """

    def __init__(self, ray: Any, asked: Ray, device: str | None = None) -> None:
        self.ray, self.asked = ray, asked
        self.home: str = ray.get_runtime_context().get_node_id()
        there = any(node["Resources"].get("GPU", 0) for node in _alive(ray))
        default = 1 if there and device != "cpu" else 0
        self.gpus = default if asked.gpus is None else asked.gpus
        self.device = ("cuda" if self.gpus else "cpu") if device is None else device
        if self.device == "cuda" and not self.gpus:
            raise IncompatibleError(
                "no worker has a GPU: none of the machines has declared one to Ray (ray start --num-gpus), or gpus=0 was asked for; "
                "or train on the CPU"
            )

    def machines(self) -> list[Machine]:
        """Those that are alive now."""
        return [
            Machine(node["NodeID"], node["NodeManagerHostname"], self.asked.room(node["Resources"], self.gpus))
            for node in _alive(self.ray)
        ]

    def workers(self, trials: int) -> int:
        """How many train so many trials."""
        room = sum(machine.room for machine in self.machines())
        if not room:
            raise IncompatibleError(
                f"no machine has room for a worker of {_taken(self.asked.cpus, self.gpus)}; give fewer for each, or declare more to Ray"
            )
        return min(room, trials, room if self.asked.workers is None else self.asked.workers)

    def __str__(self) -> str:
        many = len(self.machines())
        return f"{many} machine{'s'[: many > 1]} of Ray {self.ray.__version__}"


def _alive(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _taken(cpus: int, gpus: float) -> str:
    return f"{cpus} core{'s'[: cpus > 1]}" + (f" and {gpus:g} GPU" if gpus else "")


def import_ray() -> Any:
    """The module, or the sentence that says how to get it."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise IncompatibleError(
            "training on several machines needs Ray: pip install 'unspool[ray]' on each of them, or train on this one alone"
        ) from None


def _connect(ray: Any, address: str) -> None:
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    _knock(address)
    told: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a Ray of our own reports to nobody
            ray.init("local", include_dashboard=False, **told)
        else:
            ray.init(address, **told)
    except Exception as problem:  # Ray has no common error
        raise IncompatibleError(_unconnected(address, str(problem))) from None
    finally:
        if ours:  # Trap: Ray puts a handler of its own in its place, which ends us in the middle of everything
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Trap: when a machine dies, Ray prints a page on our standard output, where programs read JSON; no option of its own prevents that."""
    try:
        inside: Any = importlib.import_module("ray._private.worker")
        before = inside.print_to_stdstream
    except (ImportError, AttributeError):  # another version prints in another way, or not at all
        yield
        return
    inside.print_to_stdstream = lambda *given, **more: None
    try:
        yield
    finally:
        inside.print_to_stdstream = before


def _knock(address: str) -> None:
    """See that somebody answers: Ray itself would ask for two minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as problem:
        raise IncompatibleError(_unconnected(address, str(problem))) from None


def _unconnected(address: str, said: str) -> str:
    """Why there is no connection, in one sentence."""
    if "Version mismatch" in said:
        lines = [line.strip() for line in said.splitlines() if line.strip().startswith(("Ray:", "Python:"))]
        return f"the cluster runs {_pair(lines[:2])} and this machine {_pair(lines[2:4])}; install the same versions on all machines"
    reason = next((line.strip() for line in said.splitlines() if line.strip()), "no answer")[:160]
    if address == "local":
        return f"Ray does not start on this machine ({reason}); end other work, or train with jobs and without machines"
    if address == "auto" and "Could not find" in said:
        return (
            "no Ray cluster runs on this machine; start one with ray start --head and join others with "
            "ray start --address=HOST:6379, or train on this machine alone with local"
        )
    return (
        f"Ray cannot be reached at {address} from this machine ({reason}); run ray start --address={address} here first"
    )


def _pair(lines: Iterable[str]) -> str:
    return " and ".join(line.replace(": ", " ") for line in lines)
