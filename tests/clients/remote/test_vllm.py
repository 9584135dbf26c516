"""The shipped judge on a real vLLM server: the same verdicts as here."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from clients.connection import ModelServer
from clients.remote_judge import remote_judge
from experiments.cost.scoring_speed import export_llama, library_model
from judging import Judge, JudgeRequest

PYTHON = Path(__file__).parents[3] / ".venv-vllm" / "bin" / "python"
START_S = 240
QUESTIONS = {
    "What is the capital of France?": ("Paris", ("It is Paris.", "It is Lyon.", "")),
    "Who wrote Middlemarch?": (
        "George Eliot",
        ("George Eliot wrote it.", "Austen <|im_end|>"),
    ),
}

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


@pytest.fixture(scope="module")
def here() -> Judge:
    return Judge.load("embedded-qs")


@pytest.fixture(scope="module")
def url(here: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not PYTHON.is_file():
        pytest.skip("no vLLM environment: make vllm")
    folder = tmp_path_factory.mktemp("vllm")
    export_llama(library_model(here), here.backbone.tokenizer, folder / "model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        # The CPU build's own command does not find its version.
        *(str(PYTHON), "-P", "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(folder / "model"), "--served-model-name", "qs"),
        *("--host", "127.0.0.1", "--port", str(port), "--dtype", "bfloat16", "--enforce-eager"),
        *("--max-model-len", "1024", "--gpu-memory-utilization", "0.3"),
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as it:
        try:
            until = time.monotonic() + START_S
            while not answers(f"http://127.0.0.1:{port}/health"):
                if it.poll() is not None or time.monotonic() > until:
                    pytest.fail((folder / "log").read_text()[-3000:])
                time.sleep(1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            it.terminate()


def answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=2).is_success
    except httpx.HTTPError:
        return False


def test_the_verdicts_are_those_of_the_tree_engine(url: str, here: Judge) -> None:
    there = remote_judge(ModelServer(url, "qs"), "embedded-qs")
    requests = [
        JudgeRequest(
            question=question, references=(reference,), reference_mode="any", responses=(response,)
        )
        for question, (reference, responses) in QUESTIONS.items()
        for response in responses
    ]
    too_long = requests[0].model_copy(update={"question": "why " * 1200})
    *found, refused = there.grade([*requests, too_long])
    assert refused.status == "judge_error"
    for one, other in zip(found, here.grade(requests), strict=True):
        assert (one.label, one.status, one.posterior) == (
            other.label,
            other.status,
            other.posterior,
        )
        # Two implementations in bfloat16, which keeps three digits of every product.
        assert one.probabilities == pytest.approx(other.probabilities, abs=0.03)
