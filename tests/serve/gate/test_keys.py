"""Access keys: what answers without one, and with one."""

import base64
import hashlib
import logging
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from judging import CustosError
from serve.app import create_app
from serve.calls.limits import Limits
from serve.gate import gate as wrong_keys
from serve.gate.gate import KnownKeys, read_key_file, read_keys
from serve.queue.cache import FILE, VerdictCache
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import first_line, known, send_raw, serving, wait_until

KEY = "k" * 32


def basic(key: str) -> str:
    return base64.b64encode(f"me:{key}".encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {KEY}x"},
        {"Authorization": f"Token {KEY}"},
        {"Authorization": "Basic !"},
        {"Authorization": "Bearer \xff".encode("latin-1")},
        {"Authorization": f"Basic {basic(KEY)}", "Sec-Fetch-Site": "cross-site"},
        {"Authorization": f"Basic {basic(KEY)}", "Sec-Fetch-Site": "same-site"},
        {"Authorization": f"Basic {basic(KEY)}", "Origin": "http://localhost:3000"},
    ],
)
def test_without_a_key_only_health_answers(judge: FakeJudge, headers: Any) -> None:
    with TestClient(create_app(Service({"a": judge}), keys=known("other" * 8, KEY))) as client:
        answers = [client.post("/judge", json=row(), headers=headers)]
        for path in ("/judges", "/tasks", "/metrics", "/openapi.json", "/nothing", "/"):
            answers.append(client.get(path, headers=headers))
        for answer in answers:
            assert (answer.status_code, answer.json()["error"]["type"]) == (401, "unauthorized")
            assert "CUSTOS_KEY" in answer.json()["error"]["message"]
            assert KEY not in answer.text
            assert "Bearer" in answer.headers["WWW-Authenticate"]
        for path in ("/health", "/health/live", "/health/ready"):
            assert client.get(path).status_code == 200
    assert judge.batches == []


@pytest.mark.parametrize("given", [f"Bearer {KEY}", f"bearer  {KEY} ", f"Basic {basic(KEY)}"])
def test_with_a_key_everything_answers(judge: FakeJudge, given: str) -> None:
    with TestClient(create_app(Service({"a": judge}), keys=known("other" * 8, KEY))) as client:
        client.headers["Authorization"] = given
        assert client.get("/judges").status_code == 200
        assert client.post("/judge", json=row()).status_code == 200


@pytest.fixture
def few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_keys, "MAX_TRIES", 5)


@pytest.mark.usefixtures("few_tries")
def test_many_wrong_keys_are_refused_and_known_ones_are_not(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}), keys=[KEY]) as client:
        answers = [call(client, f"wrong {number}") for number in range(9)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 4
        for answer in answers[5:]:
            assert answer.headers["Retry-After"] == "12"  # a minute for 5
            assert answer.json()["error"]["type"] == "overloaded"
        assert call(client, KEY).status_code == 200
        assert client.get("/health").status_code == 200
        with socket.socket() as elsewhere:
            elsewhere.bind(("127.0.0.2", 0))
            elsewhere.connect((client.base_url.host, client.base_url.port))
            elsewhere.sendall(b"GET /judges HTTP/1.1\r\nHost: x\r\n\r\n")
            assert first_line(elsewhere) == "HTTP/1.1 401 Unauthorized"


@pytest.mark.usefixtures("few_tries")
def test_tries_come_back(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    answers = wrong_keys.WrongKeys()
    monkeypatch.setattr(wrong_keys, "MAX_ADDRESSES", 3)

    def statuses(host: str, number: int) -> list[int]:
        return [answers.answer(host, "x").status_code for _ in range(number)]

    assert statuses("192.0.2.1", 7) == [401] * 5 + [429] * 2
    now += 12
    assert statuses("192.0.2.1", 2) == [401, 429]
    now += 60
    assert statuses("192.0.2.1", 6) == [401] * 5 + [429]
    for number in range(3):  # as many others make the service forget it
        assert statuses(f"192.0.2.{2 + number}", 1) == [401]
    assert statuses("192.0.2.1", 1) == [401]


ALICE, BOB = "alices-key-is-long", "bobs-key-is-longer"


def named(name: str, key: str) -> str:
    return f"{name}: {hashlib.sha256(key.encode()).hexdigest()}"


def keys_of(file: Path) -> KnownKeys:
    return KnownKeys(read_key_file(file), file)


def as_caller(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def call(client: httpx.Client, key: str, number: int = 0, **fields: Any) -> httpx.Response:
    """Send one row, or a list of so many."""
    body = [row(**fields)] * number if number else row(**fields)
    return client.post("/judge", json=body, headers=as_caller(key))


def status(client: httpx.Client, *keys: str) -> list[int]:
    return [client.get("/judges", headers=as_caller(key)).status_code for key in keys]


@contextmanager
def serving_both(service: Service) -> Iterator[httpx.Client]:
    """A service that knows the keys of Alice and Bob."""
    with serving(service, [named("alice", ALICE), named("bob", BOB)]) as client:
        yield client


def replace(file: Path, text: str) -> None:
    """Write a file as editors do: a new one takes its place."""
    new = file.with_name("new")
    new.write_text(text)
    new.chmod(0o600)
    os.replace(new, file)


def test_keys_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(keys: KnownKeys | None, key: str) -> str:
        assert keys
        known = keys.find(key)
        return known.name if known else "unknown"

    first, second = "a" * 16, "b" * 40
    monkeypatch.setenv("CUSTOS_API_KEYS", f" {first},{named('bob', second)} ,")
    assert [found(read_keys(None), key) for key in (first, second)] == ["key-1", "bob"]
    monkeypatch.delenv("CUSTOS_API_KEYS")
    assert read_keys(None) is None
    file = tmp_path / "keys"
    file.write_text(f"{second}\n\n  # a comment of sixteen\n{named('alice', first)}\n")
    keys = read_keys(file)
    assert [found(keys, key) for key in (first, second)] == ["alice", "key-1"]
    for text in ("# a comment of sixteen", "a comment of sixteen", "", named("alice", first)):
        assert found(keys, text) == "unknown"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no key"),
        ("# only-a-comment-here\n", "holds no key"),
        ("short\n", "line 1: an access key needs at least 16 characters"),
        ("a" * 16 + "\n" + "ä" * 16, "line 2: expected NAME: and the SHA-256"),
        ("k" * 16 + " # mine\n", "line 1: expected NAME"),
        ("alice: " + "f" * 63, "line 1: expected NAME"),
        ("two words: " + "f" * 64, "line 1: expected NAME"),
        (f"{named('a', ALICE)}\n\n{named('a', BOB)}\n", "keys' line 3: the name 'a' .* line 1"),
        (f"# mine\n{named('a', ALICE)}\n{ALICE}\n", "keys' line 3: this access key .* line 2"),
        (f"{named('key-2', ALICE)}\n{BOB}\n", "keys' line 2: the name 'key-2' .* line 1"),
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "keys"
    with pytest.raises(CustosError, match="cannot be read"):
        read_keys(file)
    file.write_text(content)
    with pytest.raises(CustosError, match=message) as raised:
        read_keys(file)
    assert "kkkk" not in str(raised.value) and "ffff" not in str(raised.value)


def test_a_hash_of_a_short_key_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{named('empty', '')}\n{named('short', 'x' * 15)}\n")
    keys = keys_of(file)
    assert keys.find("") is None
    assert keys.find("x" * 15) is None


def test_files_that_others_may_open_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    file.write_text(ALICE)
    for mode, has_warning in ((0o600, False), (0o640, True), (0o604, True)):
        caplog.clear()
        file.chmod(mode)
        read_keys(file)
        assert ("other users may open it; chmod 600" in caplog.text) is has_warning
        assert ALICE not in caplog.text


def test_a_changed_file_counts_from_the_next_call(
    judge: FakeJudge, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "keys"
    replace(file, f"# who may call\n{named('alice', ALICE)}\n")
    with serving(Service({"a": judge}), keys_of(file)) as client:
        assert status(client, ALICE, BOB) == [200, 401]
        assert status(client, "# who may call") == [401]
        replace(file, named("bob", BOB))
        assert status(client, ALICE, BOB) == [401, 200]
        replace(file, "bob: 3f")  # as while it is written
        assert status(client, ALICE, BOB) == [401, 200]
        file.unlink()
        assert status(client, BOB) == [200]
        replace(file, named("alice", ALICE))
        assert status(client, ALICE, BOB) == [200, 401]
    assert caplog.text.count("access keys read again: bob") == 1  # for all calls after a change
    assert caplog.text.count("the keys that were read before stay valid") == 2
    assert ALICE not in caplog.text


def test_names_are_in_the_log_and_in_metrics_and_keys_are_not(
    judge: FakeJudge, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    service = Service({"a": judge})
    with serving(service, [named("alice", ALICE), BOB]) as client:
        for key in (ALICE, BOB, BOB, "unknown"):
            call(client, key)
        metrics = generate_latest(service.metrics.registry).decode()
    assert 'judge_key_calls_total{key="alice",status="200"} 1.0' in metrics
    assert 'judge_key_calls_total{key="key-2",status="200"} 2.0' in metrics
    assert "POST /judge 200" in caplog.text and "ms key alice" in caplog.text
    for key in (ALICE, BOB):
        assert key not in metrics + caplog.text
        assert hashlib.sha256(key.encode()).hexdigest() not in metrics + caplog.text


def test_a_call_behind_another_on_its_connection_has_not_its_key(
    judge: FakeJudge, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    head = "GET /judges HTTP/1.1\r\nHost: x\r\n"
    calls = f"{head}Authorization: Bearer {ALICE}\r\n\r\n{head}Connection: close\r\n\r\n"
    with serving(Service({"a": judge}), [named("alice", ALICE)]) as client:
        with send_raw(client, calls.encode()) as connection:
            answers = connection.makefile("rb").read()
    assert answers.count(b"HTTP/1.1 200") == answers.count(b"HTTP/1.1 401") == 1
    assert caplog.text.count("key alice") == 1


def test_metrics_tell_a_key_what_is_its_own_and_nothing_else(judge: FakeJudge) -> None:
    def counters(client: httpx.Client, key: str) -> dict[str, float]:
        text = client.get("/metrics", headers=as_caller(key)).text
        samples = (
            each for family in text_string_to_metric_families(text) for each in family.samples
        )
        return {
            f"{sample.name}{sorted(sample.labels.items())}": sample.value
            for sample in samples
            if "/metrics" not in sample.labels.values() and not sample.name.endswith("_created")
        }

    def is_own(name: str) -> bool:
        return "judge_key_calls" not in name

    with serving_both(Service({"a": judge})) as client:
        call(client, ALICE)
        before = counters(client, ALICE)
        for _ in range(3):
            call(client, BOB, response="break")
            call(client, BOB)
        of_alice, of_bob = counters(client, ALICE), counters(client, BOB)
    verdicts = "judge_verdict_total[('judge', 'a'), ('label', 'Correct'), ('status', 'scored')]"
    assert (of_alice[verdicts], of_bob[verdicts]) == (1, 3)
    assert {n: v for n, v in of_alice.items() if is_own(n)} == {
        n: v for n, v in before.items() if is_own(n)
    }
    assert not [name for name in of_alice if "bob" in name]
    assert any("judge_confidence_count" in name for name in of_alice)


def test_the_page_of_the_queue_tells_a_key_of_its_own_requests(closed: FakeJudge) -> None:
    service = Service({"a": closed})
    with serving(service, [ALICE, BOB]) as client, ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(call, client, key) for key in (ALICE, ALICE, BOB)]
        wait_until(lambda: waiting(service) == 3)
        seen = [
            client.get("/pages/queue.json", headers=as_caller(key)).json() for key in (ALICE, BOB)
        ]
        closed.gate.set()
        assert [each.result().status_code for each in calls] == [200] * 3
    assert [state["queued"]["a"] + state["running"]["a"] for state in seen] == [2, 1]
    assert [state["counters"]["accepted"] for state in seen] == [2, 1]


def test_a_key_file_changed_in_place_with_its_size_and_time_is_read(
    judge: FakeJudge, tmp_path: Path
) -> None:
    first, second = "a" * 20, "b" * 20
    file = tmp_path / "keys"
    file.write_text(first)
    file.chmod(0o600)
    time = file.stat()
    with serving(Service({"a": judge}), keys_of(file)) as client:
        assert status(client, first, second) == [200, 401]
        file.write_text(second)
        os.utime(file, ns=(time.st_atime_ns, time.st_mtime_ns))
        assert status(client, first, second) == [401, 200]


def waiting(service: Service) -> int:
    state = service.queue()
    return sum(state.queued.values()) + sum(state.running.values())


def test_a_key_takes_a_share_of_the_queue_and_others_still_come_in(closed: FakeJudge) -> None:
    service = Service({"a": closed}, Limits(queue_requests=20))
    with serving_both(service) as client:
        calls = [threading.Thread(target=call, args=(client, ALICE, 1))]
        calls[0].start()
        wait_until(lambda: service.queue().running == {"a": 1})
        calls.append(threading.Thread(target=call, args=(client, ALICE, 8)))
        calls[1].start()
        wait_until(lambda: waiting(service) == 9)
        refused = call(client, ALICE, 3)
        assert refused.status_code == 429
        assert "too many requests of this key are waiting" in refused.text
        assert int(refused.headers["Retry-After"]) >= 1
        calls.append(threading.Thread(target=call, args=(client, BOB, 10)))
        calls[2].start()
        wait_until(lambda: waiting(service) == 19)
        closed.gate.set()
        for each in calls:
            each.join()
        assert call(client, ALICE, 3).status_code == 200


def test_a_key_has_a_quota_of_requests_in_a_minute(judge: FakeJudge) -> None:
    service = Service({"a": judge}, Limits(key_requests_per_minute=10))
    with serving_both(service) as client:
        assert call(client, ALICE, 8).status_code == 200
        refused = call(client, ALICE, 8)
        assert refused.status_code == 429
        assert "10 requests in a minute" in refused.text
        assert 30 <= int(refused.headers["Retry-After"]) <= 36
        assert call(client, BOB, 8).status_code == 200
        assert call(client, ALICE, 1).status_code == 200


@pytest.mark.parametrize("share_cache", [False, True])
def test_kept_verdicts_answer_their_own_key(
    judge: FakeJudge, tmp_path: Path, share_cache: bool
) -> None:
    cache = VerdictCache(tmp_path, 1_000_000)
    service = Service({"a": judge}, cache=cache, share_cache=share_cache)
    with serving_both(service) as client:
        for number, key in enumerate((ALICE, ALICE, BOB, BOB)):
            assert call(client, key, id=str(number)).json()["label"] == "Correct"
    assert judge.batches == ([["0"]] if share_cache else [["0"], ["2"]])


def test_only_this_user_may_open_the_cache(tmp_path: Path) -> None:
    (tmp_path / FILE).touch(mode=0o644)
    cache = VerdictCache(tmp_path, 1_000_000)
    cache.put({})
    files = list(tmp_path.iterdir())
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    cache.close()


def test_the_line_that_the_page_shows_is_a_key(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")
    command = page.partition("```sh\nkey=$(openssl")[2].partition("```")[0]
    subprocess.run(f"key=$(openssl{command}", shell=True, check=True, cwd=tmp_path)
    [file] = [path for path in tmp_path.iterdir() if path.name == "keys.txt"]
    assert [key.name for key in keys_of(file).keys] == ["alice"]
