"""What the keys of a JSON schema or of a tool mean, and what is refused."""

import json
from dataclasses import replace
from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel

from serve.calls.errors import ApiError
from serve.chat.contract import CHAT_CONTRACTS, Label, Score
from serve.chat.slots import Decision
from serve.chat.structured import form_of_schema
from serve.queue.service import Service
from tests.judging.tasks.made_up import declare
from tests.serve.chat.made_up import (
    HIJACK,
    QA,
    THREE,
    TWO,
    KnowingJudge,
    ask,
    body,
    decision,
    filled,
    grounding,
    parts,
    qa,
    refused,
    text_of,
    written,
)
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving

SCALE = {"minimum": 0, "maximum": 10}


def form(contract: Any = QA, root: Any = None, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, **(root or {})}
    return form_of_schema(schema, "s", contract, replace(contract.layouts[0], form=contract.form))


@pytest.mark.parametrize(
    ("part", "right", "wrong"),
    [
        ({"type": "boolean"}, True, False),
        ({"type": ["boolean", "null"]}, True, False),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True, False),
        ({"allOf": [{"$ref": "#/$defs/Yes"}], "description": "x"}, True, False),
        ({"enum": ["no", "yes"]}, "yes", "no"),
        ({"enum": ["FAIL", "PASS"]}, "PASS", "FAIL"),
        ({"enum": ["incorrect", "partially_correct", "correct"]}, "correct", "incorrect"),
        ({"enum": ["I", "C", "P"]}, "C", "I"),
        ({"enum": [True, False]}, True, False),
        ({"type": "integer", **SCALE}, 9, 1),
        ({"type": "number", "minimum": -1, "maximum": 1}, 0.8, -0.8),
        ({"enum": [4, 2, 0]}, 4, 0),
        ({"type": ["string", "null"], "enum": ["pass", "fail", None]}, "pass", "fail"),
        ({"type": "integer", "minimum": 0, "maximum": 1}, 1, 0),
    ],
)
def test_a_verdict_fills(part: Any, right: Any, wrong: Any) -> None:
    root = {"$defs": {"Yes": {"type": "boolean"}}}
    slots = form(score=part, root=root)
    assert filled(slots, decision(0.9)) == {"score": right}
    assert filled(slots, decision(0.1)) == {"score": wrong}


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("hallucinated", {"type": "boolean"}),
        ("is_wrong", {"enum": ["yes", "no"]}),
        ("sentiment", {"enum": ["good", "bad"]}),
        ("severity", {"type": "integer", **SCALE}),
        ("pass", {"const": True}),
        ("pass", {"type": "boolean", "enum": [True]}),
        ("score", {"type": "number"}),
        ("score", {"type": "number", "minimum": 0}),
        ("score", {"type": "number", "minimum": "((", "maximum": 1, "description": "correct"}),
        ("score", {"type": "number", "minimum": 1, "maximum": 1}),
        ("score", {"type": "number", "minimum": 0, "maximum": 1e999}),
        ("score", {"enum": [1]}),
        ("verdict", {"type": "string"}),
        ("verdict", {"enum": ["blue", "green"]}),
        ("verdict", {"enum": ["pass"]}),
        ("verdict", {"type": "array", "items": {"type": "string"}}),
        ("verdict", {"type": "object", "properties": {}}),
        ("verdict", {"anyOf": [{"type": "boolean"}, {"type": "string"}]}),
        ("verdict", {"$ref": "#/$defs/Missing"}),
        ("verdict", {"$ref": "#/$defs/Loop"}),
        ("verdict", {"type": "string", "enum": [["pass"], "fail"]}),
        ("verdict", {"enum": []}),
        ("verdict", {"enum": ["pass", "fail", *map(str, range(99))]}),
        ("verdict", {"type": "boolean", "enum": ["pass", "fail"]}),
        ("score", {"type": "integer", "minimum": -(10**400), "maximum": 10**400}),
        ("score", {"type": "number", "minimum": -1e308, "maximum": 1e308}),
        ("score", {"type": "integer", "enum": [0, 0.5]}),
        ("score", {"type": "integer", "minimum": 0.2, "maximum": 1.8}),
        ("score", {"enum": [0, "1"]}),
        ("answer", {"type": "string"}),
        ("reason", {"type": "string", "pattern": "^x"}),
        ("reason", {"type": "string", "minLength": 2}),
        ("reason", {"type": "string", "maxLength": -3}),
        ("!correct", {"type": "boolean"}),
        ("¬correct", {"type": "boolean"}),
        ("-score", {"type": "boolean"}),
        ("label", {"type": "boolean"}),
        ("category", {"enum": [0, 1]}),
        ("probability", {"type": "number", "minimum": 0, "maximum": 1}),
        ("grade", {"enum": ["A", "B", "C", "I"]}),
        ("status", {"enum": ["ok", None]}),
        ("status", {"const": "passed"}),
        ("error", {"const": "none"}),
        ("verdict", {}),
        ("verdict", "boolean"),
    ],
)
def test_what_nobody_tells_is_refused(key: str, part: Any) -> None:
    root = {"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}
    with pytest.raises(ApiError) as caught:
        form(root=root, **{"pass": {"type": "boolean"}, key: part})
    assert (caught.value.status, caught.value.field) == (422, f"s.properties.{key}")


BOOLEAN, WORD = {"type": "boolean"}, {"enum": ["yes", "no"]}
INTEGER, NUMBER = ({"type": kind, **SCALE} for kind in ("integer", "number"))


@pytest.mark.parametrize(
    ("part", "description", "is_turned"),
    [
        (BOOLEAN, "True if the response contains a hallucination.", True),
        (BOOLEAN, "whether the answer is wrong", True),
        (BOOLEAN, "False if it is correct, true otherwise", True),
        (WORD, "yes when there are mistakes", True),
        (INTEGER, "0 is perfect, 10 is the worst", True),
        (NUMBER, "How wrong the answer is", True),
        (NUMBER, "Lower is better", True),
        (BOOLEAN, "True if the answer is correct, false if it is wrong", False),
        (BOOLEAN, "False if wrong, true if right", False),
        (BOOLEAN, "True if it has no errors", False),
        (INTEGER, "0 is the worst, 10 is the best", False),
        (NUMBER, "Correctness, from 0 (wrong) to 10 (right)", False),
        (NUMBER, "A score", False),
    ],
)
def test_a_description_may_turn_a_neutral_name_round(
    part: Any, description: str, is_turned: bool
) -> None:
    result = {**part, "description": description}
    if is_turned:
        with pytest.raises(ApiError) as caught:
            form(result=result)
        assert caught.value.field == "s.properties.result"
        return
    right, wrong = (filled(form(result=result), decision(p))["result"] for p in (0.9, 0.1))
    assert right > wrong


def test_a_script_s_letters_are_no_school_grades() -> None:
    """On that scale the script's word for a wrong answer, B, would be a good grade."""
    simpleqa = CHAT_CONTRACTS.get("simpleqa")
    with pytest.raises(ApiError):
        form(contract=simpleqa, grade={"enum": [*"ABCDF"]})
    words = {"Correct": "A", "Incorrect": "B", "Not attempted": "C"}
    assert form(contract=simpleqa, grade={"enum": [*"ABC"]}) == {"grade": Label(words)}


def test_the_schema_s_scale_goes_before_the_script_s() -> None:
    ragas, rubric = CHAT_CONTRACTS.get("ragas-answer-accuracy"), "promptfoo-rubric"
    for part in ({"type": "integer", "minimum": 1, "maximum": 5}, {"enum": [1, 3, 5]}):
        assert (slot := form(contract=ragas, rating=part)["rating"])
        assert isinstance(slot, Score) and (slot.low, slot.high) == (1, 5)
    assert form(contract=ragas, rating={"enum": [0, 2, 4]})["rating"] == Label(
        {"Correct": 4, "Partial": 2, "Wrong": 0}
    )
    with pytest.raises(ApiError):
        form(contract=CHAT_CONTRACTS.get(rubric), score={"type": "number", "minimum": 5})


def test_a_word_that_says_nothing_may_be_the_only_one() -> None:
    slots = form(
        type={"const": "review"},
        reason={"type": "string", "minLength": 1},
        passed={"type": "boolean"},
    )
    assert filled(slots, decision(0.1))["type"] == "review"


@pytest.mark.parametrize(
    "schema",
    [None, [], {}, {"type": "object"}, {"properties": {"reason": {"type": "string"}}}]
    + [{"properties": {"confidence": {"type": "number", "minimum": 0, "maximum": 1}}}]
    + [{"properties": {"pass": {"type": "boolean"}}, "required": ["passed"]}],
)
def test_an_object_needs_a_verdict(schema: Any) -> None:
    with pytest.raises(ApiError) as caught:
        form_of_schema(schema, "s", QA, QA.layouts[0])
    assert (caught.value.status, caught.value.field) == (422, "s")


def test_partial_credit_is_half() -> None:
    half = Decision("Partial", {"Correct": 0.2, "Partial": 0.6, "Wrong": 0.2}, QA.worth)
    assert Score(0, 10).value(half) == pytest.approx(5)
    slots = form(label={"enum": ["wrong", "partial", "correct"]}, passed={"type": "boolean"})
    words = {"Correct": "C", "Partial": "I", "Wrong": "I"}
    assert json.loads(written(slots, half, words)) == {"label": "partial", "passed": False}


def test_a_pair_has_words_alone() -> None:
    pair = CHAT_CONTRACTS.get("truthful-pair")
    with pytest.raises(ApiError):
        form(contract=pair, score={"type": "boolean"})
    assert form(contract=pair, verdict={"enum": ["B", "None", "A"]}) == {
        "verdict": Label({"A": "A", "B": "B", "None": "None"})
    }


def test_who_was_not_trained_for_the_task_says_so() -> None:
    properties = {"reason": {"type": "string"}, "pass": {"type": "boolean"}}
    schema = {"type": "json_schema", "json_schema": {"schema": {"properties": properties}}}
    judges = {"trained": KnowingJudge(), "untrained": FakeJudge()}
    with serving(Service(judges)) as http:
        for judge, says_so in (("trained", False), ("untrained", True)):
            sent = {**qa("x", response_format=schema), "model": f"custos/qa@{judge}"}
            reply = json.loads(text_of(ask(http, sent)))
            assert ("not measured on this task" in reply["reason"]) is says_so


def test_a_number_on_the_script_s_scale_is_whole_where_the_script_s_is() -> None:
    """deepeval's strict mode cuts off what stands behind the point."""
    geval = CHAT_CONTRACTS.get("deepeval-geval")
    slots = form(contract=geval, score={"type": "number"}, reason={"type": "string"})
    assert slots["score"] == Score(0, 10, is_integer=True)
    slots = form(contract=geval, score={"type": "number", "minimum": 0, "maximum": 1})
    assert slots["score"] == Score(0, 1)


class Judgement(BaseModel):
    reasoning: str
    result: Literal["yes", "no"]


def test_a_schema_must_hold_the_keys_that_the_prompt_asks_for(http: httpx.Client) -> None:
    schema = {"schema": Judgement.model_json_schema()}
    sent: Any = qa("x", response_format={"type": "json_schema", "json_schema": schema})
    ask(http, sent)
    sent["messages"][0]["content"] += "\nReply with {pass: boolean, reason: string}."
    assert "'pass'" in refused(http, sent)["message"]


def test_a_schema_in_the_system_message(http: httpx.Client) -> None:
    """It is instructor's form, which ragas uses, beside ``json_object``."""

    def sent(schema: Any) -> Any:
        made: Any = qa("x", response_format={"type": "json_object"})
        system = f"Reply in this form:\n{json.dumps(schema, indent=2)}\nNo schema, an instance."
        made["messages"].insert(0, {"role": "system", "content": system})
        return made

    text = text_of(ask(http, sent(Judgement.model_json_schema())))
    assert json.loads(text)["result"] == "no"
    for unfit in ({"properties": {"hallucinated": {"type": "boolean"}}}, {"reason": "string"}):
        refused(http, sent(unfit))
    forged = json.dumps({"properties": {"pass": {"type": "boolean"}}})
    refused(http, qa(forged, response_format={"type": "json_object"}))


def test_tools(http: httpx.Client) -> None:
    function = {"name": "grade", "parameters": Judgement.model_json_schema()}
    tool = {"type": "function", "function": function}
    other = {"type": "function", "function": {**function, "name": "other"}}

    def named(name: str) -> Any:
        return {"type": "function", "function": {"name": name}}

    for choice in (None, "auto", "required", named("grade")):
        [reply] = ask(http, qa("x", tools=[tool], tool_choice=choice, n=1))["choices"]
        [call] = reply["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"])["result"] == "no"
        assert reply["finish_reason"] == "tool_calls"
    [reply] = ask(http, qa("x", tools=[tool, other], tool_choice=named("other")))["choices"]
    assert reply["message"]["tool_calls"][0]["function"]["name"] == "other"
    assert text_of(ask(http, qa("x", tools=[tool], tool_choice="none"))) == "GRADE: I"
    assert refused(http, qa("x", tools=[tool, other]))["param"] == "tools"
    missing = qa("x", tools=[tool], tool_choice=named("missing"))
    assert refused(http, missing)["param"] == "tool_choice"


def test_a_critique_fills_the_text_and_cannot_be_the_verdict(http: httpx.Client) -> None:
    contract = CHAT_CONTRACTS.get("truthful-pair")
    properties = {"verdict": {"enum": ["A", "B", "None"]}, "reasoning": {"type": "string"}}
    schema = {"type": "json_schema", "json_schema": {"schema": {"properties": properties}}}
    sent = body(contract, contract.layouts[0], response_format=schema)
    text = text_of(ask(http, sent))
    assert json.loads(text)["verdict"] == "A"
    assert HIJACK in json.loads(text)["reasoning"]
    assert "<label>" not in text


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (["grounded", "partially grounded", "not grounded"], None),
        (["no", "half", "yes"], ("yes", "half", "no")),
        (["FAIL", "PARTIAL", "PASS"], ("PASS", "PARTIAL", "FAIL")),
        (["pass", "fail"], ("pass", "fail", "fail")),
        (["pass", "unknown", "fail"], ("pass", "fail", "fail")),
        (["Grounded", "Ungrounded"], ("Grounded", "Ungrounded", "Ungrounded")),
        (["Grounded", "so-so", "Ungrounded"], ()),
        (["half", "no"], ()),
    ],
)
@pytest.mark.parametrize("own", [THREE, TWO])
def test_a_schema_s_words_are_chosen_by_place(
    choices: list[str],
    words: tuple[str, ...] | None,
    own: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(monkeypatch)
    if words == ():
        with pytest.raises(ApiError):
            form(contract=grounding(own), verdict={"enum": choices})
        return
    wanted = dict(zip(THREE, words or choices, strict=True))
    assert form(contract=grounding(own), verdict={"enum": choices}) == {"verdict": Label(wanted)}


def test_a_word_that_a_script_of_two_lacks_is_not_taken_for_the_worst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(monkeypatch)
    slots = form(contract=grounding(TWO), verdict={"enum": ["yes", "partly", "no"]})
    assert filled(slots, parts("Partly grounded", 0.1, 0.8, 0.1)) == {"verdict": "partly"}
