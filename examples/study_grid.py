"""
A study
=======

A grid of two models on CiteSeer, all trials at once: the best settings, whether the models differ, which setting matters.
"""

from pathlib import Path

import unspool as us

grid = us.study.grid(
    us.models.GPRGNN, us.models.GCN, seed=range(4), lr=[0.01, 0.05], dropout=[0.2, 0.7], hidden=16, depth=2, epochs=25
)
print(grid)

found = us.study.run(grid, "citeseer")  # store="grid.db" keeps the results, and goes on after an interrupt
print(found)

for best in found.table.best_each("model"):  # chosen by validation scores; test scores are only reported
    print(best)
print(found.compare("GPRGNN", "GCN"))  # the best of each, paired by seed
print(us.study.importance(found.table.filter(model="GPRGNN")))  # what the scores depend on

figure = us.study.plot_compare(found.compare("GPRGNN", "GCN"))
Path("out").mkdir(exist_ok=True)
figure.savefig("out/study_grid.png", dpi=110)
