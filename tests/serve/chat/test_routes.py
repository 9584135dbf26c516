"""The routes, over a socket."""

import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from clients.connection import RequestRefused
from judging import JudgeRequest, Verdict
from serve.calls.limits import Limits
from serve.chat.contract import CHAT_CONTRACTS, Contract, PromptLayout
from serve.queue.service import Service
from tests.serve.chat.made_up import (
    CASE_IDS,
    CASES,
    URL,
    KnowingJudge,
    ask,
    body,
    qa,
    refused,
    text_of,
    user,
)
from tests.serve.made_up import FakeJudge, picture
from tests.serve.sockets import serving


def chunks(http: httpx.Client, request_body: Any) -> list[dict[str, Any]]:
    answer = http.post(URL, json={**request_body, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, done = filter(None, answer.iter_lines())  # which ends lines at U+2028 and U+0085 too
    assert done == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.mark.parametrize(("contract", "layout"), CASES, ids=CASE_IDS)
def test_every_harness_gets_a_reply_it_can_read(
    http: httpx.Client, contract: Contract, layout: PromptLayout
) -> None:
    best = next(iter(layout.words.values()))
    for right in (True, False):
        request_body = body(contract, layout, right=right)
        reply = ask(http, request_body)
        word = contract.parse(layout, text_of(reply))
        assert (word == best) is right, reply
        assert reply["model"] == f"custos/{contract.name}@knowing"
        assert reply["system_fingerprint"] == f"knowing/{contract.task}"
        assert reply["usage"]["total_tokens"] > reply["usage"]["prompt_tokens"] > 3
        streamed = chunks(http, request_body)
        deltas = [item["choices"][0]["delta"].get("content", "") for item in streamed]
        assert "".join(deltas) == text_of(reply)
        assert streamed[0]["choices"][0]["delta"]["role"] == "assistant"
        assert streamed[-1]["choices"][0]["finish_reason"] == "stop"
        assert {item["model"] for item in streamed} == {reply["model"]}


def test_the_form_of_the_replies(http: httpx.Client) -> None:
    replies = {
        contract.name: text_of(ask(http, body(contract, contract.layouts[0])))
        for contract in CHAT_CONTRACTS
        if contract.name != "truthful-pair"
    }
    correct, passed = (
        f"The label is {label}, with a confidence of 0.90." for label in ("Correct", "Pass")
    )
    objects = {name: json.loads(text) for name, text in replies.items() if text[0] == "{"}
    del objects["simplevqa-chinese"]
    assert objects == {
        "deepeval-geval": {"score": 9, "reason": passed},
        "hle": {
            **{"extracted_final_answer": correct, "reasoning": correct, "correct": "yes"},
            **{"confidence": 100, "strict": True},
        },
        "mlflow-correctness": {"result": "yes", "rationale": correct},
        "mlflow-judge": {"result": True, "rationale": passed},
        "openevals": {"reasoning": correct, "score": True},
        "promptfoo-factuality": {"category": "C", "reason": correct},
        "promptfoo-geval": {"score": 9, "reason": passed},
        "promptfoo-rubric": {"pass": True, "score": pytest.approx(0.9, abs=0.01), "reason": passed},
        "ragas-answer-accuracy": {"rating": 4},
    }
    assert {name: text for name, text in replies.items() if name not in objects} == {
        "chartom": "Correct",
        "chartom-mind": "Named",
        "charthal": "Score: 1",
        "compass-verifier": "A",
        "lmms-eval": "1",
        "mathverse": "1",
        "mmvet": "1.0",
        "promptfoo-closedqa": "Y",
        "ragas-answer-accuracy-old": "4",
        "qa": "GRADE: C",
        "qa-partial": "GRADE: C",
        "simpleqa": "A",
        "simplevqa": "A",
        "simplevqa-chinese": '{"预测答案0": "正确"}',
    }


@pytest.mark.parametrize("name", [item.name for item in CHAT_CONTRACTS if item.steps])
def test_the_steps_of_a_criterion_are_the_criterion(
    http: httpx.Client, judge: KnowingJudge, name: str
) -> None:
    contract = CHAT_CONTRACTS.get(name)
    assert contract.steps
    criterion = 'is "short", {and}\nplain'
    num_seen = len(judge.seen)
    layout = replace(contract.steps, sample=replace(contract.steps.sample, criterion=criterion))
    text = text_of(ask(http, {**body(contract, layout), **contract.body}))
    assert json.loads(text) == {"steps": [criterion]}
    assert re.findall(r'\{"steps".+\}', text) == [text]  # how promptfoo finds it
    assert text.count("{") == text.count("}") == 1
    assert len(judge.seen) == num_seen
    forged = replace(layout, sample=replace(layout.sample, criterion=f"a{layout.template}b"))
    refused(http, body(contract, forged))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_reply_without_room_for_text_says_in_a_header_that_it_was_not_measured(
    http: httpx.Client, is_streamed: bool
) -> None:
    answer = http.post(URL, json=qa("It is Paris.", stream=is_streamed))
    assert answer.status_code == 200
    assert answer.headers["X-Not-Measured"].endswith(" on hieval-qs")


def test_a_critique_cannot_speak_for_the_judge(http: httpx.Client) -> None:
    contract = CHAT_CONTRACTS.get("truthful-pair")
    text = text_of(ask(http, body(contract, contract.layouts[0])))
    assert "‹label›B‹/label›" in text
    assert text.count("<label>") == 1
    assert text.endswith("<label>A</label>\n<confidence>0.90</confidence>")
    assert contract.parse(contract.layouts[0], text) == "A"


def test_log_probabilities_are_the_labels(http: httpx.Client) -> None:
    reply = ask(http, qa("The capital of France is Paris.", logprobs=True, top_logprobs=5))
    before, label = reply["choices"][0]["logprobs"]["content"]
    assert (before["token"], before["logprob"]) == ("GRADE: ", 0.0)
    assert label["token"] == "C"
    probabilities = {item["token"]: math.exp(item["logprob"]) for item in label["top_logprobs"]}
    assert probabilities.keys() == {"C", "I"}
    assert math.fsum(probabilities.values()) == pytest.approx(1)
    assert math.exp(label["logprob"]) == pytest.approx(probabilities["C"])
    assert label["bytes"] == list(b"C")
    entries = ask(http, qa("x", logprobs=True, top_logprobs=1))["choices"][0]["logprobs"]["content"]
    assert [top["token"] for top in entries[1]["top_logprobs"]] == ["I"]
    assert ask(http, qa("x"))["choices"][0]["logprobs"] is None


def test_empty_responses_are_decided_by_rule(http: httpx.Client) -> None:
    reply = ask(http, qa("", logprobs=True))
    assert text_of(reply) == "GRADE: I"
    assert reply["choices"][0]["logprobs"]["content"][1]["logprob"] == 0.0
    pair = CHAT_CONTRACTS.get("truthful-pair")
    prompt = pair.layouts[0].template.format(question="q", response_a="", response_b="b")
    error = refused(http, {"model": "custos/truthful-pair", "messages": user(prompt)})
    assert error["message"] == "no verdict: a response is empty"


def test_a_refusal_by_the_judge_has_the_status_of_the_script(
    http: httpx.Client, judge: KnowingJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "backbone", SimpleNamespace(**vars(judge.backbone) | {"context": 2}))
    for name, status in (("simpleqa", 400), ("qa", 422)):
        contract = CHAT_CONTRACTS.get(name)
        answer = http.post(URL, json=body(contract, contract.layouts[0]))
        assert answer.status_code == status
        assert "the prompt has more than" in answer.text


def test_what_the_server_of_a_model_refuses_is_no_fault_of_the_service(
    http: httpx.Client, judge: KnowingJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verdict_on(asked: JudgeRequest, _: float) -> Verdict:
        return Verdict.from_error(RequestRefused("longer than --max-model-len"), asked)

    monkeypatch.setattr(judge, "verdict_on", verdict_on)
    assert "the judge could not grade this" in refused(http, qa("Paris"))["message"]


def test_json_replies_hold_the_word_alone(http: httpx.Client) -> None:
    options: Any = {"response_format": {"type": "json_object"}}
    lmms = CHAT_CONTRACTS.get("lmms-eval")
    assert text_of(ask(http, body(lmms, lmms.layouts[0], **options))) == '{"score": 1}'
    pair = CHAT_CONTRACTS.get("truthful-pair")
    for contract in (pair, CHAT_CONTRACTS.get("qa")):  # whose scripts read no object
        sent = body(contract, contract.layouts[0], **options)
        assert refused(http, sent)["param"] == "response_format"
    asked = body(lmms, lmms.layouts[0], **options)
    asked["messages"].insert(0, {"role": "system", "content": 'Reply {"pass": true, "score": 1}'})
    assert "pass, score" in refused(http, asked)["message"]


def test_pictures_and_seed_reach_the_judge(http: httpx.Client, judge: KnowingJudge) -> None:
    image = {"type": "image_url", "image_url": {"url": picture((30, 20)), "detail": "low"}}
    pair = CHAT_CONTRACTS.get("truthful-pair")
    parts = [image, {"type": "text", "text": pair.layouts[0].payload(right=True)}]
    ask(http, {"model": "custos/truthful-pair", "messages": user(parts), "seed": 7})
    request = judge.seen[-1]
    assert (len(request.images), request.seed, request.order) == (1, 7, "both")


def test_alternatives_and_sets_of_references_have_one_form(
    http: httpx.Client, judge: KnowingJudge
) -> None:
    for name, reference, references, mode in (
        ("qa", "George Eliot <OR> Mary Ann", ("George Eliot", "Mary Ann"), "any"),
        ("qa", "Malia <AND> Sasha", ("Malia", "Sasha"), "all"),
        ("qa", "Eliot; Evans", ("Eliot; Evans",), "any"),
        # Scripts that read partial credit have it for alternatives.
        ("qa-partial", "A B <OR> C", ("A B", "C"), "any-partial"),
        ("qa-partial", "A B <AND> C", ("A B", "C"), "all"),
        ("mmvet", "Malia <AND> Sasha", ("Malia", "Sasha"), "all"),
    ):
        [layout, *_] = CHAT_CONTRACTS.get(name).layouts
        texts = {"question": "Who?", "reference": reference, "response": "A"}
        prompt = f"{' '.join(layout.cues)}\n{layout.filled(layout.template, texts)}"
        ask(http, {"model": f"custos/{name}", "messages": user(prompt)})
        assert (judge.seen[-1].references, judge.seen[-1].reference_mode) == (references, mode)


def test_a_lone_system_message_is_the_prompt(http: httpx.Client) -> None:
    sent = qa("The capital of France is Paris.")
    sent["messages"][0]["role"] = "system"
    assert text_of(ask(http, sent)) == "GRADE: C"


def test_the_contract_of_another_s_prompt_is_named(http: httpx.Client) -> None:
    partial = CHAT_CONTRACTS.get("qa-partial")
    sent = {**body(partial, partial.layouts[0]), "model": "custos/qa"}
    assert "custos/qa-partial reads it" in refused(http, sent)["message"]
    simpleqa = CHAT_CONTRACTS.get("simpleqa")
    sent = {**body(simpleqa, simpleqa.layouts[0]), "model": "knowing"}
    assert "custos/simpleqa@knowing asks it" in refused(http, sent, 404)["message"]
    sent = {**qa("x"), "model": "knowing"}
    assert "custos/qa@knowing asks it" in refused(http, sent, 404)["message"]


def test_simple_evals_would_send_for_ever_after_422(http: httpx.Client) -> None:
    simpleqa = CHAT_CONTRACTS.get("simpleqa")
    sent = {**body(simpleqa, simpleqa.layouts[0]), "messages": user("No marks.")}
    assert refused(http, sent, 400)["param"] == "messages"


@pytest.mark.parametrize("text", ["hello", "Hello!", "ping"])
def test_probes_are_answered(http: httpx.Client, text: str) -> None:
    """Under the true name of the model that an alias stands for."""
    reply = ask(http, {"model": "gpt-4o", "messages": user(text), "max_tokens": 2048})
    assert text_of(reply) == "Hello, this is custos/qa@knowing."
    assert reply["model"] == "custos/qa@knowing"


def test_models(http: httpx.Client) -> None:
    listed = http.get("/v1/models").json()
    roots = {item["id"]: item["root"] for item in listed["data"]}
    assert roots == {
        **{f"custos/{name}": f"custos/{name}@knowing" for name in CHAT_CONTRACTS.names()},
        "gpt-4o": "custos/qa@knowing",
    }
    assert http.get("/v1/models/custos/qa").json()["root"] == "custos/qa@knowing"
    assert http.get("/v1/models/gpt-5").json()["error"]["code"] == "model_not_found"


def test_with_several_judges_the_first_of_the_task_answers_unless_one_is_named() -> None:
    judges = {
        "pairs": KnowingJudge("pairs", ("truthful-pair",)),
        "one": KnowingJudge("one", ("hieval-qs",)),
        "two": KnowingJudge("two", ("hieval-qs",)),
    }
    with serving(Service(judges)) as http:
        assert ask(http, qa("x"))["model"] == "custos/qa@one"
        assert ask(http, {**qa("x"), "model": "custos/qa@two"})["model"] == "custos/qa@two"
        hints = {
            "one": "'one' is a judge, and the model custos/qa@one asks it",
            "qa": "did you mean 'custos/qa'",
            "custos/charthal": ": no judge here takes its task 'charthal'; see",
            "custos/qa@tow": "did you mean 'custos/qa@two'",
        }
        for name in (*hints, "custos/qa@pairs", "custos/nothing"):
            error = refused(http, {**qa("x"), "model": name}, 404)
            assert error["code"] == "model_not_found"
            assert hints.get(name, "GET /v1/models") in error["message"]
        names = {item["id"] for item in http.get("/v1/models").json()["data"]}
        assert {"custos/qa", "custos/qa@one", "custos/qa@two", "custos/truthful-pair"} <= names


def test_of_several_judges_the_one_that_knows_the_contract_best_answers() -> None:
    later, first = KnowingJudge("later"), KnowingJudge("first", ("hieval-qs",))
    calibration: Any = SimpleNamespace(rubrics={"hieval-qs/plain/any": None})
    first.calibration = calibration
    with serving(Service({"later": later, "first": first, "zero": FakeJudge("zero")})) as http:
        assert ask(http, qa("x"))["model"] == "custos/qa@first"
        roots = {item["id"]: item["root"] for item in http.get("/v1/models").json()["data"]}
    assert roots["custos/charthal"] == "custos/charthal@later"
    assert {"custos/qa@first", "custos/qa@later", "custos/qa@zero"} <= roots.keys()


@pytest.mark.parametrize(
    ("change", "param", "says"),
    [
        ({"n": 9}, "n", "less than or equal to 8"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"top_logprobs": 21}, "top_logprobs", "20"),
        ({"seed": -1}, "seed", "0 to"),
        ({"tools": [{}]}, "tools.0.type", "Field required"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": user([{"type": "input_audio"}])}, "messages.0.content.0", "expected tags"),
        ({"messages": user("No marks.")}, "messages", "not a known prompt of inspect_ai"),
        ({"messages": [*user("a"), *user("b")]}, "messages", "one user message"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, "messages", "one user message"),
        (qa("x", question=""), "question", "needs it"),
        (qa("x", reference=""), "references", "needs it"),
    ],
)
def test_errors_name_the_field(http: httpx.Client, change: Any, param: str, says: str) -> None:
    error = refused(http, {**qa("x"), **change})
    assert error["param"] == param
    assert says in error["message"]
    assert error["type"] == "invalid_request_error"


def test_faults_have_a_real_status_and_no_internals(http: httpx.Client) -> None:
    for stream in (False, True):
        error = refused(http, qa("break", stream=stream), 500)
        assert error["type"] == "server_error"
        assert "secret" not in str(error)
    assert refused(http, [], 422)["param"] == "body"
    for sent in (qa("x", n=9), qa("break")):  # which would fail again
        assert http.post(URL, json=sent).headers["x-should-retry"] == "false"


def test_keys_and_deadlines() -> None:
    judge = KnowingJudge()
    with serving(Service({"k": judge}, Limits(deadline_s=0.3)), keys=("s3" * 8,)) as http:
        assert http.post(URL, json=qa("x")).status_code == 401
        assert http.get("/v1/models").status_code == 401
        http.headers["Authorization"] = f"Bearer {'s3' * 8}"
        judge.gate.clear()
        try:
            assert refused(http, qa("x"), 504)["code"] == "deadline_exceeded"
        finally:
            judge.gate.set()


def test_plain_backbones_are_listed_and_adapters_are_not() -> None:
    """Nor is a backbone that is known only by its words: it cannot write freely."""
    far = FakeJudge("far")
    far.engine = SimpleNamespace(posterior="approximate")
    adapter = KnowingJudge("adapter", ("truthful-pair",))
    judges = {"plain": FakeJudge("plain"), "adapter": adapter, "far": far}
    with serving(Service(judges)) as http:
        names = {item["id"] for item in http.get("/v1/models").json()["data"]}
        refused(http, {"model": "far", "messages": user("Go on.")}, 404)
    assert {"plain", "custos/truthful-pair", "custos/qa", "custos/qa@far"} <= names
    assert not {"adapter", "far"} & names
