"""How a solver went: reports for those who ask, warnings for those who do not."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from unspool.errors import IncompatibleError

#: How far a default tolerance may be missed without a warning where rounding is what stands in the way.
_PATIENCE = 100.0
#: A relative residual above this is no solution in any sense.
_HOPELESS = 0.1


class ConvergenceWarning(UserWarning):
    """A solver stopped above its tolerance, so what it returned is the minimiser only to the residual that it reports.

    Example:
        >>> import torch, unspool as us
        >>> import warnings
        >>> far = us.Fidelity(1e-6) + us.Smoothness(1.0)
        >>> with warnings.catch_warnings(record=True) as found:
        ...     warnings.simplefilter("always")
        ...     h = us.minimise(far, torch.eye(50), us.graph.path(50), tolerance=1e-9)
        >>> found[0].category.__name__
        'ConvergenceWarning'
    """


@dataclass(frozen=True)
class SolveReport:
    """How a solve went.

    Attributes:
        method: the solver.
        iterations: how many it took.
        residual: what is left, relative, of the worst column; computed anew from the result, not carried along.
        tolerance: what was asked for.
        attainable: about what rounding in this dtype leaves at best.
        exhausted: whether the limit on iterations ended it.
        converged: whether the tolerance was met.

    Example:
        >>> report = SolveReport("conjugate gradients", 34, 4e-7, 1e-6, 1e-7)
        >>> report.converged
        True
        >>> print(report)
        conjugate gradients: a relative residual of 4.0e-07 after 34 iterations (tolerance 1e-06)
    """

    method: str
    iterations: int
    residual: float
    tolerance: float
    attainable: float
    exhausted: bool = False

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.residual <= self.tolerance

    def __str__(self) -> str:
        steps = f"{self.iterations} iteration{'' if self.iterations == 1 else 's'}"
        met = "" if self.converged else ", not met"
        return f"{self.method}: a relative residual of {self.residual:.1e} after {steps} (tolerance {self.tolerance:g}{met})"


class SolveReports(list[SolveReport]):
    """The reports of a ``with solve_reports()`` block, in the order in which the solves ended."""

    open: bool = True

    @property
    def converged(self) -> bool:
        """Whether every solve met its tolerance."""
        return all(report.converged for report in self)


_LISTENER: ContextVar[SolveReports | None] = ContextVar("listener", default=None)


@contextmanager
def solve_reports() -> Generator[SolveReports, None, None]:
    """Collect the reports of all solves in a block: ``minimise``, exact networks and their gradients, denoisers.

    Solves that are reported here are not warned about.

    Example:
        >>> import torch, unspool as us
        >>> net = us.unroll(us.Fidelity(us.Learnable(0.1)) + us.Smoothness(0.9), us.Exact())
        >>> with us.solve_reports() as reports:
        ...     net(torch.eye(5), us.graph.ring(5)).sum().backward()
        >>> len(reports), reports.converged
        (2, True)
    """
    reports = SolveReports()
    token = _LISTENER.set(reports)
    try:
        yield reports
    finally:
        reports.open = False
        _LISTENER.reset(token)


def listening() -> SolveReports | None:
    """Whoever collects reports now."""
    return _LISTENER.get()


def hand_in(report: SolveReport, asked: bool, dtype: torch.dtype, to: SolveReports | None = None) -> None:
    """Give a report to whoever listens, or warn if the tolerance was missed; refuse what is no solution at all.

    Args:
        report: how the solve went.
        asked: whether the tolerance was asked for; a default one may be missed by what rounding leaves, within reason.
        dtype: of the solve.
        to: who listened when the solve was prepared (a backward pass may run in another thread).
    """
    rounding = report.residual <= max(report.attainable, report.tolerance)
    name = str(dtype).removeprefix("torch.")
    why = f"rounding in {name} allows about {report.attainable:.0e}" if rounding else "the residual no longer fell"
    way = "compute in float64" if dtype != torch.float64 else "give Fidelity more weight"
    if report.exhausted and not rounding:
        why, way = "the limit on iterations was reached", "allow a larger limit, give Fidelity more weight"
    if not report.residual <= _HOPELESS:
        raise IncompatibleError(f"no minimiser was found ({report}): {why}; {way}")
    listener = _LISTENER.get()
    if listener is None and to is not None and to.open:
        listener = to
    if listener is not None:
        listener.append(report)
        return
    if report.converged or (not asked and rounding and report.residual <= _PATIENCE * report.tolerance):
        return
    warnings.warn(
        f"{report}: {why}, so the result is the minimiser only to this residual; {way}, or ask for a larger tolerance",
        ConvergenceWarning,
        stacklevel=3,
    )
