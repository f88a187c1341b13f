"""The graph: an immutable, already normalised linear operator on which signals live."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import kept
from unspool.graph.adjacency import Adjacency, degrees
from unspool.graph.both_ways import sorted_edges
from unspool.graph.edges import check_loops, notes_of, read_edge_index, read_weights, tell, unsaid_of
from unspool.graph.laplacian_form import NOT_NORMALISED, diagonal_entries, laplacian_form, rescaled
from unspool.graph.normalise import Normalisation, check_normalisation
from unspool.graph.pyg import network_edges, pyg_edges
from unspool.graph.subgraph import subgraph
from unspool.graph.words import described, html_of_graph
from unspool.ops import Operator
from unspool.ops.spmm import spmm

#: Up to how many entries A is made with the graph and not when it is first asked for.
SMALL = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    r"""An immutable graph, normalised once when made: ``graph @ x`` is :math:`A X`.

    By default self-loops are added and :math:`A = D^{-1/2} W D^{-1/2}`, as in the paper, so that
    :math:`B^\top B = I - A` holds for the incidence matrix B. Information flows along edges: the edge (s, t) lets
    node t see node s, as in PyTorch Geometric.

    Make one with :meth:`from_edges`, :meth:`from_pyg`, :meth:`from_scipy`, :meth:`from_networkx` or
    :meth:`from_dense`.

    Kept are the places of entries, and weights where they are not all one; the entries of A are made when first asked for.

    Attributes:
        adjacency: the weights W.
        degree: row sums of W, self-loops included (float64, on the CPU).
        dtype: of the entries of A.
        scale: ℓ with L = ℓ (I − S) for the smoother S; 1 under symmetric normalisation.
        normalisation: which normalisation was applied.
        undirected: whether W equals its transpose.
        symmetric: whether A does.
        notes: what was done to the input that its owner should know.
        names: the nodes' own names in order, where the input had any.

    Example:
        >>> import torch, unspool as us
        >>> edges = torch.tensor([[0, 1], [1, 2]])
        >>> graph = us.Graph.from_edges(edges, nodes=3, directed=False)
        >>> graph
        Graph(nodes=3, edges=2, undirected, symmetric normalisation, float32, cpu)
        >>> graph @ torch.ones(3, 2)
        tensor([[0.9082, 0.9082],
                [1.1498, 1.1498],
                [0.9082, 0.9082]])
    """

    adjacency: Adjacency
    degree: Tensor
    dtype: torch.dtype
    scale: float
    normalisation: Normalisation
    undirected: bool
    symmetric: bool
    notes: tuple[str, ...]
    names: tuple[Hashable, ...] | None
    _has_smoother: bool
    _plain: Tensor | None  # row sums of W without loops, of which S is made where it is not A
    _no_laplacian: str | None  # why BᵀB = L fails here, on relaxed graphs too
    _entries: Operator | None = None  # A, once it was asked for; of small graphs at once

    def __post_init__(self) -> None:
        if self._entries is None and kept.is_real(self) and self.adjacency.entries <= SMALL:
            self._operator  # noqa: B018 - asked for so that it is kept

    # -- making ----------------------------------------------------------------------------------------------------

    @staticmethod
    def from_edges(
        edge_index: Any,
        nodes: int | None = None,
        weights: Any = None,
        *,
        normalise: Any = Normalisation.SYMMETRIC,
        loops: float = 1.0,
        directed: bool | None = None,
    ) -> Graph:
        """Make a graph from a list of edges.

        Args:
            edge_index: integers of shape (2, edges), sources above targets (a tensor, an array or nested lists).
            nodes: how many nodes there are; inferred from the largest id when omitted.
            weights: one non-negative number per edge; ones when omitted.
            normalise: how A is made from the weights.
            loops: weight of the self-loop given to every node that has none; 0 for none.
            directed: True to keep edges as they are listed. Otherwise every edge runs both ways, and of two directions the
                larger weight counts; False says that this is meant, and when nothing is said a
                :class:`~unspool.graph.EdgeDirectionWarning` tells where it changes something.

        Returns:
            The graph, in torch's default dtype, on the device of ``edge_index``.

        Example:
            >>> import unspool as us
            >>> us.Graph.from_edges([[0, 5], [1, 1]], nodes=3)
            Traceback (most recent call last):
                ...
            ValueError: edge 1 names node 5, but node ids run from 0 to 2 (nodes=3)
        """
        check_normalisation(normalise)
        index, nodes = read_edge_index(edge_index, nodes)
        weight = None if weights is None else read_weights(weights, index.shape[1]).to(index.device)
        check_loops(loops)
        w, found = sorted_edges(index, weight, nodes, loops, directed is True)
        notes, unsaid = notes_of(found, weight is not None), unsaid_of(found) if directed is None else None
        tell(notes, unsaid)
        return _made(w, degrees(w.forward, found.own, loops), notes if unsaid is None else (*notes, unsaid), normalise)

    @staticmethod
    def open(folder: Any, *, normalise: Normalisation = Normalisation.SYMMETRIC, check: bool = True) -> Graph:
        """Open a graph that ``unspool graph build`` has written, as a memory map; ``check`` compares checksums, reading it once."""
        from unspool.graph.folder import opened

        check_normalisation(normalise)
        return _made(*opened(folder, check), normalise)

    @staticmethod
    def from_pyg(data: Any, **how: Any) -> Graph:
        """Make a graph from a PyTorch Geometric ``Data`` object (``edge_index``, ``edge_weight``, ``num_nodes``).

        Keyword arguments are those of :meth:`from_edges`. An ``edge_attr`` of one column stands in for a missing
        ``edge_weight``; one of several columns is refused.

        Example:
            >>> import torch, unspool as us
            >>> from types import SimpleNamespace
            >>> data = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
            >>> us.Graph.from_pyg(data).nodes
            3
        """
        index, weight = pyg_edges(data)
        return Graph.from_edges(index, nodes=data.num_nodes, weights=weight, **how)

    @staticmethod
    def from_scipy(matrix: Any, **how: Any) -> Graph:
        """Make a graph from a SciPy sparse adjacency matrix W, with (W x)ᵢ = Σⱼ Wᵢⱼ xⱼ before normalisation.

        Example:
            >>> import numpy, scipy.sparse, unspool as us
            >>> us.Graph.from_scipy(scipy.sparse.csr_array(numpy.ones((2, 2)))).to_dense()
            tensor([[0.5000, 0.5000],
                    [0.5000, 0.5000]])
        """
        entries = matrix.tocoo()
        if entries.shape[0] != entries.shape[1]:
            raise ValueError(f"the adjacency matrix has shape {entries.shape}: it must be square")
        # W[i, j] carries j's signal into i: j is the source.
        index = np.stack([entries.col, entries.row]).astype(np.int64)
        return Graph.from_edges(index, nodes=entries.shape[0], weights=entries.data, **how)

    @staticmethod
    def from_dense(matrix: Any, **how: Any) -> Graph:
        """Make a graph from a dense adjacency matrix W (a tensor, an array or nested lists); zeros are no edges.

        Example:
            >>> import unspool as us
            >>> us.Graph.from_dense([[0, 1], [1, 0]], loops=0).to_dense()
            tensor([[0., 1.],
                    [1., 0.]])
        """
        dense = torch.as_tensor(np.asarray(matrix, dtype=float) if isinstance(matrix, list | tuple) else matrix)
        if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
            raise ValueError(f"the adjacency matrix has shape {tuple(dense.shape)}: it must be square")
        row, col = torch.nonzero(dense, as_tuple=True)
        return Graph.from_edges(torch.stack([col, row]), nodes=dense.shape[0], weights=dense[row, col], **how)

    @staticmethod
    def from_networkx(network: Any, weight: str = "weight", **how: Any) -> Graph:
        """Make a graph from a NetworkX graph; nodes keep their order, and their names stand in ``graph.names``.

        Edges without the attribute ``weight`` weigh 1. An undirected graph stays so; those of a ``DiGraph`` run both ways too
        unless ``directed=True`` is given, as everywhere.

        Example:
            >>> import networkx, unspool as us
            >>> us.Graph.from_networkx(networkx.path_graph(["a", "b", "c"])).names
            ('a', 'b', 'c')
        """
        names, index, weights = network_edges(network, weight)
        if not network.is_directed():
            how = {**how, "directed": False}  # each edge is listed once, whichever way
        return _replaced(Graph.from_edges(index, nodes=len(names), weights=weights, **how), names=names)

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.adjacency.nodes

    @property
    def edges(self) -> int:
        """Number of edges without self-loops; an undirected edge counts once."""
        return (self.adjacency.entries - self.adjacency.loops) // (2 if self.undirected else 1)

    @property
    def device(self) -> torch.device:
        """Where the graph lives."""
        return self.adjacency.forward.col.device

    @property
    def operator(self) -> Operator:
        """The sparse matrix A and its transpose."""
        return kept.kept_operator(self)

    @property
    def smoother(self) -> Operator | None:
        """S with L = scale · (I − S), whose polynomials solve denoising problems; None where no Laplacian BᵀB exists."""
        found = kept.kept_operator if self._plain is None else kept.kept_smoother
        return found(self) if self._has_smoother else None

    @functools.cached_property
    def largest_frequency(self) -> float:
        """The largest eigenvalue of the Laplacian, on large graphs perhaps a little more and never less (computed once)."""
        from unspool.graph.spectrum import largest_frequency

        return largest_frequency(self)

    def require_laplacian(self) -> Operator:
        """The smoother S with L = scale · (I − S), or a refusal that says why this graph has no L = BᵀB."""
        if (smoother := self.smoother) is None:
            raise IncompatibleError(self._no_laplacian)
        return smoother

    def require_incidence(self) -> None:
        """A refusal that says why this graph has no B with BᵀB = L; a relaxed graph has L = I − A and, mostly, no such B."""
        if self._no_laplacian is not None:
            raise IncompatibleError(self._no_laplacian)

    def with_general_laplacian(self) -> Graph:
        """The same graph with I − A standing in for BᵀB, so that layers written for undirected graphs run on it.

        Directed graphs and random-walk normalisation have no BᵀB: steps of an objective can still be taken with A as it
        is, as graph neural networks do, but they are no longer gradient steps of that objective. An undirected,
        symmetrically normalised graph is returned as it is.

        Example:
            >>> import torch, unspool as us
            >>> chain = us.Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), nodes=3, directed=True)
            >>> us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=2)(torch.eye(3), chain.with_general_laplacian()).shape
            torch.Size([3, 3])
        """
        if self._has_smoother and self._plain is None and self.scale == 1.0:
            return self
        why = NOT_NORMALISED if self._no_laplacian is None else self._no_laplacian  # there is no B for I − A
        return _replaced(self, scale=1.0, _has_smoother=True, _plain=None, _no_laplacian=why)

    def with_operator(self, operator: Operator, why: str) -> Graph:
        """The same nodes with another A in the place of this one, and I − A in that of BᵀB, for networks that see the graph through A alone.

        Args:
            operator: A and its transpose.
            why: the sentence for those that ask for the incidence matrix, which there is none of.
        """
        form = {"scale": 1.0, "_has_smoother": True, "_plain": None, "_no_laplacian": why}
        return _replaced(self, dtype=operator.dtype, symmetric=operator.symmetric, _entries=operator, **form)

    # -- using -----------------------------------------------------------------------------------------------------

    def __matmul__(self, x: Tensor) -> Tensor:
        return spmm(self.operator, x)

    def laplacian_times(self, h: Tensor) -> Tensor:
        """L H, with L = I − A under symmetric normalisation and L = D − A without normalisation."""
        return self.scale * (h - spmm(self.require_laplacian(), h))

    def to(
        self,
        target: torch.device | str | torch.dtype | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Graph:
        """The same graph on another device or in another dtype; half precision keeps float32 weights.

        Example:
            >>> import torch, unspool as us
            >>> us.graph.ring(3).to(torch.float64).dtype
            torch.float64
        """
        if isinstance(target, torch.dtype):
            dtype = target
        elif target is not None:
            device = target
        where = self.device if device is None else torch.device(device)
        kind = self.dtype if dtype is None else dtype
        kind = torch.float32 if kind in (torch.bfloat16, torch.float16) else kind
        if kind not in (torch.float32, torch.float64):
            raise TypeError(f"a graph holds float32 or float64 weights, not {str(kind).removeprefix('torch.')}")
        adjacency = self.adjacency if where == self.device else self.adjacency.to(where)
        if adjacency is self.adjacency and kind == self.dtype:
            return self
        return _replaced(self, adjacency=adjacency, dtype=kind, _entries=None)

    def incidence(self) -> Operator:
        """The oriented incidence matrix B of shape (edges, nodes), with BᵀB = L; refused where there is none.

        Example:
            >>> import torch, unspool as us
            >>> graph = us.graph.ring(5).to(torch.float64)
            >>> b = graph.incidence().to_dense()
            >>> torch.allclose(b.T @ b, torch.eye(5, dtype=torch.float64) - graph.to_dense())
            True
            >>> us.Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), nodes=3, directed=True).with_general_laplacian().incidence()
            Traceback (most recent call last):
                ...
            unspool.errors.IncompatibleError: this graph is directed, so no Laplacian BᵀB exists ...
        """
        return kept.kept_incidence(self)

    @functools.cached_property
    def laplacian_diagonal(self) -> Tensor:
        """The diagonal of L, of shape (nodes, 1): the degrees without normalisation, about 1 with it."""
        return self.scale * (1 - diagonal_entries(self.require_laplacian()))[:, None]

    @functools.cached_property
    def _operator(self) -> Operator:
        if self._entries is None:
            made = kept.made_operator(self)
            # Trap: torch.compile sees the fields of a frozen dataclass and nothing else.
            object.__setattr__(self, "_entries", made)
            return made
        return self._entries

    @functools.cached_property
    def _smoother(self) -> Operator:
        assert self._plain is not None
        with kept.real_tensors():
            return rescaled(self.adjacency, self._plain, self.scale, self.dtype)

    @property
    def squared_incidence(self) -> Operator:
        """B with every entry squared; its transpose sums weights of edges into the diagonal of Bᵀ diag(w) B."""
        return kept.kept_squared_incidence(self)

    @functools.cached_property
    def _squared_incidence(self) -> Operator:
        with torch.inference_mode(False):
            b = self._incidence
            return b.to(b.device, (b.forward.val.square(), b.transpose.val.square()))

    @functools.cached_property
    def _incidence(self) -> Operator:
        from unspool.graph.incidence import incidence

        with torch.inference_mode(False):
            return incidence(self)

    def laplacian(self) -> Operator:
        """The Laplacian L as a sparse matrix: I − A under symmetric normalisation, D − A without."""
        from unspool.graph.incidence import laplacian

        return laplacian(self)

    def to_dense(self) -> Tensor:
        """A as a plain tensor."""
        return self.operator.to_dense()

    def to_scipy(self) -> Any:
        """A as a SciPy ``csr_array``."""
        return self.operator.to_scipy()

    subgraph = subgraph
    _repr_html_ = html_of_graph

    def __repr__(self) -> str:
        return f"Graph(nodes={self.nodes}, edges={self.edges}, {described(self)})"


def _made(w: Adjacency, degree: Tensor, notes: tuple[str, ...], how: Normalisation) -> Graph:
    form = laplacian_form(w, degree, how)
    return Graph(
        adjacency=w, degree=degree, dtype=torch.get_default_dtype(), scale=form.scale, normalisation=how, undirected=w.symmetric,
        symmetric=form.symmetric, notes=notes, names=None, _has_smoother=form.why_none is None, _plain=form.plain,
        _no_laplacian=form.why_none,
    )  # fmt: skip


def _replaced(graph: Graph, **changes: Any) -> Graph:
    fields = {name: getattr(graph, name) for name in type(graph).__dataclass_fields__}
    return type(graph)(**(fields | changes))
