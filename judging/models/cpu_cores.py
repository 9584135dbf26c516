"""The CPU cores that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
"""Where a container sees the files of its own control group."""


def num_cores(cgroup: Path = CGROUP) -> int:
    """Return how many cores this process may use: those it may run on, or fewer under a quota.

    Args:
        cgroup: Folder of the control group, of version 2 or 1.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, _quota(cgroup) or cores or 1)


def _quota(cgroup: Path) -> int | None:
    """Return the cores that a control group may use at once, rounded up; ``None`` without limit."""
    texts = [
        _text(cgroup / "cpu.max"),
        f"{_text(cgroup / 'cpu/cpu.cfs_quota_us')} {_text(cgroup / 'cpu/cpu.cfs_period_us')}",
    ]
    for text in texts:
        match text.split():
            case [quota, period] if quota.isdecimal() and period.isdecimal():  # not max, not -1
                return max(1, math.ceil(int(quota) / int(period)))
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
