"""Training runs on published weights: planned, shared out, killed, exported, pushed, loaded."""

import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from cli.main import app
from clients.connection import ModelServer
from clients.remote_judge import remote_judge
from judging.judge import Judge
from judging.tasks import get_task
from tests.clients.remote.vllm_server import vllm_server
from tests.forks import ROOT, run_together
from tests.judging.made_up import ask
from tests.judging.scoring.made_up import TEXT_ONLY, TOLERANCE
from tests.real_weights.made_up import MARKS, NAME, report
from tests.tiny import brute_force
from tests.train.loop import together
from tests.train.made_up import examples, recipe, steps_of, trainer, write_recipe
from tests.train.plan.measured import ROWS as ROWS_OF_PASS
from tests.train.plan.measured import long_rows, peak_of_step, planned_and_resident, planned_step
from tests.upload_hub import upload_hub

pytestmark = MARKS
ADAPTER = "adapter_model.safetensors"
STEPS = 4


def _write_run(folder: Path) -> list[str]:
    """Write a recipe of a few steps; return the command that trains it."""
    folder.mkdir()
    steps = {"optim__epochs": 2, "optim__max_steps": STEPS, "run__save_every": 1}
    path = write_recipe(folder, NAME, optim__lr=1e-3, run__select="last", **steps)
    return [sys.executable, "-m", "train.hieval_stage1", "--config", str(path)]


def _train(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of a few steps."""
    folder = tmp_path_factory.mktemp("whole") / "made"
    _train(_write_run(folder))
    return folder / "run"


def test_a_killed_run_goes_on_to_the_same_adapter(run: Path, tmp_path: Path) -> None:
    command = _write_run(tmp_path / "made")
    output = tmp_path / "made" / "run"
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not list(output.glob("checkpoint-000002")):
            time.sleep(0.05)
        process.kill()
    assert process.returncode == -signal.SIGKILL and not (output / ADAPTER).exists()
    _train(command)
    assert (output / ADAPTER).read_bytes() == (run / ADAPTER).read_bytes()


def test_two_processes_take_the_steps_of_one(tmp_path: Path) -> None:
    single, pair = tmp_path / "one", tmp_path / "two"
    single.mkdir()
    pair.mkdir()
    run_together(1, together.take_steps, NAME, single, 4, 10_000, False)
    run_together(2, together.take_steps, NAME, pair, 4, 10_000, False)
    with safe_open(pair / "after.safetensors", "pt") as file:
        assert file.metadata()["processes"] == "2"
    one, two = (load_file(folder / "after.safetensors") for folder in (single, pair))
    one.pop("scores"), two.pop("scores")
    assert one.keys() == two.keys()
    moved = {name: tensor for name, tensor in one.items() if "lora_B" in name}  # zero at first
    apart = torch.stack([(two[name] - tensor).norm() for name, tensor in moved.items()]).norm()
    norm = torch.stack([tensor.norm() for tensor in moved.values()]).norm()
    report(f"two processes: {STEPS - 1} steps, adapters {apart / norm:.1e} of their norm apart")
    assert norm > 1e-3
    assert apart < 1e-4 * norm


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_step_takes_what_was_planned(precision: str, tmp_path: Path) -> None:
    settings = recipe(tmp_path / "run", run__precision=precision)
    rows = long_rows(8, 60)
    learner = trainer(settings, NAME, rows, rows[:2])
    planned = planned_step(settings, learner.rows.train.encoder, rows).total
    measured = peak_of_step(learner, [list(range(ROWS_OF_PASS))], tmp_path)
    report(f"{precision}: planned {planned / 2**30:.2f} GiB, measured {measured / 2**30:.2f} GiB")
    assert planned == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("words", [60, 270])
def test_a_process_takes_what_was_planned(words: int, tmp_path: Path) -> None:
    planned, resident = planned_and_resident(NAME, words, tmp_path)
    report(f"{words} words: planned {planned / 2**30:.2f} GiB, resident {resident / 2**30:.2f}")
    assert planned == pytest.approx(resident, rel=0.15)


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="no bitsandbytes here")
def test_an_adapter_learns_on_weights_of_four_bits(tmp_path: Path) -> None:
    """Three steps of the same rows: the losses stay near those on whole weights."""
    rows, losses, sizes = examples(24), [], []
    for quantization in (None, "nf4"):
        settings = recipe(
            tmp_path / str(quantization),
            run__precision="bf16",
            run__quantization=quantization,
            optim__lr=1e-3,
            optim__epochs=1,
        )
        learner = trainer(settings, NAME, rows)
        frozen = [p for p in learner.tree_model.parameters() if not p.requires_grad]
        sizes.append(sum(p.numel() * p.element_size() for p in frozen))
        losses.append([learner.train_step(step) for step in steps_of(learner.plan)])
        learner.free_memory()
    of_plain, of_four = (", ".join(f"{loss:.3f}" for loss in each) for each in losses)
    report(
        f"weights {sizes[0] / 2**20:.0f} MiB in bfloat16, {sizes[1] / 2**20:.0f} MiB in NF4; "
        f"losses of three steps {of_plain} and {of_four}"
    )
    assert sizes[1] < 0.6 * sizes[0]  # the embedding stays whole
    assert losses[1] == pytest.approx(losses[0], rel=0.5, abs=0.1)


@pytest.fixture(scope="module")
def merged(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "merged"
    done = CliRunner().invoke(app, ["export", str(run), "--merged", str(folder)])
    assert done.exit_code == 0, done.output
    report(done.stdout.strip())
    return folder


def test_transformers_alone_scores_an_export_as_the_judge_does(run: Path, merged: Path) -> None:
    """Nothing but the folder's files and the library; both compute in float32."""
    judge = Judge.load(str(run), device="cpu")  # rounds its weights as the export does
    judge.backbone.model.float()
    requests = [each.model_copy(update={"reference_mode": "any"}) for each in TEXT_ONLY]
    task, tokenizer = get_task("hieval-qs"), AutoTokenizer.from_pretrained(str(merged))
    model = AutoModelForCausalLM.from_pretrained(str(merged), dtype=torch.float32).eval()
    labels = [tokenizer.encode(f"{label}<|im_end|>") for label in task.labels("plain/any")]
    expected = []
    for prompt in judge.encoder.encode([(task, request) for request in requests]):
        turns = [{"role": turn.role, "content": turn.text} for turn in prompt.messages]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        ids = tuple(tokenizer.encode(text))
        with torch.inference_mode():
            scores = [brute_force(model, ids, label, {}) for label in labels]
        expected.append(torch.tensor(scores).log_softmax(0).tolist())
    apart = abs(judge.logprobs(requests) - expected).max()
    report(f"export: labels at most {apart:.1e} nats from the judge's")
    assert apart < TOLERANCE["atol"]


@pytest.mark.vllm
def test_vllm_gives_the_verdicts_of_the_judge(run: Path, merged: Path) -> None:
    requests = [example.request() for example in examples(24)]
    here = Judge.load(str(run), device="cpu")
    with vllm_server(merged) as url:
        there = list(remote_judge(ModelServer(url, "qs"), str(run)).grade(requests))
    apart = []
    for one, other in zip(there, here.grade(requests), strict=True):
        assert (one.label, one.status, one.posterior) == (
            other.label,
            other.status,
            other.posterior,
        )
        assert one.probabilities == pytest.approx(other.probabilities, abs=0.03)
        apart += [abs(one.probabilities[each] - p) for each, p in other.probabilities.items()]
    report(f"vLLM: {len(requests)} verdicts alike, probabilities at most {max(apart):.3f} apart")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("HF_TOKEN", "hf_" + "s" * 34)


@pytest.mark.usefixtures("stub")
def test_a_pushed_judge_scores_the_same_when_it_comes_back(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with upload_hub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        done = CliRunner().invoke(app, ["push", str(run), "lab/judge"])
        assert done.exit_code == 0, done.output
    back = tmp_path / "back"
    back.mkdir()
    for name, content in hub.files.items():
        (back / name).write_bytes(content)
    request = ask(reference_mode="any")
    scores = [Judge.load(str(each), device="cpu").logprobs([request]) for each in (run, back)]
    assert (scores[0] == scores[1]).all()
