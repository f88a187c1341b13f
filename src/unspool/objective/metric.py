r"""Metrics T of the weighted norm :math:`\lVert M\rVert_T^2 = \operatorname{tr}(M T M^\top)`, as learnable leaves.

They are coefficients with matrix values: ``1 - T`` is I − T, ``0.3 * T + 0.7`` is 0.3 T + 0.7 I. A network's weight matrix
is a :class:`Relaxed` metric: the norm only sees its symmetric part, so a layer with it is no longer a gradient step of
any objective (docs/errata.md, 4).
"""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.objective.coefficient import Leaf


class Symmetric(Leaf):
    """A symmetric T with features (features + 1) / 2 parameters; with ``psd`` a product R Rᵀ of a triangular R.

    Example:
        >>> import unspool as us
        >>> t = us.Symmetric(3)
        >>> t.start().shape, (1 - t).symmetric
        (torch.Size([6]), True)
    """

    def __init__(
        self,
        features: int,
        *,
        psd: bool = False,
        initial: Tensor | None = None,
        per_layer: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, per_layer)
        self.features, self.psd = features, psd
        self.initial = _square(initial, features, self)
        if not torch.allclose(self.initial, self.initial.mT):
            raise ValueError(
                f"the metric {self} starts at a matrix that is not symmetric; use Relaxed for a free matrix"
            )
        if psd and bool((torch.linalg.eigvalsh(self.initial) <= 0).any()):
            raise ValueError(
                f"the metric {self} must start positive definite: an eigenvalue of the initial matrix is not positive"
            )

    def start(self) -> Tensor:
        """The lower triangle of T, or of its Cholesky factor."""
        matrix = torch.linalg.cholesky(self.initial) if self.psd else self.initial
        row, col = torch.tril_indices(self.features, self.features)
        return matrix[row, col].clone()

    def value_of(self, raw: Tensor) -> Tensor:
        """The triangle unfolded."""
        row, col = torch.tril_indices(self.features, self.features, device=raw.device)
        zero = torch.zeros(self.features, self.features, dtype=raw.dtype, device=raw.device)
        lower = zero.index_put((row, col), raw)
        if self.psd:
            return lower @ lower.mT
        return lower + lower.tril(-1).mT

    @property
    def letter(self) -> str:
        """T."""
        return "T"

    @property
    def matrix(self) -> bool:
        """Yes."""
        return True


class Relaxed(Leaf):
    """A free square matrix, the W of graph neural networks.

    Example:
        >>> import unspool as us
        >>> us.Relaxed(3).symmetric
        False
    """

    def __init__(
        self, features: int, *, initial: Tensor | None = None, per_layer: bool = False, name: str | None = None
    ) -> None:
        super().__init__(name, per_layer)
        self.features = features
        self.initial = _square(initial, features, self)

    def start(self) -> Tensor:
        """The matrix itself."""
        return self.initial.clone()

    def value_of(self, raw: Tensor) -> Tensor:
        """The matrix itself."""
        return raw

    @property
    def letter(self) -> str:
        """W."""
        return "W"

    @property
    def symmetric(self) -> bool:
        """No."""
        return False

    @property
    def matrix(self) -> bool:
        """Yes."""
        return True


class Diagonal(Leaf):
    """One weight per channel.

    Example:
        >>> import unspool as us
        >>> us.Diagonal(3).start()
        tensor([1., 1., 1.], dtype=torch.float64)
    """

    def __init__(
        self, features: int, *, initial: Tensor | None = None, per_layer: bool = False, name: str | None = None
    ) -> None:
        super().__init__(name, per_layer)
        start = (
            torch.ones(features, dtype=torch.float64)
            if initial is None
            else torch.as_tensor(initial, dtype=torch.float64)
        )
        if start.shape != (features,):
            raise ValueError(f"the diagonal starts with shape {tuple(start.shape)}: expected ({features},)")
        self.features, self.initial = features, start

    def start(self) -> Tensor:
        """The diagonal."""
        return self.initial.clone()

    def value_of(self, raw: Tensor) -> Tensor:
        """The diagonal."""
        return raw

    @property
    def letter(self) -> str:
        """Δ."""
        return "Δ"


class LowRank(Leaf):
    """T = U Uᵀ with a thin U of shape (features, rank): positive semi-definite, with few parameters.

    Example:
        >>> import unspool as us
        >>> us.LowRank(10, rank=2).start().shape
        torch.Size([10, 2])
    """

    def __init__(
        self,
        features: int,
        rank: int,
        *,
        initial: Tensor | None = None,
        per_layer: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, per_layer)
        if not 1 <= rank <= features:
            raise ValueError(f"rank {rank} of a metric on {features} features: expected 1 to {features}")
        start = (
            torch.eye(features, dtype=torch.float64)[:, :rank]
            if initial is None
            else torch.as_tensor(initial, dtype=torch.float64)
        )
        if start.shape != (features, rank):
            raise ValueError(f"the factor starts with shape {tuple(start.shape)}: expected ({features}, {rank})")
        self.features, self.rank, self.initial = features, rank, start

    def start(self) -> Tensor:
        """The thin factor U."""
        return self.initial.clone()

    def value_of(self, raw: Tensor) -> Tensor:
        """U Uᵀ."""
        return raw @ raw.mT

    @property
    def letter(self) -> str:
        """T."""
        return "T"

    @property
    def matrix(self) -> bool:
        """Yes."""
        return True


def _square(initial: Tensor | None, features: int, leaf: Leaf) -> Tensor:
    if features < 1:
        raise ValueError(f"a metric on {features} features: it needs at least one")
    if initial is None:
        return torch.eye(features, dtype=torch.float64)
    matrix = torch.as_tensor(initial, dtype=torch.float64).detach().clone()
    if matrix.shape != (features, features):
        raise ValueError(
            f"the metric {leaf} starts with shape {tuple(matrix.shape)}: expected ({features}, {features})"
        )
    return matrix
