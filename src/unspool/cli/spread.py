"""``unspool train --spread``: one graph on the processes that ``torchrun`` has started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from unspool import graph
from unspool.cli.company import TOLD, in_company, joined
from unspool.errors import IncompatibleError, InputError, RankLost, mention
from unspool.graph.spreading import Layout
from unspool.interrupt import SIGNALS, note_for_good
from unspool.ops.ranks import Ranks

#: How a graph is cut, by what is typed.
LAYOUTS: dict[str, Layout] = {
    "columns": graph.Columns(),
    "rows": graph.Rows(),
    "metis": graph.Rows(parts=graph.metis),
}


@dataclass(frozen=True)
class Spread:
    """The processes of a job, and how they share its graph.

    Attributes:
        name: how the graph is cut, as it is typed.
        ranks: the processes.
    """

    name: str
    ranks: Ranks

    @property
    def layout(self) -> Layout:
        """How the graph is cut."""
        return LAYOUTS[self.name]

    @property
    def leads(self) -> bool:
        """Whether this process talks and writes."""
        return self.ranks.rank == 0

    def next_seed(self, seed: int | None = None) -> int | None:
        """The seed that all train now, which the leading process names; None when there is none left."""
        return self.ranks.from_first(lambda: seed)

    def __str__(self) -> str:
        return f"{self.name} over {self.ranks.size} process{'es'[: 2 * (self.ranks.size > 1)]}"


def check_no_company() -> None:
    """Refuse processes that torchrun started side by side, each of which would train the whole by itself."""
    if in_company():
        raise IncompatibleError(
            f"torchrun started {os.environ['WORLD_SIZE']} processes, and without {mention('spread')} each would train the same by itself; "
            "add --spread columns or rows, or leave torchrun out"
        )


def _join(patience: timedelta, options: dict[str, Any]) -> None:
    """Find the other processes."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        store = distributed.PrefixStore("ranks", joined(patience))  # pyright: ignore[reportPrivateImportUsage]
        distributed.init_process_group(store=store, rank=rank, world_size=size, timeout=patience, **options)
    except RuntimeError as problem:  # of torch
        at = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        reason = str(problem).partition("\n")[0]
        raise RankLost(
            f"the {size} processes did not find each other at {at} ({reason}); start all of them again"
        ) from problem


@contextlib.contextmanager
def started(name: str, device: str, jobs: int | None) -> Generator[tuple[Spread, str]]:
    """Join the other processes; gives them, and the device of this one."""
    if jobs not in (None, 1):
        raise InputError("jobs", jobs, f"1 with --spread {name}, as all processes work on one seed")
    if not all(part in os.environ for part in TOLD):
        raise InputError(
            "spread",
            name,
            "to be started by torchrun",
            f"torchrun --nproc-per-node 4 -m unspool train ... --spread {name}",
        )
    place = int(os.environ["LOCAL_RANK"])
    options: dict[str, Any] = {"backend": "gloo"}
    if device.startswith("cuda"):
        if device != "cuda" or place >= torch.cuda.device_count():
            raise InputError(
                "device",
                device,
                f"cuda, with a GPU for each process ({torch.cuda.device_count()} here)",
                "take --device cpu",
            )
        torch.cuda.set_device(place)
        device, options = f"cuda:{place}", {"backend": "nccl", "device_id": torch.device("cuda", place)}
    # The leading process may take long between two seeds; one that ends is noticed at once.
    _join(timedelta(hours=2), options)
    note_for_good(SIGNALS)  # all processes stop behind the same epoch
    try:
        yield Spread(name, Ranks.here()), device
    finally:
        distributed.destroy_process_group()
