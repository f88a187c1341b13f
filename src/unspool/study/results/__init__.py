"""What many trials say: tables, the best, comparisons, importance, pictures, files."""

from unspool.study.results.best import Best, Measure, Sample
from unspool.study.results.comparison import Comparison, Test, compare, compare_all
from unspool.study.results.exporting import export
from unspool.study.results.importances import Importance, Method, importance
from unspool.study.results.plot import plot_choices, plot_compare, plot_grid, plot_importance, plot_leaders
from unspool.study.results.trial_table import TrialTable

__all__ = [
    "Best",
    "Comparison",
    "Importance",
    "Measure",
    "Method",
    "Sample",
    "Test",
    "TrialTable",
    "compare",
    "compare_all",
    "export",
    "importance",
    "plot_choices",
    "plot_compare",
    "plot_grid",
    "plot_importance",
    "plot_leaders",
]  # fmt: skip
