"""Processes find and leave each other."""

import gc
import os
import weakref

import pytest
import torch
from torch import distributed

import unspool as us
from graph.ranks import on_ranks, said
from unspool.ops.ranks import Ranks


def test_nothing_keeps_a_group_alive_that_was_left():
    def work(rank):
        ranks, world = Ranks.here(), weakref.ref(distributed.group.WORLD)
        graph = us.graph.spread(us.graph.ring(6), us.graph.Rows())
        whole = graph.gather(graph @ torch.ones(graph.nodes, 1))
        same = Ranks.here() is ranks
        distributed.destroy_process_group()
        gc.collect()
        return same, float(whole.sum()), world() is None, said(lambda: graph @ torch.ones(graph.nodes, 1))

    for same, total, gone, told in on_ranks(2, work):
        assert same
        assert total == 6.0
        assert gone  # or Python would end with its threads at work
        assert "the processes have parted" in told


def test_what_the_first_cannot_make_is_raised_by_all():
    def fail():
        raise us.InputError("parts", os.getpid(), "something")

    for told in on_ranks(2, lambda rank: said(lambda: Ranks.here().from_first(fail))):
        assert told.startswith("InputError: parts=")


def test_without_a_start_the_way_to_start_is_named():
    with pytest.raises(us.IncompatibleError, match="torchrun"):
        Ranks.here()
