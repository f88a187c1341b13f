"""
Reading a trained network back
==============================

After training, free hop coefficients are read as the denoising problem that each layer solves.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import unspool as us

data = us.datasets.load("citeseer")
config = us.train.TrainConfig(lr=0.01, epochs=60)
trial = us.train.Trial(us.models.GPRGNN, {"hidden": 32, "depth": 6}, config, normalise_rows=True)
model, run = us.train.train_trial(trial, data)
print(run)
read = model.propagation.read_back()
print(read)  # α, β and the step of every layer; whether they are convex and stable

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.bar(range(7), model.propagation.hops().detach().flatten().numpy())
left.set(xlabel="hop k", ylabel="γₖ, as it was learnt")
layers = range(1, 7)
right.plot(layers, [layer.alpha for layer in read.layers], marker="o", label="α, weight of ‖H − X‖²")
right.plot(layers, [layer.beta for layer in read.layers], marker="o", label="β, weight of ‖BH‖²")
right.set(xlabel="layer", ylabel="weight in the problem of the layer")
right.legend(frameon=False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/read_back.png", dpi=110)
