"""A model: an encoder, heavy-ball steps on a robust problem, a decoder."""

import torch

import unspool as us
from unspool_plugin.algorithm import HeavyBall
from unspool_plugin.term import HuberSmoothness


class HuberNet(us.models.Model):
    """Heavy-ball steps on α‖H − X‖² + w Σₑ φ((B H)ₑ) behind a perceptron."""

    derivation = "K heavy-ball steps from H = X"

    hidden: int = us.setting(16, "width of the encoder", at_least=1, search=us.study.choice([8, 16, 32]))
    depth: int = us.setting(6, "K, the number of steps", at_least=1, at_most=1000, search=us.study.integers(2, 12))
    pull: float = us.setting(0.3, "α, how strongly a node keeps its own signal", above=0, at_most=1)
    bend: float = us.setting(0.1, "where φ turns into a straight line", above=0, search=us.study.log_uniform(0.01, 1))
    momentum: float = us.setting(0.3, "μ of the steps", at_least=0, below=1)
    dropout: float = us.setting(0.2, "rate on the inputs of the layers", at_least=0, below=1)

    def build(self):
        objective = us.Fidelity(self.pull) + HuberSmoothness(1.0, self.bend)
        self.p_pre = us.nn.Perceptron([self.in_features, self.hidden], self.dropout, open_end=False)
        self.propagation = us.unroll(objective, HeavyBall(0.3, self.momentum), self.depth)
        self.p_pos = torch.nn.Sequential(us.nn.Dropout(self.dropout), us.nn.Linear(self.hidden, self.out_features))
