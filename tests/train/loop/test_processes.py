from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.train.loop import several_processes


@pytest.mark.parametrize(
    ("processes", "batch_size", "micro_batch_size"),
    [
        pytest.param(2, 8, 2, id="equally many micro-batches"),
        pytest.param(3, 8, 4, id="eight rows among three"),
        pytest.param(3, 5, 1, id="one process has a micro-batch less"),
        pytest.param(3, 2, 2, id="one process is idle"),
    ],
)
def test_several_processes_take_the_steps_of_one(
    small: str, tmp_path: Path, processes: int, batch_size: int, micro_batch_size: int
) -> None:
    single, pair = tmp_path / "one", tmp_path / "several"
    single.mkdir()
    pair.mkdir()
    several_processes.run(small, single, batch_size, batch_size)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(processes), "-m", "tests.train.loop.several_processes"),
        *(small, str(pair), str(batch_size), str(micro_batch_size)),
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
        assert file.metadata()["processes"] == str(processes)
    expected, parameters = (load_file(folder / "after.safetensors") for folder in (single, pair))
    assert expected.keys() == parameters.keys()
    scores = parameters.pop("scores"), expected.pop("scores")
    for name, parameter in expected.items():
        # float32 sums in another order; a gradient off by a factor would show a hundred times.
        torch.testing.assert_close(parameters[name], parameter, rtol=1e-5, atol=1e-5)
    moved = max(p.abs().max() for name, p in expected.items() if "lora_B" in name)
    assert moved > 1e-3, "lora_B starts at zero, so training must have moved it"
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-2)  # log-probabilities of about 20
