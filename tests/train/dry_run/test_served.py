"""How a service ended that gave no verdict."""

from __future__ import annotations

import subprocess
import sys

from train.launch.rehearsal import _ending


def test_a_service_that_was_killed_says_so() -> None:
    killed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], text=True)
    killed.kill()
    assert _ending(killed) == "it was killed, as the system does where memory is short"


def test_a_service_that_ended_by_itself_has_a_code() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"], text=True)
    assert _ending(ended) == "it ended with code 3"
