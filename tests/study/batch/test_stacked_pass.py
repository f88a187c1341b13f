"""What a pass leaves behind when something is raised in it."""

import pytest
import torch

from study.batch.stack_cases import members_of, task_of
from unspool.study.batch.stacked_batch import StackedBatch


class Riding(StackedBatch):
    """In the order of a GPU."""

    rides_on = frozenset({"cpu"})


@pytest.mark.parametrize("place", ["_looks", "_gradients"])
def test_the_look_is_waited_for_where_memory_runs_out(place, monkeypatch):
    batch = Riding(members_of("GCN", task_of()))
    joined = []

    def full(*_):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(batch._pass, place, full)
    monkeypatch.setattr(batch._pass, "_join", lambda: joined.append(place))
    with pytest.raises(torch.OutOfMemoryError, match="full"):
        batch.run_epochs(1)
    assert joined == [place]
