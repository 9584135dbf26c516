"""Start of a process that makes rows or pictures for a training process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def begin_worker() -> None:
    """Leave Ctrl-C to the training process, and end when it has ended, even if it was killed.

    This is the initializer of a pool of processes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent has ended, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)
