from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.train.loop import two_processes


def test_two_processes_equal_one_with_twice_the_accumulation(small: str, tmp_path: Path) -> None:
    """Four micro-batches a step: four on one process, or two on each of two."""
    single, pair = tmp_path / "one", tmp_path / "two"
    single.mkdir()
    pair.mkdir()
    two_processes.run(small, single)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "tests.train.loop.two_processes", small, str(pair)),
    ]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        env=environment,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with safe_open(pair / "after.safetensors", "pt") as file:
        assert file.metadata()["processes"] == "2"
    expected, parameters = (load_file(folder / "after.safetensors") for folder in (single, pair))
    assert expected.keys() == parameters.keys()
    scores = parameters.pop("scores"), expected.pop("scores")
    for name, parameter in expected.items():
        # float32 sums in another order; a gradient off by a factor would show a hundred times.
        torch.testing.assert_close(parameters[name], parameter, rtol=1e-4, atol=1e-5)
    moved = max(p.abs().max() for name, p in expected.items() if "lora_B" in name)
    assert moved > 1e-3, "lora_B starts at zero, so training must have moved it"
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-2)  # log-probabilities of about 20
