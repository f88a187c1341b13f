"""Graph signal denoising by itself: no labels, no training, and a weight that the data choose.

>>> import torch, unspool as us
>>> from unspool.denoise import GCV, denoise
>>> graph, place = us.graph.sensor(300)
>>> noise = torch.randn(300, 1, generator=torch.Generator().manual_seed(0))
>>> clean = torch.sin(6 * place[:, :1])
>>> found = denoise(clean + 0.5 * noise, graph, GCV())
>>> bool((found.signal - clean).square().mean() < 0.3 * (0.5 * noise).square().mean())
True
"""

from unspool.denoise.constant import BentMeanWarning
from unspool.denoise.held_out import HeldOut
from unspool.denoise.noise import Covariance
from unspool.denoise.problem import PROBLEMS, DenoisingProblem, Robust, Slopes, Smooth, TotalVariation, Trend
from unspool.denoise.solve import Denoised, denoise
from unspool.denoise.weight import GCV, SURE, Choice, Criterion, noise_level

__all__ = [
    "GCV",
    "PROBLEMS",
    "SURE",
    "BentMeanWarning",
    "Choice",
    "Covariance",
    "Criterion",
    "Denoised",
    "DenoisingProblem",
    "HeldOut",
    "Robust",
    "Slopes",
    "Smooth",
    "TotalVariation",
    "Trend",
    "denoise",
    "noise_level",
]
