"""Requests in a minute, by a clock that the test turns."""

import pytest

from serve.queue.quotas import Quotas


def test_an_allowance_refills_all_the_time() -> None:
    quotas = Quotas(60)
    quotas.take("a", 60, 0.0)
    assert quotas.seconds_to_wait("a", 1, 0.0) == 1
    assert quotas.seconds_to_wait("a", 30, 10.0) == 20
    assert quotas.seconds_to_wait("a", 30, 30.0) == 0
    assert quotas.seconds_to_wait("b", 60, 0.0) == 0
    assert quotas.seconds_to_wait("a", 60, 10_000.0) == 0  # no more than a minute's is saved up
    quotas.take("a", 60, 10_000.0)
    assert quotas.seconds_to_wait("a", 1, 10_000.0) == 1


def test_a_call_with_more_than_a_minutes_requests_is_paid_for_later() -> None:
    quotas = Quotas(60)
    assert quotas.seconds_to_wait("a", 256, 0.0) == 0
    quotas.take("a", 256, 0.0)
    assert quotas.seconds_to_wait("a", 1, 0.0) == 197


@pytest.mark.parametrize("rate", [1, 7, 600])
def test_in_the_long_run_no_more_than_the_rate_gets_through(rate: int) -> None:
    quotas = Quotas(rate)
    taken, now = 0, 0.0
    while now < 3600:
        if wait := quotas.seconds_to_wait("a", 1, now):
            now += wait
        else:
            quotas.take("a", 1, now)
            taken += 1
    assert 59 * rate <= taken <= 61 * rate


def test_without_a_limit_nobody_waits() -> None:
    quotas = Quotas(None)
    quotas.take("a", 10**9, 0.0)
    assert quotas.seconds_to_wait("a", 10**9, 0.0) == 0
