"""The client of our own service, over sockets."""

import asyncio
import json
import signal
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from clients.connection import ServerRefusal
from clients.judge_client import CALLS, AsyncJudgeClient, JudgeClient
from judging import CustosError, JudgeRequest, Verdict
from judging.judge import Judge
from judging.types import LabelledExample
from serve.calls.limits import Limits
from tests.clients.fake_server import FakeServer, Say, Seen
from tests.clients.made_up import verdicts_on
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving_judges
from tests.tiny import save_picture

KEY = "a-key-for-these-tests-0123456789"


def address(fake: FakeServer) -> str:
    return fake.url.removesuffix("/v1")


def request(number: int, response: str = "Paris", **fields: object) -> JudgeRequest:
    values = {"question": "Which?", "references": ["Paris"], "response": response, **fields}
    return JudgeRequest.model_validate({"id": str(number), **values})


def test_a_list_of_judges_without_an_end_is_refused(fake: FakeServer) -> None:
    fake.answer = lambda seen: Say(body="x" * 100_000, is_endless=True)
    with pytest.raises(ServerRefusal, match="no list of judges .the reply has more than 64 MiB"):
        JudgeClient.connect(address(fake))


def test_verdicts_come_in_order_whatever_the_batches() -> None:
    requests = [request(n, "Paris" if n % 3 else "Rome") for n in range(50)]
    judge = FakeJudge()
    with serving_judges({"fake": judge}) as url:
        for concurrency in (1, 10, 64, 4096):
            verdicts = list(JudgeClient(url, concurrency=concurrency).grade(requests))
            assert [verdict.id for verdict in verdicts] == [str(n) for n in range(50)]
            assert [v.label for v in verdicts] == [
                "Correct" if n % 3 else "Wrong" for n in range(50)
            ]
            assert all(isinstance(verdict, Verdict) for verdict in verdicts)


def test_examples_are_graded_without_their_labels(fake: FakeServer) -> None:
    example = LabelledExample.model_validate({**request(1).model_dump(), "label": "Wrong"})
    fake.answer = verdicts_on
    assert next(JudgeClient(address(fake)).grade([example])).id == "1"
    assert fake.seen[0].body["requests"][0].keys() <= JudgeRequest.model_fields.keys()


def test_what_is_refused_fails_alone(tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "wide.png", 300, 20)
    bad = [
        request(3, references=[]),
        request(5, images=[picture]),
        request(6, images=[str(tmp_path / "missing.png")]),
        request(8, task="charthal", variant="irrelevant"),
    ]
    with serving_judges({"fake": FakeJudge()}, limits=Limits(image_pixels=5000)) as url:
        verdicts = list(JudgeClient(url).grade([request(1), *bad, request(9)]))
    assert [verdict.status for verdict in verdicts] == ["scored", *["invalid"] * 4, "scored"]
    assert [verdict.id for verdict in verdicts] == ["1", "3", "5", "6", "8", "9"]
    told = ("references", "5,000 pixels", "missing.png", "charthal")
    for verdict, word in zip(verdicts[1:5], told, strict=True):
        assert word in str(verdict.message)


def test_files_are_sent_as_data_urls(fake: FakeServer, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 3, 2)
    fake.answer = verdicts_on
    url = address(fake)
    list(JudgeClient(url, judge="qs", api_key="k3y").grade([request(1, images=[picture])]))
    [seen] = fake.seen
    assert seen.path == "/judge"
    assert seen.headers["authorization"] == "Bearer k3y"
    assert seen.body["judge"] == "qs"
    assert seen.body["requests"][0]["images"][0].startswith("data:image/png;base64,")


@pytest.mark.parametrize("status", [408, 413, 504])
def test_what_is_too_much_for_one_call_goes_in_smaller_ones_from_then_on(
    fake: FakeServer, status: int
) -> None:
    def answer(seen: Seen) -> Say:
        return Say(status, "{}") if len(seen.body["requests"]) > 2 else verdicts_on(seen)

    fake.answer = answer
    client = JudgeClient(address(fake), concurrency=64, tries=2)
    verdicts = list(client.grade(map(request, range(256))))
    assert [verdict.id for verdict in verdicts] == [str(n) for n in range(256)]
    refused = sum(len(seen.body["requests"]) > 2 for seen in fake.seen)
    assert refused <= 4 * CALLS, "each of the first calls learns it by halves of 16, 8 and 4 rows"
    fake.seen.clear()
    assert len(list(client.grade(map(request, range(9))))) == 9
    assert max(len(seen.body["requests"]) for seen in fake.seen) == 2
    fake.answer = lambda seen: Say(504, "{}")
    with pytest.raises(CustosError, match=rf"{address(fake)}: .*504: .* \(1 try\)"):
        list(JudgeClient(address(fake), tries=1).grade([request(1)]))


def test_a_client_in_a_notebook_whose_thread_runs_a_loop_can_be_interrupted(
    fake: FakeServer,
) -> None:
    def interrupt(*_: object) -> None:
        raise InterruptedError

    def answer(seen: Seen) -> Say:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        return verdicts_on(seen, delay=30)

    async def cell() -> list[Verdict]:
        return list(JudgeClient(address(fake)).grade([request(1)]))

    fake.answer = verdicts_on
    assert [verdict.id for verdict in asyncio.run(cell())] == ["1"]
    fake.answer = answer
    earlier = signal.signal(signal.SIGALRM, interrupt)
    start = monotonic()
    try:
        with pytest.raises(InterruptedError):
            asyncio.run(cell())
    finally:
        signal.signal(signal.SIGALRM, earlier)
    assert monotonic() - start < 15


def test_many_grades_side_by_side_are_no_more_calls_than_asked_for(fake: FakeServer) -> None:
    """Grade each row by itself with ``asyncio.gather``, as programs that ask chat models do."""

    async def grade_all(url: str) -> list[str]:
        async with AsyncJudgeClient(url, concurrency=8) as client:
            verdicts = client.grade(request(n) for n in range(100))
            assert (await anext(verdicts)).id == "0"
            await verdicts.aclose()  # left early

            async def grade_one(number: int) -> str:
                [verdict] = [verdict async for verdict in client.grade([request(number)])]
                return verdict.id

            return await asyncio.gather(*map(grade_one, range(60)))

    fake.answer = lambda seen: verdicts_on(seen, delay=0.1)
    assert asyncio.run(grade_all(address(fake))) == [str(n) for n in range(60)]
    assert fake.most_in_flight == 8
    fake.seen.clear()
    fake.most_in_flight = 0
    rows = map(request, range(40))
    assert len(list(JudgeClient(address(fake), concurrency=8).grade(rows))) == 40
    assert fake.most_in_flight == CALLS
    assert {len(seen.body["requests"]) for seen in fake.seen} == {2}


def test_what_no_request_could_pass_ends_it(fake: FakeServer) -> None:
    url, nobody, one = address(fake), "http://127.0.0.1:9", [request(1)]
    to = r"redirects to 'https://judge\.test/judges'.*; give the address of that server"
    for said, error in (
        (Say(401, "{}"), "set CUSTOS_KEY"),
        (Say(body='{"verdicts": []}'), "0 verdicts on 1 requests"),
        (Say(308, "", {"Location": "https://judge.test/judges"}), to),  # as proxies send to https
    ):
        fake.faults.clear()
        fake.faults.extend([said] * 9)
        with pytest.raises(CustosError, match=error):
            list(JudgeClient(url).grade(one))
    with pytest.raises(ServerRefusal, match=to):
        JudgeClient.connect(url)
    with pytest.raises(CustosError, match=f"{nobody}: ConnectError"):
        list(JudgeClient(nobody, tries=1).grade(one))
    with pytest.raises(ServerRefusal, match=f"{nobody}: no answer .* is 'custos serve' running"):
        JudgeClient.connect(nobody)
    with serving_judges({"fake": FakeJudge()}) as served:
        with pytest.raises(ServerRefusal, match="404 .*give the address that 'custos serve'"):
            JudgeClient.connect(f"{served}/v1")
        with pytest.raises(ServerRefusal, match=r"/v1: no such address \(404\)"):
            list(JudgeClient(f"{served}/v1").grade(one))


@pytest.mark.parametrize(
    "body",
    [
        *("[]", r'{"judges": "\ud800"}', '{"judges": 7}', '{"judges": [7]}', '{"judges": [{}]}'),
        '{"judges": [{"name": "a", "tasks": {"hieval-qs": 1}}]}',
        '{"judges": [{"name": [], "tasks": {}}]}',
    ],
)
def test_a_list_of_judges_of_another_form_is_refused(fake: FakeServer, body: str) -> None:
    fake.answer = lambda seen: Say(body=body)
    with pytest.raises(ServerRefusal, match=f"^{fake.url}: no list of judges "):
        JudgeClient.connect(fake.url)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks://127.0.0.1:9"])
def test_no_proxy_is_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """Many machines name a proxy for everything, which knows other machines alone."""
    with serving_judges({"fake": FakeJudge()}) as url:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        monkeypatch.setenv("NO_PROXY", "")
        verdicts = list(JudgeClient.connect(url).grade([request(1)]))
    assert [verdict.status for verdict in verdicts] == ["scored"]
    if proxy.startswith("socks"):  # for another machine it cannot be used
        with pytest.raises(CustosError, match=r"judge\.test: the proxy .* \(.*cannot be used"):
            JudgeClient("http://judge.test")


def test_the_key_comes_from_the_environment_unless_one_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving_judges({"fake": FakeJudge()}, keys=(KEY,)) as url:
        monkeypatch.delenv("CUSTOS_KEY", raising=False)
        with pytest.raises(ServerRefusal, match="needs an API key"):
            JudgeClient.connect(url)
        monkeypatch.setenv("CUSTOS_KEY", KEY)
        assert JudgeClient.connect(url).judges[0]["name"] == "fake"
        assert [verdict.status for verdict in JudgeClient(url).grade([request(1)])] == ["scored"]
        with pytest.raises(ServerRefusal, match="refuses the API key") as wrong:
            JudgeClient.connect(url, api_key="another-key-0123456789")
        assert "another-key" not in str(wrong.value)


def test_fingerprints_tell_judges_and_versions_apart(
    here: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change the version of a package, as an upgrade of the service does."""
    fingerprints = []
    for version in ("0.1.0", "0.2.0"):
        monkeypatch.setattr("judging.judge.package_versions", lambda v=version: {"custos": v})
        with serving_judges({"qs": here}) as url:
            fingerprints.append(JudgeClient(url).fingerprint(request(1)))
    with serving_judges({"first": FakeJudge("a"), "second": FakeJudge("b")}) as url:
        any_judge = JudgeClient(url)
        clients = (any_judge, JudgeClient(url, judge="second"))
        fingerprints += [client.fingerprint(request(1)) for client in clients]
        with pytest.raises(CustosError, match="no judge at .* takes 'charthal'"):
            any_judge.fingerprint(request(1, task="charthal", variant="irrelevant"))
    assert len(set(fingerprints)) == 4
    card = {"name": "qs", "tasks": ["hieval-qs"], "adapter": "abc", "measured": ["accuracy .8"]}
    changes: list[dict[str, Any]] = [{}, {"measured": ["accuracy .9"]}, {"adapter": "def"}]
    digests = set()
    for change in changes:
        any_judge.judges = [card | change]
        digests.add(any_judge.fingerprint(request(1)))
    assert len(digests) == 2, "a new reliability card makes no other judge"


@pytest.mark.parametrize(
    ("tasks", "mode"),
    [
        ([{"hieval-qs": ["plain/any"]}], "any"),
        ([{"hieval-qs": ["plain/any"]}, {"hieval-qs": ["plain/all"]}], "all"),
        ([{"hieval-qs": ["plain/any"]}, {"hieval-qs": []}], "any"),
        ([{"hieval-qs": []}], "all"),
        ([{"hieval-ea": ["plain"]}], "all"),
        ([["hieval-qs"]], "all"),
    ],
)
def test_a_request_is_resolved_as_the_judges_there_take_it(
    fake: FakeServer, tasks: list[Any], mode: str
) -> None:
    """A judge of alternatives takes one reference as such, unless another knows answer sets."""
    cards = [{"name": str(number), "tasks": known} for number, known in enumerate(tasks)]
    fake.answer = lambda seen: Say(body=json.dumps({"judges": cards}))
    client = JudgeClient(fake.url)
    assert client.resolve(request(1)).reference_mode == mode
    assert client.resolve(request(1, references=["Paris", "Lutetia"])).reference_mode == "all"
