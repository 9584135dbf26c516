"""Training, grading and serving on a GPU equal those on the CPU: two cores cannot prove it.

On a machine with a GPU: ``pytest -m cuda -s tests/test_cuda.py``. It prints a table of figures and
writes them to ``runs/cuda_figures.json`` (or to the file that ``CUSTOS_CUDA_FIGURES`` names).

``CUSTOS_CUDA_REHEARSAL=1`` runs every check on the CPU. That shows that the checks work; it shows
nothing of a GPU.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from judging import Judge, JudgeRequest
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.engine import GeneratedText, Sampling, texts_in_order
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task
from serve.queue.service import Service
from tests.gpu import recipes
from tests.gpu.figures import DEVICE, REHEARSAL, Figures, output_file
from tests.gpu.memory import keys_of_run, measured_peak, planned_peak
from tests.gpu.steps import FAMILIES, STEPS, Step, relative_error, take_step
from tests.judging.made_up import ask
from tests.serve.sockets import serving
from train.objectives.reward import each_response

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not REHEARSAL and not torch.cuda.is_available(), reason="no CUDA device"),
]
ROOT = Path(__file__).parents[1]
PROCESSES = 2 if REHEARSAL else min(4, torch.cuda.device_count())
FIRST_OF_SCRIPT = ("hieval_stage1", "hieval_stage2", "truthful_judge", "bradley_terry")
# Gradients of equal steps differ by 7e-7 of their norm between two orders of summation on a CPU,
# those of a step with other pictures by .4 and more.
FP32 = 1e-4
# On a CPU with bfloat16 instructions the largest of these steps' gradients drifts by .14.
BF16, BF16_COSINE, BF16_LOSS = 0.3, 0.97, 0.05
MATH = "aten::_scaled_dot_product_attention_math"


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Accelerate keeps precision and device in globals; a run's weights leave the GPU after it."""
    AcceleratorState._reset_state(reset_partial_state=True)
    torch.set_float32_matmul_precision("highest")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    gc.collect()
    torch.cuda.empty_cache()


@pytest.fixture(scope="module")
def figures() -> Iterator[Figures]:
    measured = Figures()
    yield measured
    if measured:
        measured.write(output_file())
        print(f"\n{measured.table()}\nwritten to {output_file()}")  # noqa: T201


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints, starting adapters and the CPU's steps."""
    made = tmp_path_factory.mktemp("cuda")
    _python("-m", "tests.gpu.steps", str(made), str(made / "cpu.safetensors"), on_cpu=True)
    return made


@pytest.fixture(scope="module")
def on_cpu(folder: Path) -> dict[str, dict[str, Tensor]]:
    """Loss and gradients of every step as the CPU computes them, by the step's name."""
    steps: dict[str, dict[str, Tensor]] = {}
    for key, tensor in load_file(folder / "cpu.safetensors").items():
        name, _, part = key.rpartition("/")
        steps.setdefault(name, {})[part] = tensor
    return steps


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_step_in_float32_is_that_of_the_cpu(
    step: Step, folder: Path, on_cpu: dict[str, dict[str, Tensor]], tmp_path: Path, figures: Figures
) -> None:
    expected = on_cpu[str(step)]
    taken = take_step(step, "fp32", folder, tmp_path / "run")
    error = relative_error(taken, expected)
    figures.add("step fp32, gradient error", str(step), error, "of norm", f"< {FP32:g}")
    torch.testing.assert_close(taken["loss"], expected["loss"], rtol=1e-5, atol=1e-6)
    assert error < FP32


@pytest.mark.parametrize("step", [s for s in STEPS if not s.checkpointing], ids=str)
def test_a_step_in_bfloat16_stays_near(
    step: Step, folder: Path, on_cpu: dict[str, dict[str, Tensor]], tmp_path: Path, figures: Figures
) -> None:
    expected = on_cpu[str(step)]
    taken = take_step(step, "bf16", folder, tmp_path / "run")
    error = relative_error(taken, expected)
    names = sorted(expected.keys() - {"loss"})
    found, wanted = (torch.cat([of[n].flatten() for n in names]) for of in (taken, expected))
    figures.add("step bf16, gradient error", str(step), error, "of norm", f"< {BF16:g}")
    assert error < BF16
    assert torch.cosine_similarity(found, wanted, dim=0) > BF16_COSINE
    assert abs(taken["loss"] - expected["loss"]) < BF16_LOSS


def test_the_comparison_notices_other_pictures(on_cpu: dict[str, dict[str, Tensor]]) -> None:
    """And gradient checkpointing changes nothing, or the checks above would prove little."""
    for step in STEPS:
        if step.pictures:
            text = on_cpu[str(replace(step, pictures=False))]
            assert relative_error(on_cpu[str(step)], text) > 1000 * FP32
        if step.checkpointing:
            plain = on_cpu[str(replace(step, checkpointing=False))]
            assert relative_error(on_cpu[str(step)], plain) < FP32


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_and_texts_are_those_of_the_cpu(family: str, folder: Path, figures: Figures) -> None:
    picture = str(folder / "picture.png")
    requests = [ask(), ask("It is 18."), ask("Nine.", images=(picture,)), ask(images=(picture,))]
    scores, texts = {}, {}
    for device in ("cpu", DEVICE):
        backbone = load_backbone(str(folder / family), dtype="float32", device=device)
        assert backbone.model.device.type == device
        engine, prompts = _engine(backbone), _prompts(backbone, requests)
        tree = Encoder(backbone).tree(get_task("hieval-qs").labels("plain/all"))
        scores[device] = torch.tensor(engine.score(prompts, tree))
        sampling = Sampling(max_new_tokens=24, temperature=0.0)
        batches = engine.generate(
            prompts, Encoder(backbone), "</never>", range(len(prompts)), sampling
        )
        texts[device] = [_tokens(text) for text in texts_in_order(batches)]
    error = float((scores[DEVICE] - scores["cpu"]).abs().max())
    figures.add("label log-probability error", family, error, "nat", "< 1e-3")
    assert scores["cpu"].std(0).min() > 0.02, "prompts must matter, or equality shows nothing"
    assert error < 1e-3
    assert all(len(tokens) > 1 for tokens in texts["cpu"])
    assert texts[DEVICE] == texts["cpu"]


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_runs_in_a_fused_kernel(family: str, folder: Path, tmp_path: Path) -> None:
    """Text without branches: training on critiques, in bfloat16, as every recipe does."""
    step = Step("critique", family, pictures=False, checkpointing=True)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        take_step(step, "bf16", folder, tmp_path / "run")
    operators = {event.key for event in profiler.key_averages()}
    attention = sorted(name for name in operators if "dot_product" in name or "flash" in name)
    print(f"\n{family}: {', '.join(attention) or 'matrix products'}")  # noqa: T201
    if not REHEARSAL:
        assert MATH not in operators
        assert any("flash" in name or "cudnn" in name for name in attention)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_peak_memory_is_the_planned_one(
    family: str, checkpointing: bool, tmp_path: Path, figures: Figures
) -> None:
    keys = keys_of_run(family, checkpointing, tmp_path)
    planned, measured = planned_peak(keys), measured_peak(keys, tmp_path)
    case = f"{family}{', checkpointing' if checkpointing else ''}"
    figures.add("peak memory", case, measured / 2**20, "MiB")
    figures.add("peak memory by the plan", case, planned / measured, "of measured", "0.85 to 1.15")
    assert planned == pytest.approx(measured, rel=0.15)


@cache
def _short_run(name: str, folder: Path) -> recipes.ShortRun:
    init = _short_run("hieval_stage1", folder).folder if name == "hieval_stage2" else None
    home = folder / "recipes" / name
    keys = recipes.keys_of(name, str(folder / recipes.family_of(name)), home, init)
    return recipes.timed_run(name, keys, home)


@pytest.mark.parametrize("name", recipes.NAMES)
def test_ten_steps_of_a_recipe_become_a_served_judge(
    name: str, folder: Path, figures: Figures
) -> None:
    run = _short_run(name, folder)
    figures.add("training, tiny model", name, run.tokens_per_second, "tokens/s")
    if run.peak_bytes:
        figures.add("peak memory, tiny model", name, run.peak_bytes / 2**20, "MiB")
    adapter = load_file(run.folder / "adapter_model.safetensors")
    assert all(tensor.any() for key, tensor in adapter.items() if "lora_B" in key), "untrained"
    files = {file.name for file in run.folder.iterdir()}
    splits = {path.stem for path in run.folder.parent.glob("*.jsonl")}
    assert {"judge.json", "README.md"} <= files
    assert ("calibration.json" in files) == ("cal" in splits)
    assert ("report.md" in files) == ("test" in splits)
    judge = Judge.load(str(run.folder))
    assert judge.backbone.model.device.type == "cpu" or DEVICE == "cuda"
    assert next(judge.engine.model.parameters()).device.type == DEVICE  # type: ignore[attr-defined]
    body = _request_of(name).model_dump(mode="json", exclude_unset=True)
    with serving(Service({"judge": judge})) as client:
        answer = client.post("/judge", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] in ("scored", "truncated")


@pytest.mark.parametrize("name", FIRST_OF_SCRIPT)
def test_a_killed_run_goes_on(name: str, folder: Path, tmp_path: Path, figures: Figures) -> None:
    checkpoint = str(folder / recipes.family_of(name))
    killed = _python("-m", "tests.gpu.recipes", name, checkpoint, str(tmp_path), status=-9)
    assert not (tmp_path / "run" / "judge.json").exists(), killed
    recipes.train(name, recipes.keys_of(name, checkpoint, tmp_path))
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert f"at step {recipes.KILLED_BEFORE - 2}" in log
    whole = tmp_path / "whole"
    recipes.train(name, recipes.keys_of(name, checkpoint, whole))
    resumed, expected = (
        load_file(run / "adapter_model.safetensors") for run in (tmp_path / "run", whole / "run")
    )
    error = relative_error(resumed, expected)
    figures.add("adapter after kill and resume", name, error, "of norm", "< 0.05")
    assert error < 0.05


def test_a_judge_on_the_gpu_grades_as_on_the_cpu(
    folder: Path, tmp_path: Path, figures: Figures
) -> None:
    """In float32, without the calibration, which is that of bfloat16."""
    trained, run = _short_run("hieval_stage1", folder).folder, tmp_path / "run"
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
def test_several_gpus_take_the_steps_of_one(folder: Path, tmp_path: Path, figures: Figures) -> None:
    """In float32 without dropout, as ``torchrun`` starts them."""
    checkpoint = str(folder / recipes.family_of("hieval_stage1"))
    adapters = []
    for processes in (1, PROCESSES):
        home = tmp_path / str(processes)
        keys = recipes.keys_of("hieval_stage1", checkpoint, home)
        keys += ["run.precision=fp32", "adapter.dropout=0.0", "optim.lr=1e-3"]
        launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", str(processes))
        _python("-m", *launcher, "-m", "train.hieval_stage1", *keys)
        adapters.append(load_file(home / "run" / "adapter_model.safetensors"))
    error = relative_error(*adapters)
    figures.add("adapter", f"{PROCESSES} processes against 1", error, "of norm", "< 0.01")
    assert error < 0.01


def _engine(backbone: Backbone) -> TreeEngine:
    return TreeEngine(TreeModel(backbone.model), backbone.tokenizer.pad_token_id)


def _prompts(backbone: Backbone, requests: list[JudgeRequest]) -> list[EncodedPrompt]:
    task = get_task("hieval-qs")
    return Encoder(backbone, shows_all_pictures=True).encode(
        [(task, request) for request in requests]
    )


def _tokens(text: Any) -> tuple[int, ...]:
    assert isinstance(text, GeneratedText)
    return text.tokens


def _request_of(name: str) -> JudgeRequest:
    """Return a request that the judge of a recipe takes, with a short critique."""
    [row, *_] = recipes.rows_of_recipe(name, "test")
    if recipes.script_of_recipe(name) == "bradley_terry":
        return each_response(row)[0]
    fields: dict[str, Any] = {"critique_tokens": 4}
    if name.endswith("pure_label"):
        fields = {"task": "truthful-pure-label", "mode": "score"}
    return JudgeRequest.model_validate({**row.request().model_dump(exclude_unset=True), **fields})


def _python(*arguments: str, on_cpu: bool = False, status: int = 0) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if on_cpu or REHEARSAL:
        environment |= {"CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == status, done.stderr[-3000:]
    return done.stdout
