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
from unspool.graph.edges import Edges, add_loops, merge, read_edge_index, read_weights, settle, tell
from unspool.graph.laplacian_form import rescaled, why_no_laplacian
from unspool.graph.normalise import Normalisation, normalised
from unspool.graph.pyg import pyg_edges
from unspool.graph.words import described, html_of_graph
from unspool.ops import Operator
from unspool.ops.spmm import spmm

_NOT_NORMALISED = (
    "this graph is not normalised, so I − A, which models put in the place of its Laplacian, is not BᵀB; "
    "build it with Normalisation.SYMMETRIC"
)


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    r"""An immutable graph, normalised once when made: ``graph @ x`` is :math:`A X`.

    By default self-loops are added and :math:`A = D^{-1/2} W D^{-1/2}`, as in the paper, so that
    :math:`B^\top B = I - A` holds for the incidence matrix B. Information flows along edges: the edge (s, t) lets
    node t see node s, as in PyTorch Geometric.

    Make one with :meth:`from_edges`, :meth:`from_pyg`, :meth:`from_scipy`, :meth:`from_networkx` or
    :meth:`from_dense`.

    Attributes:
        operator: the sparse matrix A and its transpose.
        smoother: S with L = scale · (I − S), the matrix whose polynomials solve denoising problems; A itself
            under symmetric normalisation. None where no Laplacian BᵀB exists.
        scale: the number in that relation; 1 under symmetric normalisation.
        degree: row sums of W, self-loops included (float64, on the CPU).
        normalisation: which normalisation was applied.
        undirected: whether W equals its transpose.
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

    operator: Operator
    smoother: Operator | None
    scale: float
    degree: Tensor
    normalisation: Normalisation
    undirected: bool
    notes: tuple[str, ...]
    names: tuple[Hashable, ...] | None
    _exact: Operator  # the same in float64 on the CPU, so that a change of dtype starts from full precision
    _exact_smoother: Operator | None
    _no_laplacian: str | None  # why BᵀB = L fails here, on relaxed graphs too

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
        if not isinstance(normalise, Normalisation):
            raise TypeError(f"normalise={normalise!r}: expected Normalisation.SYMMETRIC, RANDOM_WALK or NONE")
        index, nodes = read_edge_index(edge_index, nodes)
        weight = None if weights is None else read_weights(weights, index.shape[1])
        edges = settle(merge(index, weight, nodes), directed)
        tell(edges.notes, edges.unsaid)
        device = edge_index.device if isinstance(edge_index, Tensor) else torch.device("cpu")
        return _made(add_loops(edges, loops), normalise).to(device)

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
        names = tuple(network.nodes())
        place = {name: i for i, name in enumerate(names)}
        pairs = [(place[u], place[v], float(data.get(weight, 1.0))) for u, v, data in network.edges(data=True)]
        index = np.array([[u for u, _, _ in pairs], [v for _, v, _ in pairs]], dtype=np.int64)
        if not network.is_directed():
            how = {**how, "directed": False}  # each edge is listed once, whichever way
        made = Graph.from_edges(index, nodes=len(names), weights=[w for _, _, w in pairs], **how)
        return _replaced(made, names=names)

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.operator.shape[0]

    @property
    def edges(self) -> int:
        """Number of edges without self-loops; an undirected edge counts once."""
        crow, col = self._exact.forward.crow, self._exact.forward.col
        loops = int((self._exact.rows() == col).sum())
        arcs = int(crow[-1]) - loops
        return arcs // 2 if self.undirected else arcs

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.operator.dtype

    @property
    def device(self) -> torch.device:
        """Where the graph lives."""
        return self.operator.device

    @property
    def symmetric(self) -> bool:
        """Whether A equals its transpose."""
        return self.operator.symmetric

    @functools.cached_property
    def largest_frequency(self) -> float:
        """The largest eigenvalue of the Laplacian, on large graphs perhaps a little more and never less (computed once)."""
        from unspool.graph.spectrum import largest_frequency

        return largest_frequency(self)

    def require_laplacian(self) -> Operator:
        """The smoother S with L = scale · (I − S), or a refusal that says why this graph has no L = BᵀB."""
        if self.smoother is None:
            raise IncompatibleError(self._no_laplacian)
        return self.smoother

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
        if self.smoother is self.operator and self.scale == 1.0:
            return self
        why = _NOT_NORMALISED if self._no_laplacian is None else self._no_laplacian  # there is no B for I − A
        return _replaced(self, smoother=self.operator, scale=1.0, _exact_smoother=self._exact, _no_laplacian=why)

    def with_operator(self, operator: Operator, why: str) -> Graph:
        """The same nodes with another A in the place of this one, and I − A in that of BᵀB, for networks that see the graph through A alone.

        Args:
            operator: A and its transpose.
            why: the sentence for those that ask for the incidence matrix, which there is none of.
        """
        return _replaced(self, operator=operator, smoother=operator, scale=1.0, _no_laplacian=why)

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
        if kind in (torch.bfloat16, torch.float16):
            kind = torch.float32
        if kind not in (torch.float32, torch.float64):
            raise TypeError(f"a graph holds float32 or float64 weights, not {str(kind).removeprefix('torch.')}")
        operator = _cast(self._exact, where, kind)
        smoother = (
            operator
            if self._exact_smoother is self._exact
            else self._exact_smoother and _cast(self._exact_smoother, where, kind)
        )
        return _replaced(self, operator=operator, smoother=smoother)

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
        from unspool.graph.incidence import kept_incidence

        return kept_incidence(self)

    @functools.cached_property
    def laplacian_diagonal(self) -> Tensor:
        """The diagonal of L, of shape (nodes, 1): the degrees without normalisation, about 1 with it."""
        smoother = self.require_laplacian()
        row, own = smoother.rows(), smoother.rows() == smoother.forward.col.long()
        diagonal = smoother.forward.val.new_zeros(self.nodes).index_add(0, row[own], smoother.forward.val[own])
        return (self.scale * (1 - diagonal))[:, None]

    @property
    def squared_incidence(self) -> Operator:
        """B with every entry squared; its transpose sums weights of edges into the diagonal of Bᵀ diag(w) B."""
        from unspool.graph.incidence import kept_squared_incidence

        return kept_squared_incidence(self)

    @functools.cached_property
    def _squared_incidence(self) -> Operator:
        with torch.inference_mode(False):
            b = self.incidence()
            return b.to(b.device, (b.forward.val.square(), b.transpose.val.square()))

    @functools.cached_property
    def _incidence(self) -> Operator:
        from unspool.graph.incidence import incidence

        with torch.inference_mode(False):  # what is remembered must be of use in training too
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

    _repr_html_ = html_of_graph

    def __repr__(self) -> str:
        return f"Graph(nodes={self.nodes}, edges={self.edges}, {described(self)})"


def _made(edges: Edges, how: Normalisation) -> Graph:
    n = edges.nodes
    degree = torch.zeros(n, dtype=torch.float64).index_add_(0, edges.row, edges.weight)
    raw = Operator.from_entries(edges.row, edges.col, edges.weight, (n, n))
    value = normalised(edges.row, edges.col, edges.weight, degree, how)
    exact = raw if how is Normalisation.NONE else Operator.from_entries(edges.row, edges.col, value, (n, n))
    reason = why_no_laplacian(exact, raw.symmetric, degree, how)
    smoother, scale = None, 1.0
    if reason is None:
        smoother, scale = (exact, 1.0) if how is not Normalisation.NONE else rescaled(edges, degree)
    graph = Graph(
        operator=exact, smoother=smoother, scale=scale, degree=degree, normalisation=how, undirected=raw.symmetric,
        notes=edges.remarks, names=None, _exact=exact, _exact_smoother=smoother, _no_laplacian=reason,
    )  # fmt: skip
    return graph.to(torch.get_default_dtype())


def _cast(exact: Operator, device: torch.device, dtype: torch.dtype) -> Operator:
    if dtype == torch.float64 and device.type == "cpu":
        return exact
    return exact.to(device, (exact.forward.val.to(dtype), exact.transpose.val.to(dtype)))


def _replaced(graph: Graph, **changes: Any) -> Graph:
    fields = {name: getattr(graph, name) for name in Graph.__dataclass_fields__}
    return Graph(**(fields | changes))
