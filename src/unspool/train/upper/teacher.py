"""Learning what another network says."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unspool.datasets.as_trained import Named, normalisation_of
from unspool.errors import IncompatibleError, InputError
from unspool.models.pretrained import CARD, find_folder, load_pretrained
from unspool.settings.kinds import Kind, Real
from unspool.train.loss import Loss
from unspool.train.task_kind import TaskKind
from unspool.train.upper.seen import At, Seen, has_classes, log_probabilities, sharpen
from unspool.train.upper.term import Term, shown


@dataclass(frozen=True, eq=False)
class Distil(Term):
    r"""Say what a teacher says: :math:`-\frac1R\sum_r\operatorname{mean}_i\sum_c \mathrm{sharpen}_T(q_i)_c \log p^r_{ic}` over all nodes.

    Args:
        teacher: the folder of a trained model (:func:`unspool.models.save_pretrained`), a model, or its probabilities, shape (nodes, classes).
            A model with a card sees what it saw in training: rows scaled or not, and columns and classes found by their names; one
            without sees what the student sees.
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

        if isinstance(self.teacher, str | Path) and {"'", '"'} <= set(str(self.teacher)):
            raise InputError(
                "teacher",
                str(self.teacher),
                "a folder whose name does not have both kinds of quotes, as one of them stands around it where it is typed",
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

    def _told(self, task: Any) -> Tensor:
        given: Any = self.teacher
        model = load_pretrained(given) if isinstance(given, str | Path) else given
        who = str(given) if isinstance(given, str | Path) else f"the teacher {type(given).__name__}"
        card: Any = getattr(model, "card", None)
        return _Trained(model, card if isinstance(card, Mapping) else {}, who).told(task)

    @property
    def objects(self) -> tuple[Any, ...]:
        """The teacher; of a folder, what its card says, which has checksums of everything."""
        if isinstance(self.teacher, str | Path):
            card = find_folder(self.teacher) / CARD
            if not card.is_file():
                raise InputError(
                    "teacher", str(self.teacher), f"the folder of a trained model, and {CARD} is missing there"
                )
            # Before the card's transforms and names were heeded, the same folder taught something else.
            return (hashlib.sha256(b"as its card says;" + card.read_bytes()).hexdigest(),)
        return (self.teacher,)

    def text(self) -> str:
        """As it would be typed; a teacher in memory has no name."""
        named = (
            shown(str(self.teacher)) if isinstance(self.teacher, str | Path) else type(self.teacher).__name__.lower()
        )
        more = "" if self.temperature == 1 else f", temperature={shown(self.temperature)}"
        return f"distil(teacher={named}{more})"

    def formula(self) -> str:
        """CE(teacher, pʳ)."""
        return "CE(teacher, pʳ)" if self.temperature == 1 else f"CE(sharpen(teacher, {shown(self.temperature)}), pʳ)"


@dataclass(frozen=True, eq=False)
class _Trained:
    """A trained network with its card, and its name in a sentence."""

    model: Any
    card: Mapping[str, Any]
    who: str

    @torch.no_grad()
    def told(self, task: Any) -> Tensor:
        """Its probabilities on the nodes of a task, the classes in the order of the task."""
        facts: Mapping[str, Any] = self.card.get("data") or {}
        x = self._features(task, facts)
        try:
            inspect.signature(self.model.forward).bind(x, task.graph)
        except TypeError:
            raise IncompatibleError(
                f"{self.who} is not called as model(x, graph), so it cannot be asked; give its probabilities, a tensor of shape (nodes, classes)"
            ) from None
        before = self.model.training
        try:
            said = self.model.to(task.target.device).eval()(x, task.graph)
        finally:
            self.model.train(before)
        found = log_probabilities(self._loss(task), said)
        assert found is not None
        places = None if task.named is None else task.named.class_places(facts, self.who)
        return found.exp() if places is None else found.exp()[:, torch.as_tensor(places, device=found.device)]

    def _loss(self, task: Any) -> Loss:
        """That of its training, which says what its output means; that of the task where its card does not know."""
        kind = (self.card.get("task") or {}).get("kind")
        if kind is None:
            return task.loss
        if kind == TaskKind.LINKS.value or not has_classes(loss := TaskKind(kind).loss()):
            raise IncompatibleError(
                f"{self.who} learnt {kind}, and a teacher says probabilities of classes; take one of the same classes"
            )
        return loss

    def _features(self, task: Any, facts: Mapping[str, Any]) -> Any:
        """Those of the task, as the network saw them in training; as they are now where its card does not say how that was."""
        trained = normalisation_of(facts)
        if task.graph is not None and trained not in (None, task.graph.normalisation.value):
            raise IncompatibleError(
                f"{self.who} was trained with A normalised as {trained}, and here it is {task.graph.normalisation.value}; take a teacher of "
                "the same normalisation"
            )
        raw = Named(task.x) if task.named is None else task.named
        raw = raw if "transforms" in facts else replace(raw, features=task.x)
        x = raw.as_trained(facts, self.who)
        width, wanted = int(x.shape[-1]), self.card.get("in_features")
        if wanted not in (None, width):
            raise IncompatibleError(
                f"{self.who} was trained on {wanted} features, and here are {width}; take a teacher of the same features"
            )
        return x.to(task.target.device)
