"""A client is told when a free text fails, before its first piece and after."""

import json
import threading
import time
from contextlib import suppress
from typing import Any

import httpx
import pytest

from clients.connection import RequestRefused
from judging import CustosError
from judging.errors import FieldError
from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from serve.calls.limits import Limits
from serve.chat.messages import parse_chat
from serve.chat.replies import sampling_of
from serve.queue.service import Service
from tests.conftest import Folders
from tests.serve.chat.made_up import URL, user
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving, wait_until

FAULTS = [
    (FieldError("images", "data URL is not a readable picture"), 422, "images: data URL"),
    (RequestRefused("text: the server answered 400: secret"), 422, "cannot read"),
    (CustosError("text: the server answered 503: secret (2 tries)"), 503, "server fails"),
    (RuntimeError("secret of /root/.ssh"), 500, "internal error"),
]


@pytest.mark.parametrize(("fault", "status", "says"), FAULTS)
def test_faults(monkeypatch: pytest.MonkeyPatch, fault: Exception, status: int, says: str) -> None:
    begins = False

    def complete(*given: Any) -> None:
        if begins:
            given[-1]("Once upon ")
        raise fault

    monkeypatch.setattr("serve.chat.replies.complete", complete)
    request_body = {"model": "plain", "messages": user("Go on.")}
    with serving(Service({"plain": FakeJudge("plain")})) as http:
        http.headers["X-Request-ID"] = "call-9"
        answers = [http.post(URL, json={**request_body, "stream": on}) for on in (False, True)]
        begins = True
        streamed = http.post(URL, json={**request_body, "stream": True})
    for answer in answers:
        assert answer.status_code == status
        assert says in answer.json()["error"]["message"]
    assert streamed.status_code == 200
    *_, last, remainder = streamed.text.split("\n\n")
    assert remainder == ""
    error = json.loads(last.removeprefix("data: "))["error"]
    assert says in error["message"]
    for text in (*(answer.text for answer in answers), streamed.text):
        assert "secret" not in text
        assert "call-9" in text or says.startswith("images")


@pytest.mark.parametrize(
    ("options", "temperature"),
    [({}, 1), ({"temperature": 0.5, "top_p": 0.9}, 0.5), ({"top_p": 0}, 0)],
)
def test_an_empty_nucleus_is_the_likeliest_token(
    options: dict[str, float], temperature: float
) -> None:
    body = {"model": "plain", "messages": user("Go on."), **options}
    sampling, _ = sampling_of(parse_chat(json.dumps(body).encode(), Limits()))
    assert sampling.temperature == temperature
    assert sampling.top_p == (options.get("top_p") or 1)


@pytest.mark.parametrize("leaves", [False, True])
def test_tokens_that_show_nothing_end_when_nobody_waits(
    tiny_folders: Folders, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    judge = Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    service = Service({"tiny": judge})
    monkeypatch.setattr(judge.backbone.tokenizer, "decode", lambda tokens: "")
    body = {"model": "tiny", "messages": user("Go on."), "max_tokens": 4096, "temperature": 0}
    deadline = {} if leaves else {"X-Deadline-Ms": "1000"}
    with serving(service) as http:
        with suppress(httpx.ReadTimeout):
            answer = http.post(URL, json=body, headers=deadline, timeout=2)
            assert answer.status_code == 504
        wait_until(lambda: service.is_idle, 3)


def test_counting_does_not_change_how_the_model_thread_reads(tiny_folders: Folders) -> None:
    backbone = load_backbone(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    engine = TreeEngine(TreeModel(backbone.model), backbone.tokenizer.pad_token_id)
    judge = Judge("tiny", backbone, engine)
    count = Service({"tiny": judge}).token_counters["tiny"]
    outside = "<|im_end|> ends nothing. " * 50
    alone = len(judge.encoder.data(outside))
    assert alone > 50 * len("<|im_end|>") / 2
    counts: set[int] = set()
    until = time.monotonic() + 0.7

    def count_on() -> None:
        while time.monotonic() < until:
            counts.add(count(outside))

    counting = threading.Thread(target=count_on)
    counting.start()
    trees = set()
    while time.monotonic() < until:
        trees.add(judge.encoder.tree(("Correct", "Wrong")).paths)
    counting.join()
    assert counts == {alone}
    assert len(trees) == 1
