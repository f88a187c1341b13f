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
        >>> noise = Covariance.read([[2.0, 1.0], [1.0, 2.0]], 2)
        >>> noise.variance, round(noise.level, 4)
        (tensor([1., 3.], dtype=torch.float64), 1.4142)
    """

    variance: Tensor
    basis: Tensor | None

    @staticmethod
    def read(noise: Any, channels: int) -> Covariance:
        """From one variance per channel or a covariance matrix, checked."""
        found = _numbers(noise)
        if found.ndim == 0:
            raise ValueError(
                f"noise={noise!r} is a single number: give one variance per channel or a covariance matrix here, and a level for "
                "all channels as SURE(noise=...)"
            )
        if found.shape not in ((channels,), (channels, channels)):
            raise ValueError(
                f"noise has shape {tuple(found.shape)}, but the signal has {channels} channels: give one variance for each, or "
                "their covariance matrix"
            )
        if not bool(torch.isfinite(found).all()):
            raise ValueError("noise holds numbers that are not finite: variances and covariances are finite")
        if found.ndim == 1:
            if not bool((found > 0).all()):
                raise ValueError(f"noise has the variance {float(found.min()):g}: variances are positive")
            return Covariance(found, None)
        if not torch.allclose(found, found.T, rtol=1e-8, atol=1e-10 * float(found.abs().max())):
            raise ValueError(
                "noise is a matrix that is not symmetric: a covariance is; give one variance per channel, or Σ"
            )
        variance, basis = torch.linalg.eigh((found + found.T) / 2)
        if not float(variance[0]) > 1e-12 * float(variance[-1]):
            raise ValueError(
                f"noise is a matrix with the eigenvalue {float(variance[0]):.2g}, and a covariance with an inverse is positive definite; "
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

    def apart(self, x: Tensor) -> Tensor:
        """A signal in principal channels."""
        return x if self.basis is None else x @ self.basis.to(x)

    def together(self, x: Tensor) -> Tensor:
        """A signal in principal channels, back in its own."""
        return x if self.basis is None else x @ self.basis.T.to(x)


def _numbers(noise: Any) -> Tensor:
    try:
        found = noise.detach().cpu() if isinstance(noise, Tensor) else torch.tensor(np.asarray(noise, dtype=float))
        return found.to(torch.float64)
    except (TypeError, ValueError):
        raise ValueError(f"noise={noise!r}: expected one variance per channel, or their covariance matrix") from None
