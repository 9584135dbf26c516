"""The names of the kernels that compute attention."""

from __future__ import annotations

import re
from collections.abc import Callable

ATTENTION = re.compile(r"flash|fmha|attention|attn|sdpa", re.I)
MOST = 3


def attention_kernels(call: Callable[[], object]) -> str:
    """Return the attention kernels that took most time in a call; on a CPU, the operators."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    on_gpu = torch.cuda.is_available()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as profiler:
        call()
        if on_gpu:
            torch.cuda.synchronize()
    wanted = torch.autograd.DeviceType.CUDA if on_gpu else torch.autograd.DeviceType.CPU
    events = [
        event
        for event in profiler.key_averages()
        if event.device_type == wanted and ATTENTION.search(event.key)
    ]
    events.sort(key=lambda event: -(event.device_time_total if on_gpu else event.cpu_time_total))
    return "; ".join(event.key[:120] for event in events[:MOST]) or "matrix products"
