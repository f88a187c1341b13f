"""Ctrl-C and being told to end: noted first, raised when it comes again, and only where Python's own handlers are."""

import os
import signal
import threading

import pytest

from unspool.interrupt import SIGNALS, deferred_interrupt


@pytest.fixture(autouse=True)
def listening():
    """Python's own handler, also where the tests run in the background, which shells let ignore interrupts."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_raises_and_the_handler_comes_back(number):
    with deferred_interrupt() as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), number)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is signal.default_int_handler


def test_another_handler_is_left_alone():
    heard = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    mine = signal.getsignal(signal.SIGINT)
    with deferred_interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert not interrupt.asked
    assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is mine


def test_other_threads_change_nothing():
    found = []

    def work():
        with deferred_interrupt() as interrupt:
            found.append((interrupt.asked, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.default_int_handler)]
