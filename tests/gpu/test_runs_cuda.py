"""Whole runs on a GPU, up to a served judge: ``pytest -m cuda -s tests/gpu/test_runs_cuda.py``."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from judging.judge import Judge
from judging.types import JudgeRequest
from serve.queue.service import Service
from tests.gpu import recipes
from tests.gpu.figures import DEVICE, ON_GPU, REHEARSAL, Figures
from tests.gpu.programs import run_python
from tests.gpu.steps import relative_error
from tests.serve.sockets import serving
from train.methods.reward import each_response

pytestmark = ON_GPU
PROCESSES = 2 if REHEARSAL else min(4, torch.cuda.device_count())


@cache
def _short_run(name: str, checkpoints: Path) -> Path:
    """Train ten steps of a run; return its folder."""
    init = _short_run("hieval_stage1", checkpoints) if name == "hieval_stage2" else None
    home = checkpoints / "runs" / name
    recipes.train(recipes.RUNS[name][0], recipes.keys_of(name, checkpoints, home, init))
    return home / "run"


@pytest.mark.parametrize("name", recipes.RUNS)
def test_ten_steps_of_a_recipe_become_a_served_judge(name: str, checkpoints: Path) -> None:
    recipes.skip_without_bitsandbytes(name)
    run = _short_run(name, checkpoints)
    adapter = load_file(run / "adapter_model.safetensors")
    assert all(tensor.any() for key, tensor in adapter.items() if "lora_B" in key), "untrained"
    files = {file.name for file in run.iterdir()}
    splits = {path.stem for path in run.parent.glob("*.jsonl")}
    assert {"judge.json", "README.md"} <= files
    assert ("calibration.json" in files) == ("cal" in splits)
    assert ("report.md" in files) == ("test" in splits)
    judge = Judge.load(str(run))
    assert judge.backbone.model.device.type == "cpu" or DEVICE == "cuda"
    assert next(judge.engine.model.parameters()).device.type == DEVICE  # type: ignore[attr-defined]
    body = _request_of(name).model_dump(mode="json", exclude_unset=True)
    with serving(Service({"judge": judge})) as client:
        answer = client.post("/judge", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] in ("scored", "truncated")


def test_a_judge_on_the_gpu_grades_as_on_the_cpu(
    checkpoints: Path, tmp_path: Path, figures: Figures
) -> None:
    """In float32, without the calibration, which is that of bfloat16."""
    trained, run = _short_run("hieval_stage1", checkpoints), tmp_path / "run"
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("calibration.json", "checkpoint-*"))
    request = _request_of("hieval_stage1")
    by_device = {}
    for device in ("cpu", None):
        judge = Judge.load(str(run), device=device, dtype="float32")
        [verdict] = judge.grade([request])
        by_device[device] = verdict.probabilities
    there, here = by_device[None], by_device["cpu"]
    assert there and here
    error = max(abs(there[label] - here[label]) for label in here)
    figures.add("probability, Judge.load", "float32", error, "", "< 1e-3")
    assert error < 1e-3


@pytest.mark.skipif(PROCESSES < 2, reason="one GPU")
def test_several_gpus_take_the_steps_of_one(
    checkpoints: Path, tmp_path: Path, figures: Figures
) -> None:
    """In float32 without dropout, as ``torchrun`` starts them."""
    adapters = []
    for processes in (1, PROCESSES):
        home = tmp_path / str(processes)
        keys = recipes.keys_of("hieval_stage1", checkpoints, home, graded=False)
        keys += ["run.precision=fp32", "adapter.dropout=0.0", "optim.lr=1e-3", "run.workers=0"]
        launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", str(processes))
        run_python("-m", *launcher, "-m", "train.hieval_stage1", *keys)
        adapters.append(load_file(home / "run" / "adapter_model.safetensors"))
    error = relative_error(*adapters)
    figures.add("adapter", f"{PROCESSES} processes against 1", error, "of norm", "< 0.01")
    assert error < 0.01


def _request_of(name: str) -> JudgeRequest:
    """Return a request that the judge of a run takes, with a short critique."""
    recipe, _ = recipes.RUNS[name]
    [row, *_] = recipes.rows_of_recipe(recipe, "test")
    if recipe == "bradley_terry":
        return each_response(row)[0]
    fields: dict[str, Any] = {"critique_tokens": 4}
    return JudgeRequest.model_validate({**row.request().model_dump(exclude_unset=True), **fields})
