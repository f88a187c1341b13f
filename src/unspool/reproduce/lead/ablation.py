"""A choice without one of its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unspool.models import Steps
from unspool.reproduce.lead.finals import WHOLE
from unspool.train import Trial
from unspool.train.upper import ClassMass, Consistency, Labels, Upper
from unspool.train.upper.sum import Part


def variants(trial: Trial) -> dict[str, Trial]:
    """The trial as it is, and without each of the parts that it has.

    Example:
        >>> import unspool as us
        >>> config = us.train.TrainConfig(upper="class_mass + 2*warm_up(100)*consistency(views=2, temperature=0.5) under drop_nodes(0.5)")
        >>> list(variants(Trial(us.models.StableGNN, {"steps": Steps.PPR}, config)))
        ['as chosen', 'without consistency', 'without lost nodes', 'without both', 'without class masses', 'with uniform steps']
    """
    upper = trial.config.upper
    assert upper is not None
    found = {
        WHOLE: trial,
        "without consistency": _with(trial, _without(upper, Consistency)),
        "without lost nodes": _with(trial, replace(upper, perturbations=())),
        "without both": _with(trial, replace(_without(upper, Consistency), perturbations=())),
    }
    if any(isinstance(part.term, ClassMass) for part in upper.parts):
        found["without class masses"] = _with(trial, _mapped(upper, _plain))
    if trial.settings["steps"] is not Steps.UNIFORM:
        found["with uniform steps"] = replace(trial, settings={**trial.settings, "steps": Steps.UNIFORM})
    if trial.settings.get("batch_norm"):
        found["without normalisation"] = replace(trial, settings={**trial.settings, "batch_norm": False})
    return found


def _with(trial: Trial, upper: Upper) -> Trial:
    return replace(trial, config=trial.config.replace(upper=upper))


def _without(upper: Upper, kind: type) -> Upper:
    return replace(upper, parts=tuple(part for part in upper.parts if not isinstance(part.term, kind)))


def _mapped(upper: Upper, change: Callable[[Part], Part]) -> Upper:
    return replace(upper, parts=tuple(map(change, upper.parts)))


def _plain(part: Part) -> Part:
    from unspool.train import CrossEntropy

    return replace(part, term=Labels(CrossEntropy())) if isinstance(part.term, ClassMass) else part
