"""A small study, and how its tests look at it."""

import json

from cli.people import ask
from unspool import study

#: 2 models × 2 rates of dropout × 3 seeds on a generated graph.
SMALL = ["--dataset", "contextual_sbm", "--seeds", "3", "--epochs", "15", "--hidden", "8", "--dropout", "0.2,0.5"]


def run(out, *more, models=("GCN", "MLP"), code=0):
    """``unspool study run``, in one process."""
    return ask("study", "run", *models, *SMALL, "--jobs", "1", "--out", out, *more, code=code)


def lines(*arguments):
    """What a command of ``unspool study`` says as JSON."""
    return [json.loads(line) for line in ask("study", *arguments, "--json").splitlines()]


def rows(file):
    """All trials of a file."""
    with study.Store.open(file, study.Access.READ) as store:
        return store.rows()
