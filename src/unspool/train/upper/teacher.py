"""Learning what another network says."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unspool.errors import InputError
from unspool.models.pretrained import CARD, find_folder, load_pretrained
from unspool.settings.kinds import Kind, Real
from unspool.train.upper.seen import At, Seen, log_probabilities, sharpen
from unspool.train.upper.term import Term, shown


@dataclass(frozen=True, eq=False)
class Distil(Term):
    r"""Say what a teacher says: :math:`-\frac1R\sum_r\operatorname{mean}_i\sum_c \mathrm{sharpen}_T(q_i)_c \log p^r_{ic}` over all nodes.

    Args:
        teacher: the folder of a trained model (:func:`unspool.models.save_pretrained`), a model, or its probabilities, shape (nodes, classes).
        temperature: T; above 1 the teacher is softened.

    Example:
        >>> import torch
        >>> print(Distil(torch.full((4, 2), 0.5)))
        CE(teacher, pʳ)
    """

    name: ClassVar[str] = "distil"
    numbers: ClassVar[dict[str, Kind]] = {"temperature": Real(0, None, True)}

    teacher: Any
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.teacher, str | Path | nn.Module | Tensor):
            raise InputError(
                "teacher",
                self.teacher,
                "the folder of a trained model, a model, or probabilities of shape (nodes, classes)",
            )

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean cross-entropy against the teacher."""
        if self.teacher.shape != seen.log_p.shape[1:]:
            expected = f"probabilities of shape {tuple(seen.log_p.shape[1:])}, which is that of what is learnt"
            raise InputError("teacher", tuple(self.teacher.shape), expected)
        wanted = sharpen(self.teacher.to(seen.log_p.dtype), at["temperature"])
        return -(wanted * seen.log_p).sum(-1).mean()

    def prepare(self, task: Any) -> Distil:
        """The same with the teacher's probabilities on the nodes of the task."""
        self.check(task)
        told = self.teacher if isinstance(self.teacher, Tensor) else self._told(task)
        nodes = int(task.x.shape[-2])
        fine = torch.isfinite(told) & (told >= 0)
        if told.ndim < 2 or told.shape[0] != nodes or not bool(fine.all()):
            raise InputError(
                "teacher", tuple(told.shape), f"probabilities of {nodes} nodes, finite numbers of at least 0"
            )
        silent = torch.nonzero((told.sum(-1) == 0).reshape(nodes, -1).any(-1)).flatten()
        if silent.numel():
            raise InputError(
                "teacher", tuple(told.shape), f"probabilities, and those of node {int(silent[0])} are zeros"
            )
        return replace(self, teacher=told.to(task.target.device))

    @torch.no_grad()
    def _told(self, task: Any) -> Tensor:
        given: Any = self.teacher
        model = load_pretrained(given) if isinstance(given, str | Path) else given
        before = model.training
        try:
            found = log_probabilities(task.loss, model.to(task.target.device).eval()(task.x, task.graph))
        finally:
            model.train(before)
        assert found is not None
        return found.exp()

    @property
    def objects(self) -> tuple[Any, ...]:
        """The teacher; of a folder, what its card says, which has checksums of everything."""
        if isinstance(self.teacher, str | Path):
            card = find_folder(self.teacher) / CARD
            if not card.is_file():
                raise InputError(
                    "teacher", str(self.teacher), f"the folder of a trained model, and {CARD} is missing there"
                )
            return (hashlib.sha256(card.read_bytes()).hexdigest(),)
        return (self.teacher,)

    def text(self) -> str:
        """As it would be typed; a teacher in memory has no name."""
        named = f'"{self.teacher}"' if isinstance(self.teacher, str | Path) else type(self.teacher).__name__.lower()
        more = "" if self.temperature == 1 else f", temperature={shown(self.temperature)}"
        return f"distil(teacher={named}{more})"

    def formula(self) -> str:
        """CE(teacher, pʳ)."""
        return "CE(teacher, pʳ)" if self.temperature == 1 else f"CE(sharpen(teacher, {shown(self.temperature)}), pʳ)"
