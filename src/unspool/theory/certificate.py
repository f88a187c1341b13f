"""What a certificate is: a claim of the paper, put to the test in float64 at random sizes and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import torch

#: Rounding in float64 stays far below this, a wrong formula far above.
TOLERANCE = 1e-9


class Verdict(Enum):
    """What a test of a claim can find."""

    HOLDS = "holds"
    HOLDS_WHEN = "holds when"
    FAILS = "counter-example"


@dataclass(frozen=True)
class Certificate:
    """The outcome of one claim.

    Attributes:
        name: where the claim stands in the paper.
        statement: the claim in one line.
        verdict: what was found.
        error: the largest deviation where the claim should hold.
        condition: under which condition it holds, if there is one.
        gap: the deviation of the counter-example, or of the claim without its condition.
        example: the counter-example in words.
        expected: what docs/errata.md and docs/equations.md say should be found.
        model: the model whose row of Table 1 it is about, where it is about one.
        erratum: the number in docs/errata.md that it shows, where it shows one.
    """

    name: str
    statement: str
    verdict: Verdict
    error: float | None = None
    condition: str = ""
    gap: float | None = None
    example: str = ""
    expected: Verdict = Verdict.HOLDS
    model: str = ""
    erratum: int | None = None

    @property
    def as_stated(self) -> bool:
        """Whether the verdict is the documented one."""
        return self.verdict is self.expected

    def __str__(self) -> str:
        words = self.verdict.value + (f" {self.condition}" if self.verdict is Verdict.HOLDS_WHEN else "")
        numbers = [f"error {self.error:.1e}"] if self.error is not None else []
        numbers += [f"gap {self.gap:.2g}"] if self.gap is not None else []
        tail = f" ({', '.join(numbers)})" if numbers else ""
        return f"{self.name}: {self.statement}: {words}{tail}"


@dataclass(frozen=True)
class Evidence:
    """What a claim's test measures: errors where it should hold, and a gap where it should not."""

    error: float | None = None
    gap: float | None = None
    condition: str = ""
    example: str = ""

    def verdict(self) -> Verdict:
        """Judge the numbers: an error above the tolerance or a gap without a condition is a counter-example."""
        if self.error is not None and not self.error < TOLERANCE:
            return Verdict.FAILS
        if self.gap is None:
            return Verdict.HOLDS
        if self.error is None or not self.condition:
            return Verdict.FAILS if self.gap > 1e3 * TOLERANCE else Verdict.HOLDS
        return Verdict.HOLDS_WHEN if self.gap > 1e3 * TOLERANCE else Verdict.HOLDS


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper (or an erratum to it) with the code that tests it."""

    name: str
    statement: str
    expected: Verdict
    test: Callable[[torch.Generator], Evidence]
    model: str = ""
    erratum: int | None = None

    def certify(self, seed: int = 0, trials: int = 3) -> Certificate:
        """Test the claim at several random settings and keep the worst error and the largest gap."""
        found = [self.test(torch.Generator().manual_seed(1000 * seed + trial)) for trial in range(trials)]
        errors = [e.error for e in found if e.error is not None]
        gaps = [e.gap for e in found if e.gap is not None]
        worst = replace(found[0], error=_worst(errors), gap=_worst(gaps))
        return Certificate(
            self.name,
            self.statement,
            worst.verdict(),
            worst.error,
            worst.condition,
            worst.gap,
            worst.example,
            self.expected,
            self.model,
            self.erratum,
        )


def _worst(numbers: list[float]) -> float | None:
    if not numbers:
        return None
    return max(numbers, key=lambda n: math.inf if math.isnan(n) else n)  # nan is the worst
