"""Threads of torch spin shortly before they sleep, whatever is imported first."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"))
            sys.exit(0)

sys.meta_path.insert(0, Watch())
from {module} import {name}
{name}.{use}
"""


@pytest.mark.parametrize(
    ("module", "name", "use", "chosen", "expected"),
    [
        ("judging.judge", "Judge", "load('embedded')", {}, "passive 1000"),
        ("train.hieval_stage1", "main", "__name__", {}, "passive 1000"),
        ("custos", "Judge", "load('embedded')", {"GOMP_SPINCOUNT": "7"}, "passive 7"),
        ("custos", "Judge", "load('embedded')", {"OMP_WAIT_POLICY": "active"}, "active None"),
    ],
)
def test_waiting_is_set_before_torch_is_loaded(
    module: str, name: str, use: str, chosen: dict[str, str], expected: str
) -> None:
    waiting = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {key: value for key, value in os.environ.items() if key not in waiting}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module, name=name, use=use)],
        env=environment | chosen,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == expected, run.stderr
