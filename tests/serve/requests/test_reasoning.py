"""Thoughts in responses over a socket: the service, its chats, a chat model and this machine."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from clients.chat_judge import ChatJudge
from clients.connection import ModelServer
from clients.judge_client import JudgeClient
from clients.kept_verdicts import request_key
from judging.judge import Judge
from judging.types import JudgeRequest
from serve.queue.verdict_cache import cache_key
from tests.clients.fake_server import FakeServer, Say, completion
from tests.conftest import Folders
from tests.serve.chat.made_up import KnowingJudge, qa
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving_judges

THINKING = "<think>Rome? No, Paris.</think>\nIt is Paris."
ANSWER = "It is Paris."


def request(response: str, **fields: object) -> JudgeRequest:
    return JudgeRequest.model_validate(row(response, **fields))


@pytest.fixture(scope="module")
def tiny(tiny_folders: Folders) -> Judge:
    return Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def address(tiny: Judge) -> Iterator[str]:
    with serving_judges({"tiny": tiny}) as url:
        yield url


def test_the_service_grades_as_this_machine_does(tiny: Judge, address: str) -> None:
    asked = [
        request(THINKING),
        request(ANSWER),
        request(THINKING, reasoning="keep"),
        request("<think>Paris, I"),
        request(""),
    ]
    here = list(tiny.grade(asked))
    there = list(JudgeClient(address).grade(asked))
    for one, other in zip(here, there, strict=True):
        assert (one.status, one.label, one.message) == (other.status, other.label, other.message)
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4)
    thinking, answer, kept, never, empty = there
    assert thinking.probabilities == pytest.approx(answer.probabilities, rel=1e-4)
    assert thinking.probabilities != pytest.approx(kept.probabilities, rel=1e-4)
    said = ["thinking tags" in (verdict.message or "") for verdict in (thinking, answer, kept)]
    assert said == [True, False, False]
    assert never.label == empty.label == "Wrong"
    assert never.posterior is empty.posterior is None
    assert never.message != empty.message


def test_what_is_kept_of_earlier_versions_stays_unless_thoughts_were_graded(tiny: Judge) -> None:
    requests = [request(ANSWER), request(THINKING), request(THINKING, reasoning="keep")]
    for keys in (
        {request_key(FakeJudge(), each) for each in requests},
        {cache_key(tiny, each) for each in requests},
    ):
        assert len(keys) == 3
    assert tiny.fingerprint(requests[0]) == tiny.fingerprint(requests[1])


def test_a_chat_names_the_field_too() -> None:
    judge = KnowingJudge()
    with serving_judges({"knowing": judge}) as url:
        for more in ({}, {"reasoning": "keep"}, {"reasoning": {"effort": "low"}}):
            answer = httpx.post(f"{url}/v1/chat/completions", json=qa(THINKING, **more))
            assert answer.status_code == 200, answer.text
    assert [each.response for each in judge.seen] == [ANSWER, THINKING, ANSWER]


def test_a_chat_model_reads_the_answer_alone() -> None:
    fake = FakeServer()
    fake.answer = lambda seen: Say(body=completion("Correct"))
    with fake.running():
        judge = ChatJudge(ModelServer(fake.url, "m", tries=1))
        dropped, kept, never = judge.grade(
            [request(THINKING), request(THINKING, reasoning="keep"), request("<think>Paris")]
        )
    texts = sorted((seen.text for seen in fake.seen), key=len)
    assert ["Rome" in text for text in texts] == [False, True]
    assert dropped.message
    assert kept.message is None
    assert (never.label, len(fake.seen)) == ("Wrong", 2)
