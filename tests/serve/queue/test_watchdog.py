"""The end of a process whose model makes no progress, and of no other."""

from __future__ import annotations

import logging
import signal
import sys
import time

from serve.queue.watchdog import Watchdog
from tests.forks import forked
from tests.serve.sockets import wait_until


def make_no_progress(longest: float, seconds: float) -> None:
    """Work for some seconds of this process's own time without a sign of progress."""
    logging.basicConfig()
    watchdog = Watchdog(longest)
    watchdog.beat()
    sys.stdout.write("works\n")
    sys.stdout.flush()
    for _ in range(round(seconds / 0.02)):
        time.sleep(0.02)
    watchdog.rest()


def test_time_in_which_the_process_is_stopped_does_not_count() -> None:
    with forked(make_no_progress, 3.0, 1.0) as process:
        process.wait_for("works")
        process.send_signal(signal.SIGSTOP)
        time.sleep(4)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0


def test_no_progress_ends_the_process_and_says_where_it_was() -> None:
    with forked(make_no_progress, 0.5, 30.0) as process:
        assert process.wait(60) == 1
        assert "make_no_progress" in process.stderr


def test_a_rest_ends_the_watch_and_a_beat_begins_it_again() -> None:
    watchdog = Watchdog(60)
    watchdog.beat()
    assert not watchdog.is_stalled
    watchdog._waited = 40
    assert watchdog.is_stalled
    watchdog.beat()
    assert not watchdog.is_stalled
    watchdog._waited = 40
    watchdog.rest()
    assert not watchdog.is_stalled
    wait_until(lambda: watchdog._thread is None)
    watchdog.beat()
    assert watchdog._thread is not None
    watchdog.rest()
