"""What single changes to a known setting of the lead are worth on labelled nodes: no test node is looked at.

    python benchmarks/changes.py --data DIR [--sets photo,physics,cs,cora,citeseer,pubmed] [--seeds 16] [--epochs 500] [--device cuda]

The first known setting of each set (lead.toml) trains under seeds of the search, on labelled nodes that are divided anew under each, and so does every
setting that differs from it in one thing. Scores are those of labelled nodes that neither training nor the choice of the epoch has seen; differences are
paired by seed, with their standard error.
"""

import argparse
import os
from dataclasses import replace

import numpy as np

from unspool import datasets, study
from unspool.device import device_for
from unspool.reproduce.lead.labelled import LabelledLoader, balanced
from unspool.reproduce.lead.mass import class_masses
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.space import Space, trial_of
from unspool.train.upper import Entropy, Neighbours, PseudoLabels, WarmUp

#: Patience of the known settings; seeds that the masses of classes are estimated with.
PATIENCE, MASS_SEEDS = 100, 4


def changes(known, epochs):
    """Words that change, and terms that are added, by name."""
    sharp, slowly = known["temperature"], WarmUp(100)
    other = {"ce": "class_mass", "class_mass": "ce"}[known["labels"]]
    monitor = {"valid_score": "valid_loss", "valid_loss": "valid_score"}[known["monitor"]]
    return {
        "as it is known": ({}, None),
        "epochs by the other of score and loss": ({"monitor": monitor}, None),
        "the last of half the epochs": ({"monitor": "last_epoch", "epochs": epochs // 2}, None),
        "the last of a quarter": ({"monitor": "last_epoch", "epochs": epochs // 4}, None),
        "longer, more patience": ({"epochs": epochs * 8 // 5, "patience": 250}, None),
        f"labels by {other}": ({"labels": other}, None),
        "+ 0.5 neighbours": ({}, 0.5 * Neighbours(sharp)),
        "+ 2 neighbours, growing": ({}, 2.0 * slowly * Neighbours(sharp)),
        "+ 2 neighbours, T = 1, growing": ({}, 2.0 * slowly * Neighbours(1.0)),
        "+ 0.5 pseudo-labels, growing": ({}, 0.5 * slowly * PseudoLabels(0.9)),
        "+ 0.3 entropy, growing": ({}, 0.3 * slowly * Entropy()),
    }


def one_set(name, asked):
    """Print a line for every change."""
    plan, device = Plan.read(), device_for(asked.device)
    known, first = plan.how["known"][name][0], plan.how["search_seed"]
    data = datasets.load(name, asked.data)
    loader = LabelledLoader(data, device)
    if data.split is None or balanced(data.split, loader.first.target.cpu()):
        plain = Space.of("GRAND", name, plan).rounds()[0][0]
        loader = LabelledLoader(data, device, class_masses(loader, plain, range(first, first + MASS_SEEDS)))
    base = None
    for title, (words, term) in changes(known, asked.epochs).items():
        more = {"epochs": asked.epochs, "patience": PATIENCE, **words}
        epochs, patience = more.pop("epochs"), more.pop("patience")
        one = trial_of({**known, **more}, epochs, patience, first)
        if term is not None:
            one = replace(one, config=one.config.replace(upper=one.config.upper + term))
        trials = [one.with_seed(first + k) for k in range(asked.seeds)]
        found = {row.key: row.result for row in study.run(trials, loader).rows}
        scores = np.array([100 * found[trial.key(loader.fingerprint)].test_score for trial in trials])
        base = scores if base is None else base
        gaps, root = scores - base, asked.seeds**0.5
        print(
            f"{name:9} {title:38} {scores.mean():6.2f} ± {scores.std(ddof=1) / root:.2f}  "
            f"{gaps.mean():+6.2f} ± {gaps.std(ddof=1) / root:.2f}",
            flush=True,
        )


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--data", default=os.environ.get("UNSPOOL_DATA"))
    words.add_argument("--sets", default="photo,physics,cs,cora,citeseer,pubmed")
    words.add_argument("--seeds", type=int, default=16)
    words.add_argument("--epochs", type=int, default=500)
    words.add_argument("--device")
    asked = words.parse_args()
    for name in asked.sets.split(","):
        one_set(name, asked)


if __name__ == "__main__":
    main()
