"""Steps 1 to 3: the machine and its packages, attention by cuDNN, the tests that need a GPU."""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

from packaging.requirements import Requirement

from experiments.gpu_hour.figures import ABSENT, PACKAGES, Figure, Hour, installed, use_tokenizer
from judging.errors import CustosError
from judging.models.devices import use_device

ROOT = Path(__file__).parents[2]
IMPORTED = (
    *("judging.models.backbones", "train.hieval_stage1", "train.launch.rehearsal"),
    *("serve.app", "cli.main", "trl", "pytest"),
)
"""Modules that the steps need; each imports the libraries it is written for."""
SHAPES, LONGEST = 40, 1024
HEADS, KEY_HEADS, HEAD_DIM = 32, 8, 128
"""Attention of Qwen3-VL-4B."""
ATTENTION = re.compile(r"flash|fmha|attention|attn|sdpa", re.I)
"""Names of kernels that compute attention, and of PyTorch's operators."""
MOST_KERNELS = 3
FOR_GPU = re.compile(
    r"^(pytestmark = (\[\s*\*)?ON_GPU|(pytestmark = \[\s*|@)pytest\.mark\.cuda)", re.M
)
REHEARSED = {
    "test_steps_cuda": "focal and text and Qwen3",
    "test_scores_cuda": "Qwen3",
    "test_runs_cuda": "hieval_stage1 or grades",
    "test_resume_cuda": "hieval_stage1",
}
"""Tests that a rehearsal runs, by file; of the others all."""


def machine(hour: Hour) -> Iterator[Figure]:
    """Name the device, its driver and libraries; import what the other steps need."""
    import torch

    for name in PACKAGES:
        yield Figure(name, installed(name))
    old = "; ".join(_older_than_asked())
    yield Figure("older than pyproject.toml asks", old or "none")
    for name in IMPORTED:
        try:
            import_module(name)
        except (ImportError, AttributeError, TypeError, RuntimeError) as error:
            raise CustosError(
                f"{name} cannot be imported: {error} ({old or 'versions are new enough'}); carry "
                "the wheels that docs/gpu-hour.md lists"
            ) from None
    device = use_device().type
    yield Figure("device", torch.cuda.get_device_name() if device == "cuda" else "CPU")
    yield Figure("driver", hour.book.machine.driver or ABSENT)
    yield Figure("CUDA", torch.version.cuda or ABSENT)
    yield Figure("cuDNN", str(torch.backends.cudnn.version() or ABSENT))
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        yield Figure("memory", properties.total_memory / 2**30, "GiB")
    yield Figure("peak in bfloat16", hour.book.machine.peak_tflops or ABSENT, "TFLOP/s")
    yield Figure("tokenizer of random weights", use_tokenizer(hour))


def _older_than_asked() -> Iterator[str]:
    """Yield the packages that are missing, or older than this repository asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in map(Requirement, project["dependencies"]):
        found = installed(requirement.name)
        if found == ABSENT or not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name} {found} ({requirement.specifier})"


def new_shapes(hour: Hour) -> Iterator[Figure]:
    """Time causal attention of shapes that were not seen before, with cuDNN and without."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    device = use_device().type

    def attend(batch: int, length: int) -> None:
        query, key = (
            torch.zeros(batch, heads, length, HEAD_DIM, dtype=torch.bfloat16, device=device)
            for heads in (HEADS, KEY_HEADS)
        )
        scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True)

    def milliseconds(shape: tuple[int, int]) -> float:
        started = time.perf_counter()
        attend(*shape)
        if device == "cuda":
            torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - started)

    rng, longest = random.Random(0), hour.size(LONGEST, 40)
    shapes = [(rng.randint(1, 16), rng.randint(32, longest)) for _ in range(SHAPES)]
    for is_on in (True, False):
        torch.backends.cuda.enable_cudnn_sdp(is_on)
        name = f"cuDNN {'on' if is_on else 'off'}"
        milliseconds((2, 24))
        for kind in ("new shape", "the same again"):
            taken = statistics.median(map(milliseconds, shapes))
            yield Figure(f"{name}: {kind}", taken, "ms")
        yield Figure(f"{name}: kernels", attention_kernels(lambda: attend(4, 200)))


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
    wanted = "DeviceType.CUDA" if on_gpu else "DeviceType.CPU"
    events = [
        event
        for event in profiler.key_averages()
        if str(event.device_type) == wanted and ATTENTION.search(event.key)
    ]
    events.sort(key=lambda event: -(event.device_time_total if on_gpu else event.cpu_time_total))
    return "; ".join(event.key[:120] for event in events[:MOST_KERNELS]) or "matrix products"


def files_of_tests(step: int) -> list[str]:
    """Return the files with tests that need a GPU: of losses and training steps, or the others."""
    found = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if FOR_GPU.search(file.read_text(encoding="utf-8"))
    ]
    return [file for file in found if (step == 2) == ("losses" in file or "steps" in file)]


def run_tests(hour: Hour, file: str) -> Iterator[Figure]:
    """Run a file of tests in a process of its own; yield what they measured and what failed."""
    results = hour.folder / "tests.xml"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "--tb=short", file]
    command += ["-p", "no:cacheprovider", f"--junitxml={results}"]
    environment = dict(os.environ)
    if hour.rehearsal:
        environment["CUSTOS_CUDA_REHEARSAL"] = "1"
        command += ["-k", REHEARSED.get(Path(file).stem, "test")]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if not results.is_file() or done.returncode not in (0, 1):
        raise CustosError(f"pytest ended with status {done.returncode}")
    by_kind: dict[str, list[str]] = {"passed": [], "skipped": [], "failure": [], "error": []}
    for case in ElementTree.parse(results).iter("testcase"):
        for measured in case.iter("property"):
            yield Figure(measured.get("name", ""), *json.loads(measured.get("value", "")))
        kind = next((child.tag for child in case if child.tag in by_kind), "passed")
        by_kind[kind].append(case.get("name", ""))
    failed = by_kind["failure"] + by_kind["error"]
    yield Figure("tests passed", len(by_kind["passed"]))
    yield Figure("tests skipped", len(by_kind["skipped"]))
    yield Figure("tests failed", len(failed), "", "< 1")
    if failed:
        raise CustosError(f"failed: {', '.join(failed[:8])}{', ...' if len(failed) > 8 else ''}")
