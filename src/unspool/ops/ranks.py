"""What the processes of one job say to each other, through ``torch.distributed``, with every byte counted."""

from __future__ import annotations

import contextlib
import hashlib
import math
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from unspool.errors import IncompatibleError, RankLost

T = TypeVar("T")

#: Seconds after which a process that says nothing counts as gone.
PATIENCE = 45


class Ranks:
    """The processes that work on one graph, as one of them sees them.

    All of them call the same methods in the same order. Whatever happens to one, the others raise :class:`~unspool.errors.RankLost`.

    Attributes:
        rank: the number of this process.
        size: how many there are.
        sent: bytes that this process has sent to others so far; of sums, what a ring sends.
    """

    def __init__(self, group: Any) -> None:
        # Trap: a group that is alive when Python ends may abort the process ("terminate called without an active exception"), as its threads
        # want the interpreter then; so nothing of ours keeps one alive when destroy_process_group is called.
        self._held: Callable[[], Any] = weakref.ref(group)
        self.rank, self.size = distributed.get_rank(group), distributed.get_world_size(group)
        self.sent = 0

    @staticmethod
    def here() -> Ranks:
        """All processes that were started together; refused where nobody started any."""
        if not (distributed.is_available() and distributed.is_initialized()):
            raise IncompatibleError(
                "a graph is spread over the processes of torch.distributed, and none were started; run the program with torchrun, and call "
                "torch.distributed.init_process_group('gloo') first"
            )
        return _everybody(distributed.group.WORLD)

    @property
    def _group(self) -> Any:
        if (group := self._held()) is None:
            raise RankLost(
                "the processes have parted (destroy_process_group); call init_process_group again, and spread the graph anew"
            )
        return group

    @property
    def device(self) -> torch.device:
        """Where tensors that travel must live."""
        nccl = distributed.get_backend(self._group) == "nccl"
        return torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")

    def exchange(self, x: Tensor, give: Sequence[int], take: Sequence[int]) -> Tensor:
        """Entries of a flat tensor, so many to each process in order; what they gave to this one, in order of the processes."""
        got = x.new_empty(sum(take))
        with self._listening():
            distributed.all_to_all_single(got, x.contiguous(), list(take), list(give), group=self._group)
        self.sent += (sum(give) - give[self.rank]) * x.element_size()
        return got

    def gathered(self, x: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all processes, ``counts`` many each, one under the other."""
        width, flat = math.prod(x.shape[1:]), x.reshape(-1)
        got = self.exchange(flat.repeat(self.size), [flat.numel()] * self.size, [count * width for count in counts])
        return got.view(sum(counts), *x.shape[1:])

    def add(self, x: Tensor) -> Tensor:
        """The sum of a tensor over all processes, in place, with the same bits everywhere."""
        with self._listening():
            distributed.all_reduce(x, group=self._group)
        self.sent += 2 * (self.size - 1) * x.numel() * x.element_size() // self.size
        return x

    def any(self, asked: bool) -> bool:
        """Whether something is so in any process."""
        return bool(self.add(torch.tensor(float(asked), device=self.device)) > 0)

    def from_first(self, make: Callable[[], T]) -> T:
        """What process 0 makes, for all of them, who wait as long as it takes; if it cannot, all raise what it raised."""
        if self.size == 1:
            return make()
        said: list[Any] = [None, None]
        if self.rank == 0:
            try:
                said[0] = make()
            except Exception as problem:
                said[1] = problem
        with self._listening():
            distributed.broadcast_object_list(said, src=0)  # the patience is that of the start
        if said[1] is not None:
            raise said[1]
        return said[0]

    def check_same(self, what: str, marks: Iterable[Any]) -> None:
        """Refuse where processes came with different things; ``marks`` are all that makes them differ."""
        held = hashlib.sha256()
        for mark in marks:
            held.update(mark)
        every: list[Any] = [None] * self.size
        with self._listening():
            distributed.all_gather_object(every, held.hexdigest(), group=self._group)
        other = next((rank for rank in range(self.size) if every[rank] != every[0]), None)
        if other is not None:
            raise IncompatibleError(
                f"process {other} has {what} other than process 0; start all with the same command, code and data"
            )

    @contextlib.contextmanager
    def _listening(self) -> Generator[None]:
        try:
            yield
        except RankLost:
            raise
        except RuntimeError as problem:  # of torch, in as many words as there are back ends
            raise RankLost(
                f"another of the {self.size} processes ended, or said nothing for {PATIENCE} s, so process {self.rank} ends too; look at what "
                "the others said, and start all of them again (--resume continues at the last snapshot)"
            ) from problem


#: The processes that were found last, and the start that they belong to.
_known: list[tuple[Callable[[], Any], Ranks]] = []


def _everybody(world: Any) -> Ranks:
    """Once for each start: a group of its own, as it has a patience of its own."""
    if not _known or _known[0][0]() is not world:
        _known[:] = [(weakref.ref(world), Ranks(distributed.new_group(timeout=timedelta(seconds=PATIENCE))))]
    return _known[0][1]
