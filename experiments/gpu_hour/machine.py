"""Steps 1 to 3: the machine and its packages, attention by cuDNN, the tests that need a GPU."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

from packaging.requirements import Requirement

from experiments.gpu_hour.figures import ABSENT, PACKAGES, Figure, installed
from experiments.gpu_hour.kernels import attention_kernels
from experiments.gpu_hour.subjects import Hour, one_device, use_tokenizer
from judging.errors import CustosError

ROOT = Path(__file__).parents[2]
IMPORTED = (
    *("judging.models.backbones", "train.hieval_stage1", "train.dry_run.random_checkpoint"),
    *("serve.app", "cli.main", "trl", "pytest"),
)
"""Modules that the steps need; each imports the libraries it is written for."""
SHAPES, BATCHES, LENGTHS = 40, (1, 16), (64, 1024)
HEADS, KEY_HEADS, HEAD_DIM = 32, 8, 128
"""Attention of Qwen3-VL-4B."""


def machine(hour: Hour) -> Iterator[Figure]:
    """Name the device, its driver and libraries; import what the other steps need.

    Raises:
        CustosError: If a module cannot be imported.
    """
    import torch

    for name in PACKAGES:
        yield Figure(name, installed(name) or ABSENT)
    old = "; ".join(_older_than_asked())
    yield Figure("older than pyproject.toml asks", old or "none")
    for name in IMPORTED:
        try:
            import_module(name)
        except ImportError as error:
            raise CustosError(
                f"{name} cannot be imported: {error} ({old or 'versions are new enough'}); carry "
                "the wheels that docs/gpu-hour.md lists"
            ) from None
    device = one_device()
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
        if not found or not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name} {found or ABSENT} ({requirement.specifier})"


def new_shapes(hour: Hour) -> Iterator[Figure]:
    """Time causal attention of shapes that were not seen before, with cuDNN and without."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    device = one_device()
    generator = torch.Generator().manual_seed(0)

    def attend(batch: int, length: int) -> None:
        query, key = (
            torch.zeros(batch, heads, length, HEAD_DIM, dtype=torch.bfloat16, device=device)
            for heads in (HEADS, KEY_HEADS)
        )
        scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True)

    def milliseconds(shape: tuple[int, int]) -> float:
        _wait(device)
        started = time.perf_counter()
        attend(*shape)
        _wait(device)
        return 1000 * (time.perf_counter() - started)

    attend(2, 32)
    longest = hour.size(LENGTHS[1], 96)
    for is_on in (True, False):
        torch.backends.cuda.enable_cudnn_sdp(is_on)
        shapes = [
            (int(torch.randint(*BATCHES, (), generator=generator)), length)
            for length in torch.randint(LENGTHS[0], longest, (SHAPES,), generator=generator)
        ]
        name = f"cuDNN {'on' if is_on else 'off'}"
        first = [milliseconds(shape) for shape in shapes]
        again = [milliseconds(shape) for shape in shapes]
        yield Figure(f"{name}: new shape", statistics.median(first), "ms")
        yield Figure(f"{name}: the same again", statistics.median(again), "ms")
        yield Figure(f"{name}: kernels", attention_kernels(lambda: attend(4, 200)))


def _wait(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


@dataclass(frozen=True)
class Tests:
    """Some of the tests that need a GPU."""

    names: str
    """Which, as pytest's ``-k`` takes it."""
    rehearsed: str = ""
    """Which of these a rehearsal runs."""


TESTS = {
    2: {
        "losses": Tests("losses", "no_losses"),
        "steps in float32": Tests("step_in_float32 or notices", "focal and text"),
        "steps in bfloat16": Tests("step_in_bfloat16", "focal and text"),
    },
    3: {
        "scores": Tests("scores_and_texts or grades_as_on_the_cpu", "Qwen3"),
        "kernels and memory": Tests("fused_kernel or peak_memory", "Qwen3"),
        "kill and resume": Tests("killed_run", "hieval_stage1"),
        "recipes": Tests("steps_of_a_recipe", "embedded/demo or no_focal"),
    },
}
"""Parts of steps 2 and 3; :func:`parts_of_tests` adds one of all other tests."""


def parts_of_tests() -> Iterator[tuple[int, str, Tests]]:
    """Yield step, name and tests of every part, with the tests that no other part names."""
    named = [(step, name, tests) for step, parts in TESTS.items() for name, tests in parts.items()]
    yield from named
    others = " and ".join(f"not ({tests.names})" for _, _, tests in named)
    yield 3, "other tests", Tests(others, "attention")


def files_of_tests() -> list[str]:
    """Return the files with tests that need a GPU."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    mark = re.compile(r"^pytestmark = .*?mark\.cuda|^@pytest\.mark\.cuda", re.M | re.S)
    return [str(file.relative_to(ROOT)) for file in files if mark.search(file.read_text("utf-8"))]


def run_tests(hour: Hour, tests: Tests) -> Iterator[Figure]:
    """Run tests in a process of their own; yield what they measured and what failed.

    Raises:
        CustosError: If one failed, or none was found.
    """
    names = f"({tests.names}) and ({tests.rehearsed})" if hour.rehearsal else tests.names
    measured, results = hour.folder / "tests.json", hour.folder / "tests.xml"
    for file in (measured, results):
        file.unlink(missing_ok=True)
    environment = {**os.environ, "CUSTOS_CUDA_FIGURES": str(measured)}
    if hour.rehearsal:
        environment |= {"CUSTOS_CUDA_REHEARSAL": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "-k", names, "--tb=short"]
    command += ["-p", "no:cacheprovider", f"--junitxml={results}", *files_of_tests()]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if measured.is_file():
        for figure in json.loads(measured.read_text(encoding="utf-8"))["figures"]:
            name = f"{figure['check']}: {figure['case']}"
            yield Figure(name, figure["value"], figure["unit"], figure["limit"])
    if not results.is_file() or done.returncode not in (0, 1):
        raise CustosError(f"pytest ended with status {done.returncode}; tests: {names}")
    cases = list(ElementTree.parse(results).iter("testcase"))
    failed = [case.get("name", "") for case in cases if case.find("failure") is not None]
    failed += [case.get("name", "") for case in cases if case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    yield Figure("tests passed", len(cases) - len(failed) - skipped)
    yield Figure("tests skipped", skipped)
    yield Figure("tests failed", len(failed), "", "< 1")
    if failed:
        raise CustosError(f"failed: {', '.join(failed[:8])}{', ...' if len(failed) > 8 else ''}")
