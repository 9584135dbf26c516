"""The openai SDK against the service, with nothing but base URL and model name changed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from judging.judge import Judge
from serve.calls.limits import Limits
from serve.chat.contract import CHAT_CONTRACTS
from tests.conftest import Folders
from tests.serve.chat.made_up import KnowingJudge, body, qa
from tests.serve.made_up import picture
from tests.serve.sockets import serving_judges, wait_until


def client(address: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="any", **({"max_retries": 0} | options))


@pytest.fixture(scope="module")
def sdk(address: str) -> Iterator[openai.OpenAI]:
    with client(address) as made:
        yield made


def test_a_verdict(sdk: openai.OpenAI) -> None:
    reply = sdk.chat.completions.create(
        **qa("The capital of France is Paris."), logprobs=True, top_logprobs=2, temperature=0
    )
    [choice] = reply.choices
    assert choice.message.content == "GRADE: C"
    assert choice.logprobs and choice.logprobs.content
    chances = {top.token: math.exp(top.logprob) for top in choice.logprobs.content[1].top_logprobs}
    assert chances == pytest.approx({"C": 0.899, "I": 0.101})
    assert reply.usage and reply.usage.total_tokens > 10
    assert reply.model == "custos/qa@knowing"
    assert reply.system_fingerprint == "knowing/hieval-qs"
    assert [model.id for model in sdk.models.list()][-1] == "gpt-4o"
    assert sdk.models.retrieve("gpt-4o").owned_by == "custos"


def test_streams(sdk: openai.OpenAI) -> None:
    contract = CHAT_CONTRACTS.get("truthful-pair")
    fields = body(contract, contract.layouts[0])
    chunks = list(
        sdk.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True})
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.startswith("<critique>Because") and "<label>A</label>" in text
    assert len(chunks) > 4
    assert chunks[-1].choices == []
    assert chunks[-1].usage and chunks[-1].usage.completion_tokens > 5


def test_errors_are_the_sdk_s_own(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.chat.completions.create(**(qa("x") | {"model": "gpt-5"}))
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.UnprocessableEntityError, match="more than one way"):
        sdk.chat.completions.create(**qa("Rome\n***\n[Criterion]: Rome"))
    for stream in (False, True):
        with pytest.raises(openai.InternalServerError) as broken:
            sdk.chat.completions.create(**qa("break"), stream=stream)
        assert broken.value.request_id


def test_refusals_are_not_repeated(address: str, judge: KnowingJudge) -> None:
    with client(address, max_retries=5) as patient, pytest.raises(openai.UnprocessableEntityError):
        patient.chat.completions.create(**qa("x"), n=9)


def test_a_burst_of_32_that_never_waits_is_held() -> None:
    """VLMEvalKit sends 32 at once and does not read Retry-After: nothing may be turned away."""
    with serving_judges({"slow": KnowingJudge()}) as address, client(address) as sdk:

        def ask(number: int) -> Any:
            response = "The capital of France is Paris." if number % 2 else f"Rome {number}"
            return sdk.chat.completions.create(**qa(response)).choices[0].message.content

        with ThreadPoolExecutor(32) as pool:
            replies = list(pool.map(ask, range(64)))
    assert replies == ["GRADE: I", "GRADE: C"] * 32


def test_a_full_queue_is_429_and_the_sdk_waits_for_it() -> None:
    judge = KnowingJudge()
    judge.gate.clear()
    with (
        serving_judges({"k": judge}, limits=Limits(queue_requests=1)) as address,
        client(address) as hasty,
        client(address, max_retries=8) as patient,
        ThreadPoolExecutor(8) as pool,
    ):
        ask: Any = hasty.chat.completions.create
        keep_asking: Any = patient.chat.completions.create
        try:
            calls = [pool.submit(ask, **qa("first"))]
            wait_until(lambda: judge.batches != [])
            calls += [pool.submit(ask, **qa(f"x{number}")) for number in range(3)]
            wait_until(lambda: sum(call.done() for call in calls) == 2)  # one waits, two may not
            late = pool.submit(keep_asking, **qa("late"))
        finally:
            judge.gate.set()
        errors = [error for call in calls if (error := call.exception(timeout=30)) is not None]
        assert len(errors) == 2
        for error in errors:
            assert isinstance(error, openai.RateLimitError)
            assert 1 <= int(error.response.headers["retry-after"]) <= 60
        assert late.result(timeout=60).choices[0].message.content == "GRADE: I"


def test_a_plain_backbone_writes_freely(tiny_folders: Folders) -> None:
    judge = Judge.load(tiny_folders("qwen2_5_vl"), dtype="float32", device="cpu")
    image: Any = {"type": "image_url", "image_url": {"url": picture((30, 20))}}
    messages: list[Any] = [
        {"role": "system", "content": "Count."},
        {"role": "user", "content": [image, {"type": "text", "text": "How many boats?"}]},
    ]
    with serving_judges({"tiny": judge}) as address, client(address) as sdk:
        fields: dict[str, Any] = {"model": "tiny", "messages": messages, "seed": 3, "max_tokens": 9}
        reply = sdk.chat.completions.create(**fields)
        streamed = sdk.chat.completions.create(**fields, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed)
        assert reply.choices[0].message.content == text
        assert reply.choices[0].finish_reason == "length"
        assert reply.usage and reply.usage.completion_tokens == 9
        assert reply.usage.prompt_tokens > 10
        assert (reply.model, reply.system_fingerprint) == ("tiny", judge.identity)
        for refused in ({"stop": ["a", "b"]}, {"logprobs": True}, {"presence_penalty": 1}):
            with pytest.raises(openai.UnprocessableEntityError):
                sdk.chat.completions.create(**fields, **refused)


@pytest.mark.usefixtures("embedded")
def test_the_shipped_judge_grades_a_harness_s_prompts() -> None:
    judge = Judge.load("embedded-qs")
    question, reference = "What is the capital of France?", "Paris"
    with serving_judges({"embedded-qs": judge}) as address, client(address) as sdk:
        for response, grade in (("The capital is Paris.", "C"), ("It is Rome.", "I")):
            fields = qa(
                response, question=question, reference=reference, logprobs=True, top_logprobs=2
            )
            reply = sdk.chat.completions.create(**fields)
            [choice] = reply.choices
            assert choice.message.content == f"GRADE: {grade}"
            assert choice.logprobs and choice.logprobs.content
            assert choice.logprobs.content[1].logprob > math.log(0.5)
        assert reply.model == "custos/qa@embedded-qs"
        with pytest.raises(
            openai.UnprocessableEntityError, match="not a known prompt of inspect_ai"
        ):
            prompt = fields["messages"][0]["content"].replace("one of CI", "one of CPI")
            sdk.chat.completions.create(
                model="custos/qa", messages=[{"role": "user", "content": prompt}]
            )
