"""Scores beside the score: what a number such as "accuracy 80" hides, as values with fields.

>>> import numpy as np
>>> from unspool import evaluate
>>> sure = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.6, 0.4]])
>>> found = evaluate.score_classes(sure, np.array([0, 0, 0, 0, 1]))
>>> found.accuracy, found.majority, found.balanced_accuracy, found.auc
(0.8, 0.8, 0.5, 0.875)
"""

from unspool.evaluate.calibration import Calibration, Uncalibrated, calibrated, fit_temperature
from unspool.evaluate.classes import ClassScores, score_classes
from unspool.evaluate.numbers import NumberScores, score_numbers
from unspool.evaluate.plain import from_plain
from unspool.evaluate.probabilities import Bin, ProbabilityScores, score_probabilities

__all__ = [
    "Bin", "Calibration", "ClassScores", "NumberScores", "ProbabilityScores", "Uncalibrated", "calibrated", "fit_temperature", "from_plain",
    "score_classes", "score_numbers", "score_probabilities",
]  # fmt: skip
