"""How weights stand in printed formulas."""

from __future__ import annotations

from typing import Any

from unspool.objective.coefficient import as_coefficient


def leading(weight: Any) -> str:
    """A weight in front of a formula: nothing for 1, brackets around sums; for ``formula`` of a term of one's own.

    Example:
        >>> import unspool as us
        >>> alpha = us.Learnable(0.1, name="α")
        >>> [leading(w) + "‖H‖²" for w in (1.0, 0.3, alpha, 1 - alpha)]
        ['‖H‖²', '0.3 ‖H‖²', 'α ‖H‖²', '(1 − α) ‖H‖²']
    """
    weight = as_coefficient(weight)
    return "" if str(weight) == "1" else f"{weight.factor} "
