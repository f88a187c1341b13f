"""The whole problem of a training job as maths: what training makes small, and below it what the network's steps make small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.datasets import Dataset
from unspool.notebook import mathml, paragraphs
from unspool.train.config import LowerLevel
from unspool.train.loader import TrialLoader
from unspool.train.trial import Trial
from unspool.train.upper.labels import Labels
from unspool.train.upper.seen import has_classes, plain_loss
from unspool.train.upper.sum import Part, Upper


@dataclass(frozen=True)
class BilevelProblem:
    r"""The bilevel problem (3) of a training job, as it prints.

    .. math:: \min_W\; U\bigl(Y, p_{pos}(\bar X)\bigr) \quad\text{with}\quad \bar X \approx \arg\min_H L(H;\, p_{pre}(\tilde X))

    Attributes:
        upper: the sum that training makes small.
        says: how a network's answer is read from its output.
        objective: the denoising problem whose steps are unrolled; empty where a network names none.
        derivation: how.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> trial = train.Trial(us.models.APPNP, {"depth": 3}, train.TrainConfig(upper="ce + 2*consistency(views=4) under drop_nodes(0.5)"))
        >>> print(problem_of(trial, datasets.contextual_sbm(nodes=60, classes=2, seed=0)))
        min over W   CE(Y, pʳ)  +  2 ‖pʳ − p̄‖²   (mean over nodes and 4 views r, each under DropNodes(0.5))
          with       pʳ = softmax(p_pos(Hʳ)),  X = p_pre(X̃ʳ)
          and        Hʳ ≈ argmin over H of  0.1 ‖H − X‖²  +  0.9 ‖B H‖²
                     K gradient steps of size 1/2 from H = X (Proposition 4)
    """

    upper: Upper
    says: str
    objective: str
    derivation: str

    def lines(self) -> tuple[str, ...]:
        """Line by line."""
        head = f"min over W   {self.upper.formula}   ({self.upper.note})"
        first = f"  with       pʳ = {self.says},  X = p_pre(X̃ʳ)"
        if not self.objective:
            return head, first
        found = [head, first, f"  and        Hʳ ≈ argmin over H of  {self.objective}"]
        return (*found, f"             {self.derivation}") if self.derivation else tuple(found)

    def html(self) -> str:
        """As MathML, for a notebook."""
        lower = mathml(self.objective) + paragraphs([self.derivation]) if self.objective else ""
        return self.upper.html() + paragraphs(["with the steps of"]) + lower

    _repr_html_ = html

    def __str__(self) -> str:
        return "\n".join(self.lines())


def problem_of(trial: Trial, data: Dataset | str | TrialLoader) -> BilevelProblem:
    """The problem of a trial on data.

    Args:
        trial: model, settings and configuration.
        data: a dataset or its name, or a loader.
    """
    loader = data if isinstance(data, TrialLoader) else TrialLoader(data)
    loss = plain_loss(loader.first.loss)
    given = trial.config.upper
    upper = Upper((Part(Labels(loss)),)) if given is None else given
    upper.check(loader.first)
    made: Any = trial.build(int(loader.data.features.shape[1]), loader.outputs)
    objective, derivation = getattr(made, "objective", None), str(getattr(made, "derivation", ""))
    if trial.config.lower_level is LowerLevel.EXACT:
        derivation = "solved exactly, and trained through its optimality condition"
    says = "p_pos(Hʳ)"
    if has_classes(loss):
        says = f"{'softmax' if loader.outputs > 1 else 'σ'}({says})"
    return BilevelProblem(upper, says, "" if objective is None else str(objective), derivation)
