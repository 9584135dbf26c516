"""Launches that training does not support end on one line, before anything is read or loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from train import (
    bradley_terry,
    critique_dpo,
    critique_grpo,
    hieval_stage1,
    hieval_stage2,
    truthful_judge,
    vision_warmup,
)
from train.setup.engines import check_config_file, check_distributed_type, check_engine

REPOSITORY = Path(__file__).parents[3]
SCRIPTS = (
    *(bradley_terry, critique_dpo, critique_grpo),
    *(hieval_stage1, hieval_stage2, truthful_judge, vision_warmup),
)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("ACCELERATE_USE_FSDP", "true", "ACCELERATE_USE_FSDP: FSDP is not supported; training"),
        ("ACCELERATE_USE_DEEPSPEED", "true", "DeepSpeed is not supported; training runs in one"),
        ("ACCELERATE_USE_MEGATRON_LM", "1", "Megatron-LM is not supported; training runs in one"),
        ("PJRT_DEVICE", "TPU", "TPU is not supported; training runs in one process, or in several"),
        ("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4", "STEPS=4: not supported; unset it and"),
    ],
)
def test_engines_are_refused_before_the_data_is_read(
    script: Any,
    variable: str,
    value: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(script, "load_backbone", pytest.fail)
    with pytest.raises(SystemExit) as ended:
        script.main([])  # the recipe's data is not there either
    assert ended.value.code == 1
    line = capsys.readouterr().err
    assert line.startswith("error: ")
    assert message in line
    assert line.count("\n") == 1


def test_variables_that_ask_for_nothing_are_taken() -> None:
    check_engine({"ACCELERATE_USE_FSDP": "false", "PJRT_DEVICE": "CPU"})
    check_engine({"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "1"})


@pytest.mark.parametrize("kind", ["FSDP", "DEEPSPEED", "MEGATRON_LM", "XLA", "TPU", "MULTI_NPU"])
def test_files_of_other_engines_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "accelerate.yaml"
    path.write_text(f"distributed_type: {kind}\nnum_processes: 8\n", encoding="utf-8")
    with pytest.raises(CustosError, match=f"accelerate.yaml: distributed_type {kind} is not"):
        check_config_file(path)
    with pytest.raises(CustosError, match=f"^distributed_type {kind} is not supported; training"):
        check_distributed_type(kind)


@pytest.mark.parametrize("kind", ["NO", "'NO'", "MULTI_GPU", "MULTI_CPU", "no", "null"])
def test_files_of_plain_processes_are_taken(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "accelerate.yaml"
    path.write_text(f"distributed_type: {kind}\n", encoding="utf-8")
    check_config_file(path)


@pytest.mark.parametrize("content", [b"- a list", b"a: [", b"\xff\xfe", b""])
def test_files_that_are_none_of_accelerate(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "accelerate.yaml"
    path.write_bytes(content)
    with pytest.raises(CustosError, match="accelerate.yaml: not a file of 'accelerate config'"):
        check_config_file(path)
    with pytest.raises(CustosError, match="none.yaml: no such file of 'accelerate config'"):
        check_config_file(tmp_path / "none.yaml")


def test_accelerate_launch_with_an_fsdp_file(tmp_path: Path) -> None:
    """On a CPU accelerate itself would train without a word in another way."""
    path = tmp_path / "fsdp.yaml"
    path.write_text(
        "distributed_type: FSDP\nuse_cpu: true\nnum_processes: 1\nfsdp_config: {fsdp_version: 2}\n"
    )
    launch = (sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch")
    done = subprocess.run(
        [*launch, "--config_file", str(path), "train/hieval_stage1.py"],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "FSDP is not supported; training runs in one process" in errors[0]
