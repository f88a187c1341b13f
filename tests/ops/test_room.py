"""Room for large results: given back, used again, and never shared by two tensors."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from unspool.ops import room

here = pytest.mark.skipif(not room._POSSIBLE, reason="this system has no such memory")


@pytest.fixture
def small(monkeypatch):
    """Room for small results, too, and none that is idle."""
    monkeypatch.setattr(room, "LEAST", 1)
    monkeypatch.setattr(room, "_idle", {})


@here
def test_what_is_gone_is_used_again(small):
    like = torch.ones(100, 3)
    first = room.empty_like(like).fill_(2.0)
    place = first.data_ptr()
    del first
    assert [len(many) for many in room._idle.values()] == [1]
    assert room.empty_like(like).data_ptr() == place


@here
def test_room_is_lent_as_long_as_any_view_lives(small):
    like = torch.ones(100, 3, dtype=torch.float64)
    view = room.empty_like(like).fill_(2.0)[5:]
    other = room.empty_like(like).fill_(3.0)
    assert not any(room._idle.values())
    assert view.eq(2.0).all()
    assert other.eq(3.0).all()


@here
def test_no_more_is_kept_than_a_share_of_the_memory(small, monkeypatch):
    monkeypatch.setattr(room, "_most", lambda: 3 * room._PAGE)
    like = torch.ones(4)
    many = [room.empty_like(like) for _ in range(5)]
    del many
    assert [len(many) for many in room._idle.values()] == [3]
    room.empty_like(torch.ones(room._PAGE // 2))  # another size, of one page
    assert sum(size * len(many) for size, many in room._idle.items()) <= 3 * room._PAGE


@here
def test_autograd_keeps_what_it_needs(small):
    x = torch.arange(6.0, requires_grad=True)

    def twice(t):
        return room.empty_like(t).copy_(t * 2)

    y = twice(x)
    z = (y * y).sum()
    del y
    room.empty_like(x.detach()).fill_(100.0)
    z.backward()
    assert torch.equal(x.grad, 8 * torch.arange(6.0))


def test_small_results_are_torchs_own():
    assert room.empty_like(torch.ones(3, 2).T).is_contiguous()
    assert all(size >= room.LEAST for size in room._idle)


@here
def test_threads_never_share_room(small):
    def work(number):
        like = torch.ones(1000)
        for _ in range(50):
            mine = room.empty_like(like).fill_(number)
            assert mine.eq(number).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
