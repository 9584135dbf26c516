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


def test_a_gpu_is_shown_to_those_who_ask() -> None:
    assert all(map(asks_for_gpu, ("cuda", "cuda and not slow", "slow or cuda")))
    others = ("", "slow", "not cuda", "not (slow or cuda)", "not slow and not cuda and not vllm")
    assert not any(map(asks_for_gpu, others))
    [of_make_test] = re.findall(r'-m "(.*)"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert not asks_for_gpu(of_make_test)


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
    """And where they are shown again, nothing has looked for them yet."""
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    program = "import sys, tests.conftest, tests.gpu.conftest; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
