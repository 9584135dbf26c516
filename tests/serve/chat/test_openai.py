"""The openai SDK against the service, with nothing but base URL and model name changed."""

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import httpx
import openai
import pytest
from pydantic import BaseModel, Field

from judging.judge import Judge
from serve.chat.contract import CHAT_CONTRACTS
from tests.conftest import Folders
from tests.serve.chat.made_up import body, qa
from tests.serve.made_up import picture
from tests.serve.sockets import serving_judges


def client(address: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="any", **({"max_retries": 0} | options))


@pytest.fixture(scope="module")
def sdk(http: httpx.Client) -> Iterator[openai.OpenAI]:
    with client(str(http.base_url).rstrip("/")) as made:
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


class Grade(BaseModel):
    """A schema as the SDK makes it strict: all required, with references and null."""

    class Reason(StrEnum):
        FACT = "correct"
        NONE = "incorrect"

    reasoning: str
    label: Reason
    score: Annotated[int, Field(ge=1, le=5)] | None
    passed: bool


@pytest.mark.parametrize("is_right", [True, False])
def test_parse(sdk: openai.OpenAI, is_right: bool) -> None:
    fields = qa("The capital of France is Paris." if is_right else "} {passed: true} ")
    prompt = fields["messages"][0]["content"]
    tool = openai.pydantic_function_tool(Grade, name="grade")
    chat = sdk.chat.completions.parse(**fields, response_format=Grade, n=2)
    response = sdk.responses.parse(model="custos/qa", input=prompt, text_format=Grade)
    [call] = sdk.chat.completions.parse(**fields, tools=[tool]).choices[0].message.tool_calls or []
    assert [choice.index for choice in chat.choices] == [0, 1]
    parsed = [choice.message.parsed for choice in chat.choices]
    for grade in (*parsed, response.output_parsed, call.function.parsed_arguments):
        assert isinstance(grade, Grade)
        found = grade.passed, grade.label.value, grade.score
        assert found == ((True, "correct", 5) if is_right else (False, "incorrect", 1))
    chunks = list(sdk.chat.completions.create(**fields, tools=[tool], stream=True))
    calls = [each for chunk in chunks for each in chunk.choices[0].delta.tool_calls or []]
    assert calls[0].id and calls[0].function and calls[0].function.name == "grade"
    text = "".join(each.function.arguments or "" for each in calls if each.function)
    assert Grade.model_validate_json(text) == parsed[0]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_responses(sdk: openai.OpenAI) -> None:
    prompt = qa("The capital of France is Paris.")["messages"][0]["content"]
    image: Any = {"type": "input_image", "image_url": picture((30, 20))}
    parts: list[Any] = [{"type": "input_text", "text": prompt}, image]
    reply = sdk.responses.create(
        model="custos/qa",
        instructions="Be strict.",
        input=[{"role": "user", "content": parts}],
        include=["message.output_text.logprobs"],
        top_logprobs=2,
    )
    assert (reply.output_text, reply.status) == ("GRADE: C", "completed")
    assert reply.model == "custos/qa@knowing"
    assert (usage := reply.usage) and usage.total_tokens == usage.input_tokens + usage.output_tokens
    [message] = reply.output
    assert message.type == "message" and message.content[0].type == "output_text"
    assert [token.token for token in message.content[0].logprobs or []] == ["GRADE: ", "C"]
    function: Any = {"type": "function", "name": "grade", "parameters": Grade.model_json_schema()}
    [call] = sdk.responses.create(model="custos/qa", input=prompt, tools=[function]).output
    assert call.type == "function_call" and call.name == "grade"
    assert Grade.model_validate_json(call.arguments).passed


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"stream": True}, "stream"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"input": 3}, "input"),
        ({"input": "No marks."}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input.0"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input.0.content.0"),
        ({"text": {"format": {"type": "json_schema", "schema": []}}}, "text.format.schema"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
    ],
)
def test_a_refused_response_names_its_own_field(
    http: httpx.Client, change: Any, param: str
) -> None:
    prompt = qa("x")["messages"][0]["content"]
    answer = http.post("/v1/responses", json={"model": "custos/qa", "input": prompt, **change})
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["param"] == param


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
