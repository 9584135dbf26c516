"""Launches that training does not support end on one line, before anything is read or loaded."""

from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from tests.train.made_up import recipe
from train import hieval_stage1
from train.setup.engines import check_engine, check_processes, launch_file


def test_engines_are_refused_before_the_data_is_read(
    monkeypatch: pytest.MonkeyPatch, refusal: Any
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_MEGATRON_LM", "1")
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)
    error = refusal(hieval_stage1, [])  # the recipe's data is not there either
    assert "Megatron-LM is not supported" in error


OTHERS = ("MEGATRON_LM", "XLA", "TPU", "MULTI_NPU")
FSDP2 = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
ZERO2 = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}


@pytest.fixture
def with_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.setup.engines.find_spec", lambda name: name)


@pytest.mark.usefixtures("with_deepspeed")
@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ({}, "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4"),
        (FSDP2, "FSDP_VERSION=1"),
        (FSDP2, "FSDP_RESHARD_AFTER_FORWARD=false"),
        (FSDP2, "FSDP_ACTIVATION_CHECKPOINTING=true"),
        (ZERO2, "ACCELERATE_DEEPSPEED_ZERO_STAGE=3"),
        (ZERO2, "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE=cpu"),
        (ZERO2, "ACCELERATE_GRADIENT_CLIPPING=1.0"),
        (ZERO2, "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4"),
    ],
)
def test_settings_of_an_engine_that_are_not_taken(engine: dict[str, str], setting: str) -> None:
    name, _, value = setting.partition("=")
    with pytest.raises(CustosError, match=f"^{setting}: not supported; "):
        check_engine(engine | {name: value})
    check_engine(engine)


def test_deepspeed_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.setup.engines.find_spec", lambda name: None)
    with pytest.raises(CustosError, match="^DeepSpeed is not installed; pip install deepspeed$"):
        check_engine(ZERO2)


@pytest.mark.usefixtures("with_deepspeed")
@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("DEEPSPEED\ndeepspeed_config: {zero_stage: 3}", "ZERO_STAGE=3"),
        ("DEEPSPEED\ndeepspeed_config: {gradient_clipping: 1.0}", "GRADIENT_CLIPPING=1.0"),
        ("DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: a}", "CONFIG_FILE=a"),
        ("FSDP", "engine.yaml: FSDP_VERSION=1"),
        *((kind, f"distributed_type {kind}") for kind in OTHERS),
    ],
)
def test_files_of_engines_are_taken_only_if_they_say_what_the_shipped_ones_do(
    tmp_path: Path, content: str, named: str
) -> None:
    path = tmp_path / "engine.yaml"
    path.write_text(f"distributed_type: {content}\n", encoding="utf-8")
    with pytest.raises(CustosError, match=named):
        launch_file(path)


@pytest.mark.usefixtures("with_deepspeed")
def test_shipped_files_are_taken_by_name() -> None:
    assert launch_file(Path("fsdp2")).is_file() and launch_file(Path("zero2")).is_file()
    with pytest.raises(CustosError, match="^none: no such file .*shipped: fsdp2, zero2"):
        launch_file(Path("none"))


@pytest.mark.parametrize("engine", [FSDP2, ZERO2])
def test_what_processes_that_share_a_model_do_not_train(
    engine: dict[str, str], tmp_path: Path
) -> None:
    plain, shared = {"WORLD_SIZE": "2"}, engine | {"WORLD_SIZE": "2"}
    for section, value in (("run__quantization", "nf4"), ("optim__optimizer", "paged_adamw_8bit")):
        settings = recipe(tmp_path, **{section: value})
        check_processes(settings, plain)
        check_processes(settings, engine | {"WORLD_SIZE": "1"})
        with pytest.raises(CustosError, match=f"={value}: "):
            check_processes(settings, shared)
    check_processes(recipe(tmp_path), shared)


@pytest.mark.parametrize("kind", ["NO", "'NO'", "MULTI_GPU", "MULTI_CPU", "no", "null"])
def test_files_of_plain_processes_are_taken(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "accelerate.yaml"
    path.write_text(f"distributed_type: {kind}\n", encoding="utf-8")
    assert launch_file(path) == path
