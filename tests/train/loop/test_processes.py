import json
import socket
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.forks import run_together
from tests.train.loop import together
from tests.train.made_up import adapter_of, killed_after
from train.setup.run_log import RUN_LOG


@pytest.mark.parametrize(
    ("processes", "batch_size", "token_budget"),
    [
        pytest.param(2, 8, 120, id="equally many micro-batches"),
        pytest.param(3, 5, 1, id="one process has a micro-batch less"),
        pytest.param(3, 2, 10_000, id="one process is idle"),
    ],
)
def test_several_processes_take_the_steps_of_one(
    small: str, tmp_path: Path, processes: int, batch_size: int, token_budget: int
) -> None:
    single, pair = tmp_path / "one", tmp_path / "several"
    single.mkdir()
    pair.mkdir()
    together.take_steps(small, single, batch_size, 10_000)
    run_together(processes, together.take_steps, small, pair, batch_size, token_budget)
    with safe_open(pair / "after.safetensors", "pt") as file:
        assert file.metadata()["processes"] == str(processes)
    expected, parameters = (load_file(folder / "after.safetensors") for folder in (single, pair))
    scores = parameters.pop("scores"), expected.pop("scores")
    # float32 sums in another order; a gradient off by a factor would show a hundred times.
    torch.testing.assert_close(parameters, expected, rtol=1e-5, atol=1e-5)
    moved = max(p.abs().max() for name, p in expected.items() if "lora_B" in name)
    assert moved > 1e-3, "lora_B starts at zero, so training must have moved it"
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-2)  # log-probabilities of about 20


def test_machines_without_a_shared_disk_go_on_from_the_first_ones_checkpoint(
    small: str, tmp_path: Path
) -> None:
    """Killed after two of four steps; the second process has a run folder of its own, empty."""
    whole = together.of_four_steps(small, tmp_path / "whole")
    whole.fit()
    with killed_after(2):
        together.of_four_steps(small, tmp_path / "0").fit()
    RUN_LOG.close_file()  # as the end of its process would
    lines = run_together(2, together.with_own_folders, small, tmp_path).splitlines()
    host = socket.gethostname()
    assert [line for line in lines if line.startswith("process ")] == [
        f"process 1 on {host} has no checkpoint in its {tmp_path / '0'}, the first process has "
        "checkpoint-000002: every process goes on from the first one's"
    ]
    assert any("changed since the checkpoint: optim.token_budget=100" in line for line in lines)
    first, second = (load_file(tmp_path / f"{rank}.safetensors") for rank in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    torch.testing.assert_close(first, adapter_of(whole), rtol=1e-3, atol=1e-4)


def test_all_processes_stop_early_at_the_same_step(small: str, tmp_path: Path) -> None:
    """The loss since the last report is logged, though the next report is not due."""
    lines = run_together(2, together.stop_early, small, tmp_path).splitlines()
    assert sum(line.startswith("stopped early at step 2 of 8: ") for line in lines) == 1
    first, second = (
        json.loads((tmp_path / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)
    )
    assert first == second
    assert (first["step"], first["planned_steps"], first["losses"]) == (2, 8, [])
    assert [entry["step"] for entry in first["history"] if "train_loss" in entry] == [2]
    together.stop_early(small, tmp_path / "one")
    one = json.loads((tmp_path / "one" / "0.json").read_text(encoding="utf-8"))
    assert one["history"] == [
        {name: pytest.approx(value, abs=1e-3) for name, value in entry.items()}
        for entry in first["history"]
    ]
