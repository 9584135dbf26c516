"""Two processes that share one model, or divide moments, take the steps of a single one."""

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor

from judging.models.backbones import load_backbone
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from tests.conftest import Folders
from tests.forks import run_together
from tests.gpu.steps import relative_error
from tests.tiny import Family, reference_model
from tests.train.plan.measured import long_rows, planned_step
from tests.train.sharding import learners
from tests.train.sharding.learners import FAMILIES, QUICK, SLOW, STEPS, Case, run, settings
from train.launch.run_plan import backbone_config
from train.plan.step_memory import RowSize, step_memory
from train.setup.engines import FSDP, ZERO

GRADIENT = 1e-5
"""Share of a gradient's norm by which sums of float32 in another order may differ."""
ADAPTER = 1e-3
"""The same for what an adapter learns: Adam's first steps only see the signs of small gradients."""


EVERY = list({str(case): case for case in [*QUICK, *SLOW]}.values())
CASES = {"quick": QUICK, "slow": SLOW, ZERO: EVERY}
Together = Callable[[str], Path]
MOMENTS = (
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="DeepSpeed is not installed"),
)
"""Marks of what needs processes that divide moments."""


@pytest.fixture(scope="module")
def together(tiny_folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Together:
    """Run folders of two processes for some cases; DeepSpeed's divide moments of every one."""
    folders = {family: tiny_folders(family) for family in FAMILIES}

    @cache
    def made(cases: str) -> Path:
        out = tmp_path_factory.mktemp("together")
        run(Case("focal", "qwen3_vl", killed_at=2), folders["qwen3_vl"], out / "begun-alone")
        engine = ZERO if cases == ZERO else FSDP
        run_together(2, learners.main, out, CASES[cases], folders, engine, seconds=1200)
        return out

    return made


@pytest.mark.parametrize(
    ("cases", "case"),
    [
        *(pytest.param("quick", case, id=str(case)) for case in QUICK),
        *(pytest.param("slow", case, id=str(case), marks=pytest.mark.slow) for case in SLOW),
        *(pytest.param(ZERO, case, id=f"zero2-{case}", marks=MOMENTS) for case in EVERY),
    ],
)
def test_the_steps_are_those_of_one_process(
    cases: str, case: Case, together: Together, tiny_folders: Folders, tmp_path: Path
) -> None:
    shared = together(cases) / str(case)
    run(case, tiny_folders(case.family), tmp_path)
    of_two, of_one = held(shared), held(tmp_path)
    if cases == ZERO:
        assert of_two["weights"] == of_one["weights"]
        assert of_two["optimizer"] == pytest.approx(of_one["optimizer"] / 2, abs=64)
    else:
        assert of_one["share"] == 1
        assert of_two["share"] == pytest.approx(0.5, abs=0.05)
    gradients = [load_file(folder / "gradients.safetensors") for folder in (shared, tmp_path)]
    assert relative_error(*gradients) < GRADIENT
    for name in ("train_loss", "grad_norm"):
        assert _reported(shared, name) == pytest.approx(_reported(tmp_path, name), rel=1e-4)
    for shared_entry, entry in zip(_history(shared), _history(tmp_path), strict=True):
        assert shared_entry == pytest.approx(entry, rel=1e-3, abs=1e-3)
    last = f"checkpoint-{STEPS:06d}"
    assert relative_error(*(_learned(folder / last) for folder in (shared, tmp_path))) < ADAPTER


@pytest.mark.parametrize("family", FAMILIES)
def test_a_process_holds_what_is_planned(
    family: Family, together: Together, tiny_folders: Folders, tmp_path: Path
) -> None:
    """The largest part, which is the first process's; others may have a row less of a matrix."""
    case = next(case for case in QUICK if case.family == family)
    measured = held(together("quick") / str(case))
    planned = step_memory(
        backbone_config(tiny_folders(family)),
        settings(case, tmp_path),
        RowSize("rows", 0, 16, 1, LabelTree.build(["a"], [[1, 2]]), 2),
        bf16=False,
        gpu=False,
        sharers=2,
    )
    for part in ("weights", "adapter", "optimizer"):
        assert getattr(planned, part) == measured[part], part
    assert planned.gradients == planned.adapter


def test_a_step_takes_what_is_planned(
    together: Together, tiny_folders: Folders, tmp_path: Path
) -> None:
    folder = together("quick") / "measured"
    measured = [json.loads((folder / rank / "peak.json").read_text()) for rank in "01"]
    encoder = Encoder(load_backbone(tiny_folders("qwen2_5_vl"), dtype="float32", device="cpu"))
    case = Case("focal", "qwen2_5_vl")
    planned = planned_step(settings(case, tmp_path), encoder, long_rows(8), sharers=2)
    assert planned.total == pytest.approx(max(measured), rel=0.15)


engines = pytest.mark.parametrize("cases", ["quick", pytest.param(ZERO, marks=MOMENTS)])


@engines
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_plain_peft_loads_the_adapter(
    case: Case, cases: str, together: Together, tiny_folders: Folders
) -> None:
    """It is that of the run's checkpoint."""
    folder, family = together(cases) / str(case), case.family
    state = json.loads((folder / f"checkpoint-{STEPS:06d}" / "state.json").read_text())
    best = folder / f"best-{int(state['chosen']['step']):06d}"
    adapted = PeftModel.from_pretrained(reference_model(tiny_folders(family)), str(best))
    saved = load_file(best / "adapter_model.safetensors")
    loaded = {name.replace(".default.", "."): tensor for name, tensor in adapted.named_parameters()}
    assert saved.keys() == {name for name in loaded if ".lora_" in name}
    assert all(torch.equal(loaded[name], tensor) for name, tensor in saved.items())
    if best.name == f"best-{STEPS:06d}":
        checkpoint = load_file(folder / f"checkpoint-{STEPS:06d}" / "adapter.safetensors")
        assert sorted(t.norm().item() for t in checkpoint.values()) == pytest.approx(
            sorted(t.norm().item() for t in saved.values())
        )


@engines
@pytest.mark.parametrize("began", ["alone", "together"])
def test_another_number_of_processes_goes_on(
    began: str, cases: str, together: Together, tiny_folders: Folders
) -> None:
    """Two steps by one process and the third by two, or the other way."""
    case, out = Case("focal", "qwen3_vl"), together(cases)
    whole, folder = out / str(case), out / f"begun-{began}"
    if began == "together":
        assert not (folder / "checkpoint-000003").exists()
        run(case, tiny_folders("qwen3_vl"), folder)
    last = f"checkpoint-{STEPS:06d}"
    assert relative_error(_learned(folder / last), _learned(whole / last)) < ADAPTER
    moments = [load_file(path / last / "optimizer.safetensors") for path in (folder, whole)]
    assert relative_error(*moments) < ADAPTER


def held(folder: Path) -> dict[str, float]:
    """Return the bytes that the first process of a run held, by what they are for."""
    numbers: dict[str, float] = json.loads((folder / "held.json").read_text())
    return numbers


def _learned(checkpoint: Path) -> dict[str, Tensor]:
    """Return the matrices of an adapter that start at zero."""
    weights = load_file(checkpoint / "adapter.safetensors")
    return {name: tensor for name, tensor in weights.items() if "lora_B" in name}


def _history(folder: Path) -> list[dict[str, float]]:
    state = json.loads((folder / f"checkpoint-{STEPS:06d}" / "state.json").read_text())
    history: list[dict[str, float]] = state["history"]
    return history


def _reported(folder: Path, name: str) -> list[Any]:
    """Return the values that a run reported under a name."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [json.loads(line) for line in lines]
    return [report[name] for report in reports if name in report]
