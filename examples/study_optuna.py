"""
A study with Optuna
===================

Optuna chooses the settings of GPRGNN on CiteSeer; each batch of its trials is trained at once, under two seeds each.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import optuna

import unspool as us


def suggest(trial: optuna.Trial) -> us.study.Space:
    return us.study.grid(
        us.models.GPRGNN,
        lr=trial.suggest_float("lr", 1e-3, 1e-1, log=True),
        dropout=trial.suggest_float("dropout", 0.1, 0.8),
        teleport=trial.suggest_float("teleport", 0.05, 0.9),
        hidden=16, depth=4, epochs=25,
    )  # fmt: skip


search = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=8))
found = us.study.optimise(
    search, suggest, "citeseer", trials=16, batch=8, seeds=range(2)
)  # store="search.db" to go on later

best = search.best_trial
print(f"best of {len(search.trials)}: {', '.join(f'{name} {value:.3g}' for name, value in best.params.items())}")
print(f"validation {best.value:.3f}, test {best.user_attrs['test_score']:.3f} ± {best.user_attrs['test_std']:.3f}")
print(found)  # all its trials, as a study of ours

# The same by hand, for whoever has a loop of their own: ask, evaluate together, tell.
asked = [search.ask() for _ in range(4)]
outcomes = us.study.evaluate([suggest(t) for t in asked], "citeseer", seeds=range(2))
for trial, outcome in zip(asked, outcomes, strict=True):
    search.tell(trial, outcome.value())
print(f"{len(search.trials)} trials, best validation {search.best_value:.3f}")

figure, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
values = [trial.value for trial in search.trials]
axis.plot(values, "o", label="trial")
axis.plot([max(values[: k + 1]) for k in range(len(values))], label="best so far")
axis.set(xlabel="trial", ylabel="validation accuracy")
axis.legend(frameon=False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/study_optuna.png", dpi=110)
