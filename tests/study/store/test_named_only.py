"""Trials that files know by name only, with a term or a teacher from memory: shown and ranked as all others, refused where they must be built again."""

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.errors import IncompatibleError
from unspool.study import Study
from unspool.train import CrossEntropy
from unspool.train.upper import Distil, OwnTerm


def calm(outputs, labels, graph):
    return outputs.square().mean()


def test_a_file_with_a_term_or_a_teacher_from_memory_is_read(tmp_path):
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    teachers = [torch.full((60, 3), 0.3), us.models.GCN(data.features.shape[1], 3)]
    uppers = ["ce", CrossEntropy() + OwnTerm(calm), *(CrossEntropy() + Distil(teacher) for teacher in teachers)]
    trials = [train.Trial(us.models.SGC, {}, train.TrainConfig(epochs=2, upper=upper)) for upper in uppers]
    for wanted in (trials[:1], trials):  # an older study goes on
        made = us.study.run(wanted, data, store=tmp_path / "s.db")
    assert len(made.rows) == 4
    made.model(made.rows[1])  # the program that made it still can

    opened = Study.open(tmp_path / "s.db")
    texts = ["ce", "ce + own(calm)", "ce + distil(teacher=tensor)", "ce + distil(teacher=gcn)"]
    assert [row.trial["config"]["upper"] for row in opened.rows] == texts
    assert opened.best().n == 1
    assert opened.model(1, data=data) is not None
    for number in (2, 3, 4):
        with pytest.raises(IncompatibleError, match="cannot be built again from a file"):
            opened.model(number, data=data)
