"""A chat model as a judge, over a real socket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clients.chat_judge import ChatJudge
from clients.connection import ModelServer, ServerRefusal
from clients.messages import Decoding
from judging.tasks import get_task
from judging.types import JudgeRequest
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.tiny import save_picture


def score(response: str, **fields: object) -> JudgeRequest:
    given = {"question": "Capital of France?", "references": ("Paris",), "responses": (response,)}
    return JudgeRequest.model_validate({**given, **fields})


def pair(a: str, b: str, **fields: object) -> JudgeRequest:
    return JudgeRequest(task="truthful-pure-label", question="?", responses=(a, b), **fields)


def judge(fake: FakeServer) -> ChatJudge:
    return ChatJudge(ModelServer(fake.url, "m", tries=1))


def say(text: str) -> Say:
    return Say(body=completion(text))


def test_verdicts_come_in_order_with_the_tasks_own_words(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: say("Correct" if "Paris" in seen.text.split("\n")[-1] else "Wrong")
    asked = [score("Paris", id="a"), score("Rome", id="b"), score("", id="c")]
    found = [(v.id, v.label, v.confidence) for v in judge(fake).grade(asked)]
    assert found == [("a", "Correct", None), ("b", "Wrong", None), ("c", "Wrong", None)]
    assert len(fake.seen) == 2  # the empty response is decided by rule
    task = get_task("hieval-qs")
    [system, user] = fake.seen[0].body["messages"]
    assert system["content"] == task.instruction(task.rubric(asked[0]))
    assert user["content"].startswith("Question: Capital of France?\n")
    fake.answer = lambda seen: say("Wrong; Overthinking")
    picture = [save_picture(tmp_path / "a.png", 8, 8)]
    [typed] = judge(fake).grade([score("x", task="hieval-ea", images=picture)])
    assert (typed.label, typed.error_type, typed.message) == ("Wrong", "Overthinking", None)
    assert isinstance(fake.seen[-1].body["messages"][1]["content"], list)
    fake.answer = lambda seen: say("Wrong")
    [quick] = judge(fake).grade([score("x", images=picture)])
    assert quick.message == "the picture was left out: task 'hieval-qs' reads text alone"
    assert isinstance(fake.seen[-1].body["messages"][1]["content"], str)


def better(seen: Seen) -> str:
    a, b = (line.partition(": ")[2] for line in seen.text.split("\n")[-2:])
    return "None" if a == b else "A" if a > b else "B"


def test_pairs_are_asked_in_both_orders(fake: FakeServer) -> None:
    fake.answer = lambda seen: say(better(seen))
    found = judge(fake).grade([pair("9", "1"), pair("1", "9"), pair("5", "5"), pair("x", "")])
    assert [v.label for v in found] == ["A", "B", "None", None]
    assert len(fake.seen) == 6
    fake.seen.clear()
    assert [v.label for v in judge(fake).grade([pair("9", "1", order="given")])] == ["A"]
    assert len(fake.seen) == 1
    fake.answer = lambda seen: say("A")
    [first] = judge(fake).grade([pair("9", "1")])
    assert (first.status, first.label, first.needs_review) == ("abstain", None, True)


def test_a_critique_and_the_confidence_after_it_are_kept(fake: FakeServer) -> None:
    def judgement(seen: Seen) -> Say:
        label = better(seen)
        confidence = ".9" if label == "A" else "80 %"
        return say(
            f"<critique>{label} says more.</critique><label>{label}</label>"
            f"<confidence>{confidence}</confidence>"
        )

    fake.answer = judgement
    pairs = [pair(a, b).model_copy(update={"task": "truthful-pair"}) for a, b in ("91", "19")]
    first, second = judge(fake).grade(pairs)
    assert (first.label, first.critique) == ("A", "A says more.")
    assert (second.label, second.critique) == ("B", "B says more.")
    assert first.stated_confidence == second.stated_confidence == pytest.approx(0.85)
    fake.answer = lambda seen: say("<critique>?</critique><label>A</label>")
    [torn] = judge(fake).grade(pairs[:1])
    assert (torn.status, torn.critique, torn.stated_confidence) == ("abstain", None, None)


def test_what_holds_no_label_is_no_label(fake: FakeServer) -> None:
    cut_off = completion("I think").replace('"stop"', '"length"')
    fake.answer = lambda seen: Say(body=cut_off) if "Rome" in seen.text else say("Well.")
    grader = judge(fake)
    found = list(grader.grade([score("Paris"), score("Rome"), score("x", variant="nope")]))
    assert [v.status for v in found] == ["unparsed", "unparsed", "invalid"]
    assert all(v.label is None for v in found)
    assert found[0].message == "no label in the answer: Well."
    assert found[1].message == "no label in the answer, which was cut at its limit: I think"
    [torn] = grader.grade([pair("9", "1")])
    assert (torn.status, grader.usage.prompt_tokens) == ("unparsed", 400), "both orders count"


@pytest.mark.parametrize(("status", "expected"), [(400, "invalid"), (500, "judge_error")])
def test_what_the_server_refuses_is_invalid_and_its_fault_is_not(
    fake: FakeServer, status: int, expected: str
) -> None:
    fake.answer = lambda seen: Say(status, "bad") if better(seen) == "A" else say("B")
    grader = judge(fake)
    [found] = grader.grade([pair("9", "1")])
    assert (found.status, grader.usage.prompt_tokens) == (expected, 100)
    fake.answer = lambda seen: Say(401, "no")
    with pytest.raises(ServerRefusal, match="needs an API key"):
        list(judge(fake).grade([score("Paris")]))


def test_the_fingerprint_knows_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ModelServer("http://h/v1", "m")
    base = ChatJudge(server).fingerprint(score("a"))
    assert ChatJudge(replace(server, api_key="secret")).fingerprint(score("b")) == base
    others = [
        ChatJudge(replace(server, model="n")).fingerprint(score("a")),
        ChatJudge(replace(server, base_url="http://i/v1")).fingerprint(score("a")),
        ChatJudge(server, Decoding(temperature=1)).fingerprint(score("a")),
        ChatJudge(server).fingerprint(score("a", variant="tolerance")),
        ChatJudge(server).fingerprint(score("a", reference_mode="any")),
    ]
    monkeypatch.setattr("clients.chat_judge.package_versions", lambda: {"custos": "0.0.1"})
    assert len({base, *others, ChatJudge(server).fingerprint(score("a"))}) == 7
