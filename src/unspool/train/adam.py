"""Adam as one call per parameter group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

#: The kernel behind ``torch.optim.Adam(fused=True)``, on CPU and CUDA.
_fused: Any = torch.ops.aten._fused_adam_


class Adam:
    """Adam with torch's fused kernel: the same numbers as ``torch.optim.Adam(fused=True)``, bit for bit.

    It has the interface that training needs of an optimiser and none of the rest. ``torch.optim`` loads torch's compiler when
    its first optimiser is made, which takes as long as some hundred epochs on a small graph; this does not. Steps are counted
    on the device, so an epoch can be captured as a CUDA graph.

    Args:
        groups: dictionaries with ``params`` and perhaps ``weight_decay`` (added to the gradient, as in Adam's paper's L2 form).
        lr: the learning rate.
        betas, eps: as everywhere.

    Example:
        >>> import torch
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> adam = Adam([{"params": [weight], "weight_decay": 0.0}], lr=0.1)
        >>> weight.square().sum().backward()
        >>> adam.step()
        >>> weight.detach()
        tensor([0.9000, 0.9000])
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        self.defaults: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0, "capturable": True}
        self.param_groups: list[dict[str, Any]] = [
            {**self.defaults, **group, "params": list(group["params"])} for group in groups
        ]
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            moving = [p for p in group["params"] if p.grad is not None]
            if not moving:
                continue
            states = [self._state_of(p) for p in moving]
            steps = [s["step"] for s in states]
            for step in steps:
                step.add_(1)
            _fused(
                moving, [p.grad for p in moving], [s["mean"] for s in states], [s["square"] for s in states], [], steps,
                lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1], weight_decay=group["weight_decay"],
                eps=group["eps"], amsgrad=False, maximize=False, grad_scale=None, found_inf=None,
            )  # fmt: skip

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Moments and steps by the place of their parameter."""
        places = {p: i for i, p in enumerate(q for group in self.param_groups for q in group["params"])}
        return {"state": {places[p]: dict(held) for p, held in self.state.items()}}

    def load_state_dict(self, held: dict[str, Any]) -> None:
        """Back from :meth:`state_dict`; shapes must fit."""
        everyone = [p for group in self.param_groups for p in group["params"]]
        for place, moments in held["state"].items():
            parameter = everyone[place]
            if moments["mean"].shape != parameter.shape:
                raise ValueError(
                    f"moments of shape {tuple(moments['mean'].shape)} for a parameter of {tuple(parameter.shape)}"
                )
            self.state[parameter] = {name: value.to(parameter.device).clone() for name, value in moments.items()}

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        if parameter not in self.state:
            zeros = {name: torch.zeros_like(parameter) for name in ("mean", "square")}
            self.state[parameter] = {"step": torch.zeros((), device=parameter.device), **zeros}
        return self.state[parameter]
