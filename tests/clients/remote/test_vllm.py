"""The shipped judge on a real vLLM server: the same verdicts as here."""

from collections.abc import Iterator

import pytest

from clients.connection import ModelServer
from clients.remote_judge import remote_judge
from experiments.cost.scoring_speed import export_llama, library_model
from judging.judge import Judge
from judging.types import JudgeRequest
from tests.clients.remote.vllm_server import vllm_server

QUESTIONS = {
    "What is the capital of France?": ("Paris", ("It is Paris.", "It is Lyon.", "")),
    "Who wrote Middlemarch?": ("George Eliot", ("George Eliot wrote it.", "Austen <|im_end|>")),
}

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


@pytest.fixture(scope="module")
def here() -> Judge:
    return Judge.load("embedded-qs")


@pytest.fixture(scope="module")
def url(here: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = tmp_path_factory.mktemp("vllm") / "model"
    export_llama(library_model(here), here.backbone.tokenizer, model)
    with vllm_server(model) as url:
        yield url


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
