"""Propagated features on the disk: what sparse features are to rows with few entries, these are to rows that have seen the graph."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import DataError, IncompatibleError, InputError

Array = np.ndarray[Any, Any]

#: About how many bytes of rows are looked at together where all are wanted.
PIECE = 32 << 20


@dataclass(frozen=True, eq=False, repr=False)
class StoredHops:
    """Aᵏ X at some nodes, k = 0 ... K, in a file of which only the rows that are asked for are read.

    Made by :func:`unspool.hops.open`. Row i holds all hops of one node, so a batch of nodes is as many places in the file. They stand wherever
    features do, with the networks that propagate before anything that is not linear; no graph is needed any more.

    Attributes:
        file: where the numbers lie: (rows, K + 1, features), one behind the other.
        shape: (rows, features).
        depth: K.
        dtype: in which rows are handed out.
        stored: the type of the numbers in the file.
        device: where rows are handed out to.
        nodes: the node of every row in the graph; None where they are all, in order.
        checksum: of the content.
        graph: what is known of the graph: nodes, edges, normalisation.

    Example:
        >>> import tempfile, torch, unspool as us
        >>> graph, x = us.graph.ring(6), torch.eye(6)
        >>> stored = us.hops.write(graph, x, depth=2, out=tempfile.mkdtemp() + "/hops")
        >>> stored
        StoredHops(rows=6, features=6, depth=2, float32, cpu)
        >>> found = stored.take(torch.tensor([4, 1]))
        >>> found.shape, torch.equal(found[:, 2], (graph @ (graph @ x))[[4, 1]])
        (torch.Size([2, 3, 6]), True)
    """

    file: Path
    shape: torch.Size
    depth: int
    dtype: torch.dtype
    stored: np.dtype[Any]
    checksum: str
    graph: Mapping[str, Any]
    nodes: Tensor | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    _open: list[FileIO] = field(default_factory=list[FileIO])
    _memory: Tensor | None = None

    def take(self, rows: Tensor, depth: int | None = None) -> Tensor:
        """All hops of some rows, up to a depth: shape (rows, depth + 1, features).

        Args:
            rows: their numbers; how often each stands there does not matter.
            depth: the last hop that is wanted; all by default.
        """
        wanted = self.depth if depth is None else depth
        self.check_depth(wanted)
        expected = f"numbers of stored rows, from 0 to {self.shape[0] - 1}"
        if not torch.is_tensor(rows) or rows.is_floating_point() or rows.dtype is torch.bool or rows.ndim != 1:
            raise InputError("rows", rows, f"a tensor of {expected}")
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < self.shape[0]:
            raise InputError("rows", int(rows[(rows < 0) | (rows >= self.shape[0])][0]), expected)
        if self._memory is not None:
            return self._memory[rows.detach().to(self._memory.device), : wanted + 1].to(self.device, self.dtype)
        found = _numbers(self._read(rows.detach().cpu().numpy(), wanted + 1))
        return found.view(rows.numel(), wanted + 1, self.shape[1]).to(self.device, self.dtype)

    def held(self, device: torch.device | str = "cpu") -> StoredHops:
        """The same hops, held in the memory of a device as they are stored, where they fit: what is read often need not come from the disk.

        Example:
            >>> import tempfile, torch, unspool as us
            >>> stored = us.hops.write(us.graph.ring(6), torch.eye(6), depth=1, out=tempfile.mkdtemp() + "/hops")
            >>> torch.equal(stored.held().take(torch.tensor([3])), stored.take(torch.tensor([3])))
            True
        """
        rows, shape = int(self.shape[0]), (-1, self.depth + 1, int(self.shape[1]))
        room: Tensor | None = None
        for first in range(0, rows, self.piece):
            ids = np.arange(first, min(first + self.piece, rows))
            found = _numbers(self._read(ids, self.depth + 1)).view(shape)
            room = found.new_empty((rows, *shape[1:]), device=device) if room is None else room
            room[first : first + found.shape[0]] = found
        return replace(self, device=_numbered(device), _open=[], _memory=room)

    def places(self, nodes: Any) -> Tensor:
        """The rows of some nodes of the graph, by their numbers there; a node that is not stored is named.

        Example:
            >>> import tempfile, torch, unspool as us
            >>> graph, out = us.graph.ring(6), tempfile.mkdtemp() + "/hops"
            >>> us.hops.write(graph, torch.eye(6), depth=1, nodes=[5, 2], out=out).places([2])
            tensor([1])
        """
        ids = torch.as_tensor(nodes, dtype=torch.int64).flatten()
        if self.nodes is None:
            known = (ids >= 0) & (ids < self.shape[0])
            rows = ids
        else:
            order = self.nodes.argsort()
            place = torch.searchsorted(self.nodes[order], ids).clamp_max(order.numel() - 1)
            rows = order[place]
            known = self.nodes[rows] == ids
        if not bool(known.all()):
            raise InputError(
                "nodes",
                int(ids[~known][0]),
                f"one of the {self.shape[0]} nodes whose hops are stored in {self.file.parent}",
            )
        return rows

    def to(self, target: torch.device | str | torch.dtype) -> StoredHops:
        """The same hops, handed out to another device or in another type."""
        if isinstance(target, torch.dtype):
            return replace(self, dtype=target, _open=[])
        memory = None if self._memory is None else self._memory.to(target)
        return replace(self, device=_numbered(target), _open=[], _memory=memory)

    def check_depth(self, wanted: int) -> None:
        """Refuse a hop that is not among those that are stored."""
        if wanted < 0:
            raise InputError("depth", wanted, f"a hop from 0 to {self.depth}")
        if wanted > self.depth:
            raise IncompatibleError(
                f"hop {wanted} is wanted, and hops 0 to {self.depth} are stored; take a network of depth {self.depth} at most, or write more hops"
            )

    @property
    def piece(self) -> int:
        """How many rows are looked at together where all are wanted."""
        return max(PIECE // ((self.depth + 1) * self.shape[1] * self.stored.itemsize), 1)

    def _read(self, ids: Array, hops: int) -> Array:
        """The first hops of some rows; neighbours in the file are read together where all of a row is wanted."""
        whole = (self.depth + 1) * self.shape[1] * self.stored.itemsize
        found = np.empty((ids.size, hops * self.shape[1]), self.stored)
        if found.size == 0:
            return found
        each, room = found.shape[1] * self.stored.itemsize, found.reshape(-1).view(np.uint8)
        apart = np.diff(ids, prepend=-2) != 1 if each == whole else np.ones(ids.size, bool)
        apart[:: self.piece] = True
        starts = np.flatnonzero(apart).tolist()
        file = self._file()
        for first, last in itertools.pairwise([*starts, ids.size]):
            if read_at(file, int(ids[first]) * whole, room[first * each : last * each].data) != (last - first) * each:
                raise DataError(str(self.file), "it is shorter than it was", "write the hops again with unspool hops")
        return found

    def _file(self) -> FileIO:
        """The file, opened when first asked for."""
        if not self._open:
            file = FileIO(self.file)
            weakref.finalize(self, file.close)
            self._open.append(file)
        return self._open[0]

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_open": [],
            "_memory": None,
        }  # the file is there for all

    def __deepcopy__(self, memo: Any) -> StoredHops:
        return self

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"StoredHops(rows={self.shape[0]}, features={self.shape[1]}, depth={self.depth}, {dtype}, {self.device})"


def _numbered(device: torch.device | str) -> torch.device:
    """A device as tensors there name it: cuda is cuda:0."""
    return torch.empty(0, device=device).device


def _numbers(found: Array) -> Tensor:
    """Rows as they were read; NumPy has no bfloat16, and holds its bits."""
    rows = torch.from_numpy(found)
    return rows.view(torch.bfloat16) if found.dtype.kind == "u" else rows


_SEEKING = threading.Lock()


def read_at(file: FileIO, place: int, room: memoryview) -> int:
    """Read from a place in a file; how many bytes there were.

    Not through a map: around a row that is read, a system may map 2 MB, all of which count as memory of this process.
    """
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [room], place)
    with (
        _SEEKING
    ):  # Trap: threads share the place that a file is at, and so do processes that fork, but those have preadv
        file.seek(place)
        return file.readinto(room)
