"""Streams of a GPU, each with one owner at a time, with streams that are numbers in the place of torch's."""

import gc
import random

import torch

from unspool.train.streams import stream_for

GPU = torch.device("cuda")


class Owner:
    """Whoever captures."""


class Pool:
    """As many streams as there are, handed out in turns, as torch does."""

    def __init__(self, size, first):
        self.size, self.first, self.drawn = size, first, 0

    def __call__(self, device):
        assert device == GPU
        self.drawn += 1
        return type("Stream", (), {"cuda_stream": self.first + (self.drawn - 1) % self.size})


def places(streams):
    return [None if one is None else one.cuda_stream for one in streams]


def test_no_stream_has_two_owners_while_both_live():
    pool, random_ = Pool(32, 1000), random.Random(0)
    living = []
    for _ in range(500):
        if len(living) == 16 or (living and random_.random() < 0.4):
            living.pop(random_.randrange(len(living)))
        owner = Owner()
        streams = [stream_for(owner, GPU, pool) for _ in range(2)]
        living.append((owner, streams))
        del owner
        held = places(one for _, own in living for one in own)
        assert len(set(held)) == len(held)
        assert None not in held


def test_a_stack_that_lives_long_keeps_its_stream_while_others_come_and_go():
    pool = Pool(32, 2000)
    first = Owner()
    own = places([stream_for(first, GPU, pool), stream_for(first, GPU, pool)])
    for _ in range(100):
        other = Owner()
        assert stream_for(other, GPU, pool).cuda_stream not in own
        assert stream_for(other, GPU, pool).cuda_stream not in own


def test_there_is_none_where_all_are_taken_and_one_again_when_an_owner_has_ended():
    pool = Pool(4, 3000)
    owners = [Owner() for _ in range(4)]
    assert sorted(places(stream_for(owner, GPU, pool) for owner in owners)) == [3000, 3001, 3002, 3003]
    late = Owner()
    assert stream_for(late, GPU, pool) is None
    owners[2].itself = owners[2]  # a circle, as an exception and its frames make
    del owners[2]
    gc.collect()
    assert stream_for(late, GPU, pool).cuda_stream == 3002
    assert stream_for(Owner(), GPU, pool) is None
