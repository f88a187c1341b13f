"""A rule for weights that needs no formula: hide some nodes, see how well each candidate fills them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.denoise.fit import Fitter
from unspool.denoise.missing import folds, observed
from unspool.denoise.problem import DenoisingProblem
from unspool.denoise.weight import Choice, read_candidates
from unspool.errors import IncompatibleError, InputError, mention
from unspool.graph import Graph

#: Candidates are compared by results of this tolerance.
_ROUGHLY = 3e-3
#: After this many candidates, so many in a row that are worse than the best by more than so much end the search.
_LEAST, _PATIENCE, _CLEARLY = 12, 3, 1.05
#: Told how many of how many candidates are done.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class HeldOut:
    """Choose the weight that best predicts values it has not seen.

    The nodes with values are dealt into folds at random. Each fold is hidden once, the problem is solved for every candidate, and the
    errors at the hidden values are added up: squares, or lengths of rows where the fidelity counts those. The weight of least
    error is then used with all values. Needs no noise level and works for every problem and for signals with missing values; it is noisier
    than :class:`SURE` and takes folds × candidates solves. Candidates are tried from the largest weight down, twelve at least, until three
    in a row are worse than the best by more than 5 %.

    Args:
        candidates: weights in (0, 1) to choose from; 17 over four powers of ten, placed by the signal and its graph, when omitted.
        folds: how many parts are hidden in turn, at least 2.
        seed: of the random parts.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.denoise import denoise
        >>> graph, place = us.graph.sensor(200, normalise=us.Normalisation.NONE, loops=0)
        >>> x = (place[:, :1] > 0.5) + 0.3 * torch.randn(200, 1, generator=torch.Generator().manual_seed(0))
        >>> found = denoise(x, graph, HeldOut(folds=3), problem="tv")
        >>> len(found.choice.curve) <= 17, found.choice.weight == found.choice.curve[found.choice.curve[:, 1].argmin(), 0]
        (True, np.True_)
    """

    candidates: Sequence[float] | None = None
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        folds: Any = self.folds
        if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
            raise InputError("folds", self.folds, "a whole number of at least 2")

    def choose(self, x: Tensor, graph: Graph, problem: DenoisingProblem, progress: Progress | None = None) -> Choice:
        """Score the candidates on a signal of shape (nodes, features), whose missing entries are NaN."""
        exact, x = graph.to(device="cpu", dtype=torch.float64), x.detach().cpu().double()
        seen = observed(x)
        there = torch.ones_like(x, dtype=torch.bool) if seen is None else seen
        filled = torch.where(there, x, torch.nanmean(x, 0))
        parts = folds(there, exact, self.folds, np.random.default_rng(self.seed))
        if not parts:
            raise IncompatibleError(
                f"no value can be hidden, as every component of the graph needs the one it has; give the weight with {mention('weight')}"
            )
        if self.candidates is None:
            weights = problem.candidates(filled, exact)
        else:
            weights = read_candidates(self.candidates).sort(descending=True).values
        tests = [away[:, None] & there for away in parts]
        fitters = [_fitter(problem, x, exact, there & ~away[:, None]) for away in parts]
        counted, score, best = sum(int(tested.sum()) for tested in tests), list[float](), 0
        for weight in weights.tolist():
            total = 0.0
            for turn, (tested, fitter) in enumerate(zip(tests, fitters, strict=True)):
                total += float(problem.error(torch.where(tested, fitter.fit(weight).h - x, 0.0)))
                if progress is not None:
                    progress(len(score) * len(parts) + turn + 1, len(weights) * len(parts))
            score.append(total / counted)
            best = len(score) - 1 if score[-1] < score[best] else best
            last = score[best + 1 :][-_PATIENCE:]
            if (
                len(score) >= _LEAST and len(last) == _PATIENCE and min(last) > _CLEARLY * score[best]
            ):  # the smoothest results take the longest
                break
        tried = weights[: len(score)]
        return Choice(float(tried[best]), torch.stack([tried, torch.tensor(score, dtype=torch.float64)], dim=1).numpy())


def _fitter(problem: DenoisingProblem, x: Tensor, graph: Graph, seen: Tensor) -> Fitter:
    # Trap: where a minimiser is not unique, it depends on where the solver starts, and hidden values must not be there.
    known = torch.where(seen, x, torch.nan)
    return Fitter(problem, torch.where(seen, x, torch.nanmean(known, 0)), graph, seen, _ROUGHLY)
