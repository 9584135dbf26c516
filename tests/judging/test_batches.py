"""Items made ahead: in order, one at a time, and none after the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from judging.batches import made_ahead


def test_the_next_item_is_made_while_one_is_used() -> None:
    begun = [threading.Event() for _ in range(5)]
    threads = set()

    def numbers() -> Iterator[int]:
        for number in range(5):
            begun[number].set()
            threads.add(threading.current_thread())
            yield number

    for number in (ahead := made_ahead(numbers())):
        if number < 4:
            assert begun[number + 1].wait(20)
        assert not any(event.is_set() for event in begun[number + 2 :])
    assert list(ahead) == []
    assert threading.current_thread() not in threads and len(threads) == 1
    assert not any(thread.is_alive() for thread in threads)


def test_an_error_comes_after_the_items_before_it() -> None:
    def numbers() -> Iterator[int]:
        yield from (0, 1)
        raise ValueError("two")

    ahead = made_ahead(numbers())
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(ahead)


def test_nothing_is_made_any_more_once_it_is_closed() -> None:
    made, goes_on = [], threading.Event()

    def numbers() -> Iterator[int]:
        for number in range(9):
            if number == 1:
                goes_on.wait(20)
            made.append(number)
            yield number

    ahead = made_ahead(numbers())
    assert next(ahead) == 0
    threading.Timer(0.05, goes_on.set).start()
    ahead.close()  # type: ignore[attr-defined]  # it is a generator
    assert made == [0, 1]
