"""Programs beside a test of a GPU."""

import os
import subprocess
import sys
from pathlib import Path

from tests.gpu.figures import REHEARSAL

ROOT = Path(__file__).parents[2]


def run_python(*arguments: str, on_cpu: bool = False, status: int = 0) -> str:
    """Run an interpreter to its end and return what it printed.

    Args:
        arguments: Its command line.
        on_cpu: Hide the GPUs from it.
        status: Exit status that is expected.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if on_cpu or REHEARSAL:
        environment |= {"CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )
    assert done.returncode == status, done.stderr[-3000:]
    return done.stdout
