"""One graph on many processes: what each of them holds, and how signals come and go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.graph.adjacency import Adjacency
from unspool.graph.compress import Rows as EntryRows
from unspool.graph.graph import Graph
from unspool.graph.normalise import Normalisation, factor_of
from unspool.graph.part import entries_of
from unspool.graph.partition import contiguous
from unspool.graph.words import described
from unspool.ops import Operator
from unspool.ops.operator import Csr, compressed
from unspool.ops.ranks import Ranks
from unspool.ops.spread_columns import ColumnOperator, shares
from unspool.ops.spread_rows import Halo, RowOperator


@dataclass(frozen=True)
class Columns:
    """Every process holds the whole graph, and takes some columns of the signals through all hops."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Every process holds the edges of its own nodes, and asks before each hop for the signals of neighbours that others have.

    Args:
        parts: the process of each node, or what makes them of (graph, number of processes): :func:`~unspool.graph.contiguous`,
            :func:`~unspool.graph.metis`, a function of your own.
    """

    parts: Tensor | Callable[[Graph, int], Tensor] = contiguous


#: How a graph is spread.
Layout = Columns | Rows


class _Elsewhere(Adjacency):
    """The weights of a graph that is spread, of which nothing but counts is known everywhere."""

    own: int
    stored: int
    same: bool

    def __init__(self, graph: Graph, own: int) -> None:
        w = graph.adjacency
        vars(self).update(loops=w.loops, own=own, stored=w.entries, same=w.symmetric)

    @property
    def nodes(self) -> int:
        return self.own

    @property
    def entries(self) -> int:
        return self.stored

    @property
    def symmetric(self) -> bool:
        return self.same

    @property
    def forward(self) -> EntryRows:  # type: ignore[override]
        self._refuse()

    @property
    def transpose(self) -> EntryRows:  # type: ignore[override]
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise IncompatibleError(
            "this looks at the edges, which different processes hold where a graph is spread; compute it on the graph before it is spread"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SpreadGraph(Graph):
    """A graph that several processes hold together; made by :func:`spread`.

    Networks and models run on it as on any graph, with signals of this process's own nodes: ``graph.take(x)`` cuts them out, and
    ``graph.gather(y)`` puts those of all processes together. Whatever needs edges as such (incidence matrices, exact solvers, parts
    of the graph) is refused.

    Attributes:
        ranks: the processes; ``graph.ranks.sent`` counts the bytes that this one has sent.
        rows: the numbers of this process's nodes.
        owners: how many nodes each process has.
        order: the nodes in order of the processes.
    """

    ranks: Ranks
    rows: Tensor
    owners: tuple[int, ...]
    order: Tensor
    top: float | None
    spread_smoother: Operator | None

    @property
    def device(self) -> torch.device:
        """Where signals live."""
        return self.operator.device

    @property
    def whole_nodes(self) -> int:
        """How many nodes all processes have together."""
        return sum(self.owners)

    @functools.cached_property
    def largest_frequency(self) -> float:
        """That of the graph before it was spread, if it was asked for there."""
        if self.top is None:
            raise IncompatibleError(
                "the largest frequency of a graph is not computed where it is spread; ask for graph.largest_frequency before, or give a step size"
            )
        return self.top

    @functools.cached_property
    def _smoother(self) -> Operator:
        assert self.spread_smoother is not None
        return self.spread_smoother

    def take(self, x: Any) -> Any:
        """This process's rows of something that has one for every node."""
        if x.shape[0] != self.whole_nodes:
            raise InputError("x", tuple(x.shape), f"one row for each of the graph's {self.whole_nodes} nodes")
        return x.index_select(0, self.rows)

    def gather(self, y: Tensor) -> Tensor:
        """The rows of all processes, in the order of the nodes, everywhere; its gradient is that of own rows."""
        return _Gathered.apply(self, y)  # type: ignore[no-any-return]

    def to(self, target: Any = None, *, device: Any = None, dtype: Any = None) -> Graph:
        """Itself, where nothing is to change."""
        kind = target if isinstance(target, torch.dtype) else dtype
        place = device if target is None or isinstance(target, torch.dtype) else target
        if (kind or self.dtype) != self.dtype or torch.device(place or self.device) != self.device:
            raise IncompatibleError("a graph that is spread stays as it is; call graph.to(...) before it is spread")
        return self

    def __repr__(self) -> str:
        return f"SpreadGraph({self.nodes} of {self.whole_nodes} nodes here, process {self.ranks.rank} of {self.ranks.size}, {described(self)})"


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, graph: SpreadGraph, y: Tensor) -> Any:
        ctx.graph = graph
        out = y.new_empty(graph.whole_nodes, *y.shape[1:])
        out[graph.order] = graph.ranks.gathered(y.contiguous(), graph.owners)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        # All processes compute the same of the whole; each answers for its own rows.
        return None, grads[0].index_select(0, ctx.graph.rows)


def spread(graph: Graph, layout: Layout) -> SpreadGraph:
    """Spread a graph over the processes of ``torch.distributed``, all of which call this with the same graph.

    Start them with ``torchrun``, and call ``torch.distributed.init_process_group("gloo")`` first. Gradients of parameters are then parts: sum them
    over the processes before a step, as :func:`~unspool.train.fit` does (``graph.ranks.add(p.grad)``).

    Args:
        graph: the whole graph.
        layout: ``Columns()``, or ``Rows(parts=...)``.

    Example:
        >>> import unspool as us
        >>> us.graph.spread(us.graph.ring(5), us.graph.Columns())
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: a graph is spread over the processes of torch.distributed, and none were started; ...
    """
    if not isinstance(layout, Layout):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("layout", layout, "us.graph.Columns() or us.graph.Rows(parts=...)")
    if isinstance(graph, SpreadGraph):
        raise InputError("graph", graph, "a graph that is not spread yet")
    ranks = Ranks.here()
    if graph.device.type != ranks.device.type:
        raise IncompatibleError(
            f"the graph is on {graph.device}, and the processes speak of tensors on {ranks.device.type}; call graph.to({ranks.device.type!r}), or "
            "init_process_group with nccl for GPUs and gloo for the CPU"
        )
    # Trap: before anything is made together, as processes that say different things would wait for each other.
    ranks.check_same("a graph or a layout", _marks(graph, layout))
    parts = None if isinstance(layout, Columns) else _parts_of(graph, layout, ranks)
    if parts is None:
        cut = shares(graph.nodes, ranks.size)
        owners, order = tuple(some.stop - some.start for some in cut), torch.arange(graph.nodes)
        made: Callable[[Operator], Operator] = lambda a: ColumnOperator(a, ranks, owners)  # noqa: E731
        operator = made(graph.operator)
    else:
        owners, order = tuple(torch.bincount(parts, minlength=ranks.size).tolist()), torch.argsort(parts, stable=True)
        made = lambda a: _cut(_parts_of_operator(a), ranks, owners, order)  # noqa: E731
        unmade = _unmade_entries(graph, False), None if graph.symmetric else _unmade_entries(graph, True)
        known = graph._entries  # pyright: ignore[reportPrivateUsage]
        operator = _cut(unmade, ranks, owners, order) if known is None else made(known)
    first = sum(owners[: ranks.rank])
    rows = order[first : first + owners[ranks.rank]]
    plain = graph._plain  # pyright: ignore[reportPrivateUsage]
    smoother = None if plain is None or graph.smoother is None else made(graph.smoother)
    fields = {name: getattr(graph, name) for name in Graph.__dataclass_fields__}
    fields |= {
        "adjacency": _Elsewhere(graph, rows.numel()), "degree": graph.degree[rows], "_plain": None if plain is None else plain[rows],
        "names": None if graph.names is None else tuple(graph.names[int(i)] for i in rows), "_entries": operator,
    }  # fmt: skip
    where = graph.device
    return SpreadGraph(
        **fields, ranks=ranks, rows=rows.to(where), owners=owners, order=order.to(where), top=vars(graph).get("largest_frequency"),
        spread_smoother=smoother,
    )  # fmt: skip


def _parts_of(graph: Graph, layout: Rows, ranks: Ranks) -> Tensor:
    given = layout.parts
    # Made once: who partitions may draw numbers.
    made = given if isinstance(given, Tensor) else ranks.from_first(lambda: given(graph, ranks.size))
    parts = torch.as_tensor(made).cpu().long()
    if parts.shape != (graph.nodes,) or not bool(((parts >= 0) & (parts < ranks.size)).all()):
        raise InputError(
            "parts", tuple(parts.shape), f"for each of the {graph.nodes} nodes a process, from 0 to {ranks.size - 1}"
        )
    return parts


def _marks(graph: Graph, layout: Layout) -> Iterator[Any]:
    """All that processes must have in common."""
    w, parts = graph.adjacency, layout.parts if isinstance(layout, Rows) else None
    known = parts if isinstance(parts, Tensor) else None
    yield f"{type(layout).__name__} {known is None} {graph.nodes} {w.entries} {graph.normalisation.value} {graph.dtype} {graph.scale} {torch.__version__}".encode()
    for values in (*w.forward, graph.degree, known):
        if values is not None:
            yield values.detach().cpu().contiguous().view(torch.uint8).numpy().data


class _Entries(NamedTuple):
    """The places of a matrix's entries, and what they are at (rows, columns, places)."""

    crow: Tensor
    col: Tensor
    value: Callable[[Tensor, Tensor, Tensor], Tensor]


def _entries_of(csr: Csr) -> _Entries:
    return _Entries(csr.crow, csr.col, lambda row, col, place: csr.val[place])


def _unmade_entries(graph: Graph, turned: bool) -> _Entries:
    """Those of A, or of its transpose, where A was not made yet: a process makes those of its own rows, with the bits of ``graph.operator``."""
    w, how = graph.adjacency.transpose if turned else graph.adjacency.forward, graph.normalisation
    factor = factor_of(graph.degree, how).to(graph.device)

    def value(row: Tensor, col: Tensor, place: Tensor) -> Tensor:
        weight = torch.ones_like(row, dtype=torch.float64) if w.beside is None else w.beside[place].double()
        if how is Normalisation.NONE:
            return weight.to(graph.dtype)
        one_sided = how is Normalisation.RANDOM_WALK
        both = factor[col if turned else row] if one_sided else factor[row] * factor[col]
        return (weight * both).to(graph.dtype)

    return _Entries(w.crow, w.col, value)


def _cut(whole: tuple[_Entries, _Entries | None], ranks: Ranks, owners: tuple[int, ...], order: Tensor) -> RowOperator:
    """Own rows of a matrix and of its transpose, where that is another."""
    halo = _halo(whole[0], ranks, owners, order)
    turned = halo if whole[1] is None else _halo(whole[1], ranks, owners, order)
    return RowOperator(halo, turned, ranks, owners)


def _parts_of_operator(a: Operator) -> tuple[_Entries, _Entries | None]:
    return _entries_of(a.forward), None if a.symmetric else _entries_of(a.transpose)


def _halo(whole: _Entries, ranks: Ranks, owners: tuple[int, ...], order: Tensor) -> Halo:
    """Own rows with own columns first; what others want of them follows from the same cut of their rows."""
    where, nodes = whole.col.device, order.numel()
    starts = torch.tensor([0, *owners]).cumsum(0)
    place = torch.empty(nodes, dtype=torch.int64)
    place[order] = torch.arange(nodes)  # in order of the processes
    mine = slice(int(starts[ranks.rank]), int(starts[ranks.rank + 1]))
    rows = order[mine].to(where)
    owner, entry = entries_of(whole.crow, rows)
    col = whole.col[entry].long()
    value, seen = whole.value(rows[owner], col, entry), place.to(where)[col]
    foreign = (seen < mine.start) | (seen >= mine.stop)
    halo = seen[foreign].unique()
    column = torch.where(foreign, rows.numel() + torch.searchsorted(halo, seen), seen - mine.start)
    # Own nodes first, so columns have another order than in the whole: sorted again within each row.
    width = rows.numel() + halo.numel()
    sort = torch.argsort(owner * max(width, 1) + column)
    crow = torch.zeros(rows.numel() + 1, dtype=torch.int64, device=where)
    crow[1:] = torch.bincount(owner, minlength=rows.numel()).cumsum(0)
    index = torch.int32 if entry.numel() < 2**31 else torch.int64
    entries = compressed(crow.to(index), column[sort].to(torch.int32), value[sort])
    taken = [int(((halo >= starts[r]) & (halo < starts[r + 1])).sum()) for r in range(ranks.size)]
    given, wanted = _wishes(ranks, halo.to(ranks.device), taken)
    return Halo(entries, ranks, wanted.to(where) - mine.start, tuple(given), tuple(taken))


def _wishes(ranks: Ranks, halo: Tensor, taken: list[int]) -> tuple[list[int], Tensor]:
    """How many own nodes each process asks for, and which."""
    asked = ranks.exchange(torch.tensor(taken, device=halo.device), [1] * ranks.size, [1] * ranks.size).tolist()
    return asked, ranks.exchange(halo, taken, asked)
