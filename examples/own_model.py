"""
A model of your own
===================

Its settings, an encoder, a denoising problem with a learnt balance, a decoder; then studied, and trained by name on the command line.
"""

import os
import subprocess
import sys
from pathlib import Path

import unspool as us
from unspool import datasets, study


class Calm(us.models.Model):
    hidden: int = us.setting(16, "width of the encoder", at_least=1)
    depth: int = us.setting(6, "number of steps", at_least=1, search=study.integers(2, 12))
    sparsity: float = us.setting(0.02, "weight of the ℓ₁ norm", at_least=0, search=study.uniform(0, 0.1))

    def build(self):
        alpha = us.Learnable(0.3, within=(0, 1), name="α")
        objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha) + us.Sparse(self.sparsity)
        self.p_pre = us.nn.Perceptron([self.in_features, self.hidden], dropout=0.3, open_end=False)
        self.propagation = us.unroll(objective, us.Accelerated(), self.depth)
        self.p_pos = us.nn.Linear(self.hidden, self.out_features)


if __name__ == "__main__":
    print(Calm(8, 2).objective)
    us.testing.check_model(lambda: Calm(4, 3), features=4)
    data = datasets.contextual_sbm(nodes=200, classes=2, signal=0.7, seed=0)
    found = study.run(study.grid(us.models.MLP, Calm, seed=range(3), sparsity=[0, 0.02], epochs=60), data, device="cpu")
    best = found.table.best_each("model")  # settings of your own model are checked, searched and stored like any other
    print(*best, sep="\n")
    Path("out").mkdir(exist_ok=True)
    us.study.plot_leaders(found.table, path="out/own_model.png")

    # unspool train own_model:Calm --setting depth=4 --epochs 40, in the folder of this file or with that on PYTHONPATH:
    words = "train own_model:Calm --setting depth=4 --epochs 40 --no-report --out out/calm"
    here = Path(globals().get("__file__", "own_model.py")).resolve().parent  # the gallery tells scripts no __file__
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(here))))
    command = [sys.executable, "-m", "unspool", *words.split()]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True, check=True
    )
    print(done.stdout)
