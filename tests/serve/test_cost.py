"""Calls that would cost the service much more than their caller, over real sockets."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from experiments.cost.service_load import running, service_command
from judging import Verdict
from judging.judge import Judge
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from serve.calls.limits import Limits
from serve.queue.cache import FILE, VerdictCache
from serve.queue.service import Service
from tests.conftest import Folders
from tests.serve.chat.made_up import KnowingJudge, qa
from tests.serve.made_up import FakeJudge, picture, progressive, row
from tests.serve.sockets import serving, wait_until


@pytest.fixture(scope="module")
def tiny_judge(tiny_folders: Folders) -> Judge:
    return Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def service(tiny_judge: Judge) -> Service:
    return Service({"tiny": tiny_judge})


@pytest.fixture(scope="module")
def http(service: Service) -> Iterator[httpx.Client]:
    with serving(service) as client:
        yield client


@pytest.fixture(scope="module")
def chat() -> Iterator[httpx.Client]:
    with serving(Service({"knowing": KnowingJudge()})) as client:
        yield client


def error_of(answer: httpx.Response) -> tuple[int, str | None, str]:
    """Status, field and message of an error of either form."""
    error = answer.json()["error"]
    return answer.status_code, error.get("field", error.get("param")), error["message"]


def test_values_that_nobody_reads_cost_no_memory(http: httpx.Client, chat: httpx.Client) -> None:
    hidden = '["\\u0022", ' + '"\\\\",' * 3_400_000 + "{}]"
    start = time.process_time()
    for client, path, fields in (
        (http, "/judge", row()),
        (http, "/judge/stream", row()),
        (chat, "/v1/chat/completions", qa("Paris")),
    ):
        body = f'{json.dumps(fields)[:-1]}, "metadata": {{"x": {hidden}}}}}'
        answer = client.post(path, content=body)
        assert error_of(answer)[:2] == (413, "body")
    assert time.process_time() - start < 3


def test_a_prompt_that_is_too_long_never_enters_the_queue(
    http: httpx.Client, service: Service
) -> None:
    accepted = service.queue().counters["accepted"]
    rows = [row(), row(question="?! " * 60_000), row()]
    verdicts = http.post("/judge", json=rows).json()["verdicts"]
    assert [verdict["status"] for verdict in verdicts] == ["scored", "invalid", "scored"]
    assert "the prompt has" in verdicts[1]["message"]
    long = row(references=["Paris", "?! " * 60_000])
    assert http.post("/judge", json=long).json()["message"].startswith("field 'references'")
    assert service.queue().counters["accepted"] == accepted + 2


def test_a_picture_that_decodes_for_long_stops_nobody_else(tiny_judge: Judge) -> None:
    slow = row(task="hieval-ea", images=[progressive(4000, 90)])
    with (
        serving(Service({"tiny": tiny_judge}, Limits(picture_seconds=0.5))) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        calls = [pool.submit(client.post, "/judge", json=slow) for _ in range(3)]
        start = time.monotonic()
        while not all(call.done() for call in calls):
            assert client.post("/judge", json=row()).json()["status"] == "scored"
            assert time.monotonic() - start < 30
        for call in calls:
            verdict = call.result().json()
            assert (verdict["status"], verdict["label"]) == ("invalid", None)
            assert "takes longer than 0.5 s to decode" in verdict["message"]
        shown = row(task="hieval-ea", images=[picture((300, 200), color="red")])
        fine = client.post("/judge", json=shown)
        assert fine.json()["status"] == "scored"


class SlowModel:
    """A model that sleeps before every forward pass, and counts them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.num_passes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def __call__(self, *arguments: Any) -> Any:
        self.num_passes += 1
        time.sleep(0.2)
        return self.model(*arguments)


def test_a_window_costs_nothing_more_once_its_callers_are_gone(tiny_judge: Judge) -> None:
    backbone = tiny_judge.backbone
    model: Any = SlowModel(TreeModel(backbone.model))
    engine = TreeEngine(model, backbone.tokenizer.pad_token_id, token_budget=100)
    service = Service({"slow": Judge("slow", backbone, engine)})
    rows = [row(question=f"{number} " * 20) for number in range(60)]
    with serving(service) as client:
        answer = client.post("/judge", json=rows, headers={"X-Deadline-Ms": "1000"})
        assert answer.status_code == 504
        wait_until(lambda: service.is_idle)
        assert model.num_passes <= 15  # five in a second, more if it ends late; of thirty at least
        assert client.post("/judge", json=row()).json()["status"] == "scored"


class SlowCache(VerdictCache):
    """Waits at its gate."""

    gate: threading.Event

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Verdict]:
        self.gate.wait(30)
        return super().get(keys)

    def put(self, verdicts: Mapping[bytes, Verdict], used: Iterable[bytes] = ()) -> None:
        self.gate.wait(30)
        super().put(verdicts, used)


def test_a_cache_that_hangs_costs_no_call_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.queue.cache.MOST_WAITING", 3)
    cache = SlowCache(tmp_path, 1_000_000)
    cache.gate = threading.Event()
    with serving(Service({"a": FakeJudge()}, cache=cache)) as client:
        for number in range(6):
            answer = client.post("/judge", json=row(str(number)), headers={"X-Deadline-Ms": "5000"})
            assert answer.status_code == 200, answer.text
        metrics = client.get("/metrics").text
        assert 'judge_cache_fault_total{operation="read"} 6.0' in metrics
        assert 'judge_cache_fault_total{operation="full"}' in metrics
        cache.gate.set()


def test_the_deadline_counts_from_the_arrival_of_the_call(tmp_path: Path) -> None:
    """Half of it goes by before the queue, in which the call then waits for the other half."""
    cache, judge = SlowCache(tmp_path, 1_000_000), FakeJudge()
    cache.gate = threading.Event()
    judge.gate.clear()
    with serving(Service({"a": judge}, cache=cache)) as client:
        start = time.monotonic()
        answer = client.post("/judge", json=row(), headers={"X-Deadline-Ms": "900"})
        assert answer.status_code == 504
        assert time.monotonic() - start < 1.3
        cache.gate.set()
        judge.gate.set()


@pytest.mark.slow
def test_health_answers_while_long_prompts_are_read() -> None:
    """Twelve prompts of .9 MB at once; every one is read and counted, then answered or refused.

    The service is a process of its own: clients in the same one would take the interpreter from it.
    """
    body = qa("It is Paris. " * 15_000, question="Which is the capital of France?")
    body["messages"].insert(0, {"role": "system", "content": "As said before: " * 43_000})
    content, headers = json.dumps(body), {"Content-Type": "application/json"}
    with (
        running(lambda port: service_command("embedded-qs", port)) as (address, _),
        httpx.Client(base_url=address, timeout=120) as client,
        ThreadPoolExecutor(12) as pool,
    ):
        calls = [
            pool.submit(client.post, "/v1/chat/completions", content=content, headers=headers)
            for _ in range(12)
        ]
        seconds: list[float] = []
        while not all(call.done() for call in calls):
            start = time.monotonic()
            assert client.get("/health/ready").status_code == 200
            seconds.append(time.monotonic() - start)
            time.sleep(0.005)
        answers = [call.result() for call in calls]
    assert {answer.status_code for answer in answers} <= {200, 429}  # the queue may be full
    answered = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(answered) >= 6
    assert all(answer["usage"]["prompt_tokens"] > 100_000 for answer in answered)
    assert max(seconds) < 0.1


def test_names_that_come_back_in_an_error_are_cut(http: httpx.Client, chat: httpx.Client) -> None:
    long = "hieval-q" * 20_000
    bodies = [row(task=long), row(variant=long), row() | {long: 1}, row(judge=long), {long: 1}]
    for body in bodies:
        start = time.process_time()
        answer = http.post("/judge", json=body)
        assert answer.status_code in (404, 422)
        assert len(answer.content) < 2_000
        assert time.process_time() - start < 2
    answer = chat.post("/v1/chat/completions", json={**qa("x"), "model": f"custos/{long}"})
    assert answer.status_code == 404
    assert len(answer.content) < 2_000


def test_a_locked_cache_costs_no_call_its_deadline(tmp_path: Path) -> None:
    service = Service({"a": FakeJudge()}, cache=VerdictCache(tmp_path, 1_000_000))
    deadline = {"X-Deadline-Ms": "4000"}  # SQLite by itself would wait for five seconds
    with serving(service) as client:
        assert client.post("/judge", json=row()).status_code == 200
        other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        wait_until(lambda: other.execute("SELECT * FROM verdicts").fetchall() != [])
        other.execute("BEGIN IMMEDIATE")
        for response in ["Paris", *map(str, range(20))]:
            answer = client.post("/judge", json=row(response), headers=deadline)
            assert answer.status_code == 200, answer.text
        other.execute("ROLLBACK")
        other.close()
        assert service.queue().counters["cached"] == 1
        wait_until(lambda: 'fault_total{operation="write"}' in client.get("/metrics").text)


@pytest.mark.parametrize(
    "fields",
    [
        {"references": ["a_{b}" * 26 + "+1!"], "response": "5"},
        {
            "references": [
                ",".join(f"x^{{{n}}}+{m * n}" for n in range(2, 20)) for m in range(7, 26)
            ],
            "reference_mode": "any",
            "response": "5",
        },
        {"choices": [f"x{n}" for n in range(100)], "response": "ab " * 60_000 + "(B)"},
        {"response": r"\boxed{" * 12_000 + "}" * 12_000 + " 5"},
        {"response_a": "a", "response_b": "b", "given_critique": f"A{' ' * 60_000}x"},
        {"response_a": "a", "response_b": "b", "given_critique": "A x " * 10_000},
    ],
    ids=["mathematics", "parts", "options", "boxes", "spaces", "names"],
)
def test_no_text_takes_long_to_be_read_by_rule(http: httpx.Client, fields: dict[str, Any]) -> None:
    """A pattern that reads a text in many ways holds the interpreter, and all other calls wait."""
    task = "truthful-pair" if "given_critique" in fields else "hieval-qs"
    single = {} if "response_b" in fields else row()
    start = time.process_time()
    answer = http.post("/judge", json={"question": "Which?", **single, "task": task, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.json()["label"], answer.text
    assert time.process_time() - start < 2


def test_numbers_of_thousands_of_digits_are_no_faults(http: httpx.Client) -> None:
    digits = "1" * 5_000
    fields = {"question": "How much?", "references": ["4 mm"], "response": "4 mm"}
    for task, given, status in (
        ("chartom-prediction", {"references": [f"1e{digits}"]}, 422),
        ("chartom-fact", {"variant": "number", "response": f"1e{digits}"}, 200),
        ("chartom-fact", {"variant": "number", "references": [f"1e{digits}"]}, 200),
        ("chartom-fact", {"variant": "ranking", "references": ["a", "b"], "response": digits}, 200),
    ):
        answer = http.post("/judge", json={"task": task, **fields, **given})
        assert answer.status_code == status, answer.text
        assert answer.json().get("status") != "judge_error"


def test_a_long_schema_is_refused_at_once(chat: httpx.Client) -> None:
    """Each of many references may lead to all of it, once for each key."""
    large = {f"k{n}": 0 for n in range(40_000)} | {"type": "boolean"}
    defs = {"d0": large} | {f"d{n}": {"$ref": f"#/$defs/d{n - 1}"} for n in range(1, 15)}
    properties = {name: {"$ref": "#/$defs/d14"} for name in ("pass", *map(str, range(30)))}
    schema = {"type": "object", "properties": properties, "$defs": defs}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = qa("Paris") | {"response_format": form}
    start = time.process_time()
    answer = chat.post("/v1/chat/completions", json=body)
    status, field, message = error_of(answer)
    assert (status, field) == (422, "response_format.json_schema.schema")
    assert message == "the schema has more than 20,000 characters"
    assert time.process_time() - start < 1


def test_health_answers_while_keys_of_the_cache_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*given: Any) -> None:
        time.sleep(0.05)

    monkeypatch.setattr("serve.queue.service.cache_key", slowly)
    rows = [row("Paris " * 1_000) for _ in range(20)]
    service = Service({"a": FakeJudge()}, cache=VerdictCache(tmp_path, 1_000_000))
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.post, "/judge", json=rows)
        longest = 0.0
        while not call.done():
            start = time.monotonic()
            assert client.get("/health").status_code == 200
            longest = max(longest, time.monotonic() - start)
        assert call.result().status_code == 200
        assert longest < 0.5  # of a second
