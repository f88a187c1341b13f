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
from unspool.errors import IncompatibleError, InputError, mention
from unspool.graph.spreading import Layout
from unspool.interrupt import SIGNALS, note_for_good
from unspool.ops.ranks import Ranks

#: How a graph is cut, by what is typed.
LAYOUTS: dict[str, Layout] = {
    "columns": graph.Columns(),
    "rows": graph.Rows(),
    "metis": graph.Rows(parts=graph.metis),
}
#: What torchrun tells the processes that it starts.
_TOLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


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
    if all(part in os.environ for part in _TOLD) and os.environ["WORLD_SIZE"] != "1":
        raise IncompatibleError(
            f"torchrun started {os.environ['WORLD_SIZE']} processes, and without {mention('spread')} each would train the same by itself; "
            "add --spread columns or rows, or leave torchrun out"
        )


@contextlib.contextmanager
def started(name: str, device: str, jobs: int | None) -> Generator[tuple[Spread, str]]:
    """Join the other processes; gives them, and the device of this one."""
    if jobs not in (None, 1):
        raise InputError("jobs", jobs, f"1 with --spread {name}, as all processes work on one seed")
    if not all(part in os.environ for part in _TOLD):
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
    distributed.init_process_group(timeout=timedelta(hours=2), **options)
    note_for_good(SIGNALS)  # all processes stop behind the same epoch
    try:
        yield Spread(name, Ranks.here()), device
    finally:
        distributed.destroy_process_group()
