"""Adam for a stack of trials, each with its own rate, decay and number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from unspool.ops.kernels import fused

#: The kernel behind ``torch.optim.Adam(fused=True)``.
_fused: Any = torch.ops.aten._fused_adam_


class StackedAdam:
    """Adam over parameters of shape (trials, ...): what :class:`unspool.train.adam.Adam` does to each trial alone.

    On the CPU every trial gets torch's fused kernel, so a trial moves as it does alone, bit for bit. On a GPU the same formula
    runs over all trials at once; rates, decays and steps are tensors there, so a captured epoch follows when they change.

    Args:
        parameters: leaves of shape (trials, ...), by name.
        betas, eps: as everywhere.

    Example:
        >>> import torch
        >>> weight = torch.ones(2, 3, requires_grad=True)
        >>> adam = StackedAdam({"weight": weight})
        >>> adam.begin([0, 1], rates=[0.1, 0.5], decays={"weight": [0.0, 0.0]})
        >>> adam.step({"weight": 2 * weight.detach()})
        >>> weight.detach()
        tensor([[0.9000, 0.9000, 0.9000],
                [0.5000, 0.5000, 0.5000]])
    """

    def __init__(
        self, parameters: dict[str, Tensor], betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        first = next(iter(parameters.values()))
        self.parameters, self.betas, self.eps = parameters, betas, eps
        self.trials, self.device = first.shape[0], first.device
        self.means = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.squares = {name: torch.zeros_like(p) for name, p in parameters.items()}
        # Trap: the fused kernel counts steps in float32 and computes with rates in float64.
        self.steps = torch.zeros(self.trials, device=self.device)
        self.rates = torch.zeros(self.trials, dtype=torch.float64, device=self.device)
        self.decays = {n: torch.zeros(self.trials, dtype=torch.float64, device=self.device) for n in parameters}

    @torch.no_grad()
    def begin(self, slots: Sequence[int], rates: Sequence[float], decays: dict[str, list[float]]) -> None:
        """Start anew in these slots, with one rate per slot and one decay per slot and parameter."""
        where = torch.as_tensor(list(slots), device=self.device)
        for held in (*self.means.values(), *self.squares.values(), self.steps):
            held.index_fill_(0, where, 0)
        self.rates.index_copy_(0, where, torch.tensor(rates, dtype=torch.float64).to(self.device))
        for name, decay in decays.items():
            self.decays[name].index_copy_(0, where, torch.tensor(decay, dtype=torch.float64).to(self.device))

    @torch.no_grad()
    def follow(self, other: StackedAdam, slots: Sequence[int]) -> None:
        """Take over moments, steps, rates and decays of some slots of another."""
        where = torch.as_tensor(list(slots), device=self.device)
        for mine, theirs in ((self.means, other.means), (self.squares, other.squares), (self.decays, other.decays)):
            for name, held in mine.items():
                held.copy_(theirs[name].index_select(0, where))
        self.steps.copy_(other.steps.index_select(0, where))
        self.rates.copy_(other.rates.index_select(0, where))

    @torch.no_grad()
    def step(self, grads: Mapping[str, Tensor]) -> None:
        """Move the parameters that have a gradient."""
        self.steps.add_(1)
        if fused(*grads.values()):
            self._step_at_once(grads)
        elif self.device.type == "cpu":
            self._step_each(grads)
        else:
            self._step_together(grads)

    def _step_at_once(self, grads: Mapping[str, Tensor]) -> None:
        """One kernel for each parameter."""
        from unspool.ops.kernels import adam_cuda

        for name, grad in grads.items():
            adam_cuda.step(
                self.parameters[name], self.means[name], self.squares[name], grad, self.steps, self.rates, self.decays[name],
                self.betas, self.eps,
            )  # fmt: skip

    def _step_each(self, grads: Mapping[str, Tensor]) -> None:
        """The fused kernel, trial by trial; parameters of the same decay share a call."""
        rates, steps = self.rates.tolist(), self.steps.unbind()
        decays = {name: self.decays[name].tolist() for name in grads}
        tensors = {
            name: [self.parameters[name], grad, self.means[name], self.squares[name]] for name, grad in grads.items()
        }
        for t in range(self.trials):
            groups: dict[float, list[str]] = {}
            for name in grads:
                groups.setdefault(decays[name][t], []).append(name)
            for decay, names in groups.items():
                lists = [[tensors[n][i][t] for n in names] for i in range(4)]
                _fused(
                    *lists, [], [steps[t]] * len(names), lr=rates[t], beta1=self.betas[0], beta2=self.betas[1],
                    weight_decay=decay, eps=self.eps, amsgrad=False, maximize=False, grad_scale=None, found_inf=None,
                )  # fmt: skip

    def _step_together(self, grads: Mapping[str, Tensor]) -> None:
        """The formula over all trials; nothing here looks at a number, so it can be captured."""
        first, second = self.betas
        count = self.steps.double()
        size = self.rates / (1 - first**count)
        spread = (1 - second**count).sqrt()
        for name, grad in grads.items():
            parameter, mean, square = self.parameters[name], self.means[name], self.squares[name]
            shape = (self.trials,) + (1,) * (parameter.ndim - 1)
            decay, step, root = (v.to(parameter.dtype).view(shape) for v in (self.decays[name], size, spread))
            slope = torch.addcmul(grad, parameter, decay)
            mean.lerp_(slope, 1 - first)
            square.mul_(second).addcmul_(slope, slope, value=1 - second)
            parameter.sub_(torch.sqrt(square).div_(root).add_(self.eps).reciprocal_().mul_(mean).mul_(step))
