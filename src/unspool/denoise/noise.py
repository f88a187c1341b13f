r"""Noise over channels: its covariance Σ, and the metric σ²Σ⁻¹ that the fidelity takes from it.

The rows of X − X₀ are independent draws of mean zero and covariance Σ. The paper names one use of its matrix T_α: *the inverse
covariance matrix of the noise* (after eq. (2)). In the principal channels of the noise, the eigenvectors of Σ, the problem
α‖H − X‖²_T + (1 − α)‖BH‖² with T = σ²Σ⁻¹ falls apart into one for each channel, which is trusted by σ² over its own variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of noise over channels.

    Attributes:
        variance: of each principal channel.
        basis: the principal channels as columns, orthonormal; None where they are the channels themselves.

    Example:
        >>> covariance = Covariance.read([[2.0, 1.0], [1.0, 2.0]], 2)
        >>> covariance.variance, round(covariance.level, 4)
        (tensor([1., 3.], dtype=torch.float64), 1.4142)
    """

    variance: Tensor
    basis: Tensor | None

    @staticmethod
    def read(covariance: Any, channels: int) -> Covariance:
        """From one variance per channel or a covariance matrix, checked."""
        numbers = _numbers(covariance)
        if numbers.ndim == 0:
            raise ValueError(
                f"noise_covariance={covariance!r} is a single number: give one variance per channel or a covariance matrix here, and a level for "
                "all channels as SURE(noise=...)"
            )
        if numbers.shape not in ((channels,), (channels, channels)):
            raise ValueError(
                f"noise_covariance has shape {tuple(numbers.shape)}, but the signal has {channels} channels: give one variance for each, or "
                "their covariance matrix"
            )
        if not bool(torch.isfinite(numbers).all()):
            raise ValueError("noise_covariance holds numbers that are not finite: variances and covariances are finite")
        if numbers.ndim == 1:
            if not bool((numbers > 0).all()):
                raise ValueError(f"noise_covariance has the variance {float(numbers.min()):g}: variances are positive")
            return Covariance(numbers, None)
        if not torch.allclose(numbers, numbers.T, rtol=1e-8, atol=1e-10 * float(numbers.abs().max())):
            raise ValueError(
                "noise_covariance is a matrix that is not symmetric: a covariance is; give one variance per channel, or Σ"
            )
        variance, basis = torch.linalg.eigh((numbers + numbers.T) / 2)
        if not float(variance[0]) > 1e-12 * float(variance[-1]):
            raise ValueError(
                f"noise_covariance is a matrix with the eigenvalue {float(variance[0]):.2g}, and a covariance with an inverse is positive definite; "
                "add a small multiple of the identity"
            )
        return Covariance(variance, basis)

    @property
    def level(self) -> float:
        """σ: the root of the mean variance."""
        return float(self.variance.mean().sqrt())

    @property
    def relative(self) -> Tensor:
        """The variances over σ²: 1 for noise that is the same in all channels."""
        return self.variance / self.variance.mean()

    @property
    def metric(self) -> Tensor:
        """T = σ²Σ⁻¹: a diagonal, or a symmetric matrix."""
        if self.basis is None:
            return 1 / self.relative
        metric = self.basis / self.relative @ self.basis.T
        return (metric + metric.T) / 2

    def to_principal(self, x: Tensor) -> Tensor:
        """A signal in principal channels."""
        return x if self.basis is None else x @ self.basis.to(x)

    def from_principal(self, x: Tensor) -> Tensor:
        """A signal in principal channels, back in its own."""
        return x if self.basis is None else x @ self.basis.T.to(x)


def _numbers(covariance: Any) -> Tensor:
    try:
        if isinstance(covariance, Tensor):
            return covariance.detach().cpu().to(torch.float64)
        return torch.tensor(np.asarray(covariance, dtype=float)).to(torch.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"noise_covariance={covariance!r}: expected one variance per channel, or their covariance matrix"
        ) from None
