"""Which tests see a GPU: those of ``-m cuda`` alone."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import conftest
from tests.conftest import asks_for_gpu, pytest_configure

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("expression", "asks"),
    [
        ("cuda", True),
        ("cuda and not slow", True),
        ("slow or cuda", True),
        ("", False),
        ("slow", False),
        ("not slow", False),
        ("not cuda", False),
        ("not (slow or cuda)", False),
        ("not slow and not cuda and not vllm", False),
    ],
)
def test_a_gpu_is_shown_to_those_who_ask(expression: str, asks: bool) -> None:
    assert asks_for_gpu(expression) == asks


def test_make_test_does_not_ask() -> None:
    [expression] = re.findall(r'-m "(.*)"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert not asks_for_gpu(expression)


def test_neither_this_test_nor_a_program_that_it_starts_sees_one() -> None:
    program = (
        "import os, torch; print([os.environ['CUDA_VISIBLE_DEVICES']], torch.cuda.device_count())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert done.stdout.strip() == "[''] 0"


@pytest.mark.parametrize("rehearsal", [None, "1"])
@pytest.mark.parametrize("found", [None, "", "3"])
def test_those_that_the_user_chose_are_shown(
    found: str | None, rehearsal: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("CUSTOS_CUDA_REHEARSAL", raising=False)
    if rehearsal:
        monkeypatch.setenv("CUSTOS_CUDA_REHEARSAL", rehearsal)
    monkeypatch.setattr(conftest, "_FOUND_VISIBLE", found)
    for expression, seen in (("slow", ""), ("cuda", "" if rehearsal else found)):
        pytest_configure(cast(Any, SimpleNamespace(option=SimpleNamespace(markexpr=expression))))
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == seen


def test_they_are_hidden_before_pytorch_is_imported() -> None:
    """And here, where they are shown again, nothing has looked for them yet."""
    program = "import sys, tests.conftest, tests.gpu.conftest; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
