"""Many requests: what is kept, what is asked again, what is listed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from clients.chat import JobProgress, JobResult, KeptAnswer, OnProgress, Prices, run_job
from clients.connection import ServerRefusal
from clients.messages import ChatItem, Decoding
from judging.errors import CustosError
from judging.files.kept_work import KeptFile, locked
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.clients.made_up import item, keyed

ODD_TEXT = "a\0b\x1b[2J\x85\u2028\u202ec\r\nd\ue000\U0010ffff"


def items(number: int) -> list[ChatItem]:
    return [item(f"q{i}", f"say {i}") for i in range(number)]


def echo(seen: Seen) -> Say:
    return Say(body=completion(seen.text))


def run(
    fake: FakeServer,
    folder: Path,
    asked: list[ChatItem],
    on_progress: OnProgress | None = None,
    **options: Any,
) -> JobResult:
    return run_job(
        asked,
        keyed(fake, **({"tries": 2} | options)),
        Decoding(temperature=0),
        answers=folder / "answers.jsonl",
        rejects=folder / "rejects.jsonl",
        on_progress=on_progress,
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_job_and_its_repetition(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = echo
    result = run(fake, tmp_path, items(10))
    said = {id: reply.text for id, reply in result.replies.items()}
    assert said == {f"q{i}": f"say {i}" for i in range(10)}
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (1000, 100)
    assert result.account(Prices(prompt=1.0, completion=10.0)) == {
        "reused": 0,
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
        "uncounted": 0,
        "cost": pytest.approx(0.002),
    }
    assert {line["id"] for line in lines(tmp_path / "answers.jsonl")} == result.replies.keys()
    assert not (tmp_path / "rejects.jsonl").exists()

    changed = [item("q0", "say else"), *items(12)[1:]]
    uncounted = json.loads(completion("ok")) | {"usage": None}
    fake.faults.append(Say(body=json.dumps(uncounted)))
    again = run(fake, tmp_path, changed)
    assert {seen.text for seen in fake.seen[10:]} == {"say else", "say 10", "say 11"}
    assert (len(again.replies), again.num_reused) == (12, 9)
    assert again.account(None)["uncounted"] == 1
    assert again.usage.prompt_tokens == 1100
    with locked(tmp_path / "answers.jsonl"), pytest.raises(CustosError, match="another run is"):
        run(fake, tmp_path, items(1))
    with pytest.raises(CustosError, match="id 'q0'"):
        run(fake, tmp_path, [*items(2), *items(1)])
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_progress_counts_answers_failures_and_tokens(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(400, "no") if seen.text == "say 1" else echo(seen)
    run(fake, tmp_path, items(2))
    steps: list[JobProgress] = []
    run(fake, tmp_path, items(4), steps.append, concurrency=1)
    done = [(now.num_items, now.num_done, now.num_failed) for now in steps]
    assert done == [(4, 1, 0), (4, 2, 1), (4, 3, 1), (4, 4, 1)]
    assert [now.usage.completion_tokens for now in steps] == [10, 10, 20, 30]


def test_failed_items_are_listed_and_asked_again(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(500, "no") if seen.text in ("say 1", "say 3") else echo(seen)
    result = run(fake, tmp_path, items(5))
    rejects = lines(tmp_path / "rejects.jsonl")
    assert sorted(reject["id"] for reject in rejects) == ["q1", "q3"]
    assert {reject["reason"] for reject in rejects} == {"request failed"}
    assert [reject.model_dump() for reject in result.rejects] == rejects
    assert len(result.replies) == 3
    fake.answer = echo
    result = run(fake, tmp_path, items(5))
    assert len(fake.seen) == 3 + 2 * 2 + 2
    assert (len(result.replies), result.num_reused, result.rejects) == (5, 3, [])
    assert not (tmp_path / "rejects.jsonl").exists()


def test_a_refusal_stops_the_job_and_keeps_what_came(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(401) if len(fake.seen) > 3 else echo(seen)
    with pytest.raises(ServerRefusal, match="refuses the API key"):
        run(fake, tmp_path, items(20), concurrency=1)
    assert len(lines(tmp_path / "answers.jsonl")) == 3
    assert len(fake.seen) == 4


BODIES = {
    "half a surrogate pair": completion("a").replace('"a"', r'"a \ud800 b"'),
    "200,000 brackets": "[" * 200_000,
    "too many digits": completion("a").replace("100", "9" * 5000),
    "a negative count": completion("a", prompt_tokens=-5),
    "no object": "null",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_reply_that_cannot_be_used_fails_its_item_alone(
    fake: FakeServer, tmp_path: Path, body: str
) -> None:
    fake.answer = lambda seen: Say(body=body) if seen.text == "say 1" else echo(seen)
    result = run(fake, tmp_path, items(3), tries=1)
    assert {id: reply.text for id, reply in result.replies.items()} == {
        "q0": "say 0",
        "q2": "say 2",
    }
    [reject] = result.rejects
    assert reject.id == "q1"
    assert len(reject.detail) < 1000 and reject.detail.isprintable()
    assert lines(tmp_path / "rejects.jsonl") == [reject.model_dump()]
    assert result.account(Prices(1, 1))["cost"] == pytest.approx(220e-6)


def test_odd_characters_are_kept_as_they_are(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(body=completion(ODD_TEXT))
    for num_reused in (0, 2):
        result = run(fake, tmp_path, items(2))
        assert {reply.text for reply in result.replies.values()} == {ODD_TEXT}
        assert result.num_reused == num_reused
    kept = KeptFile(tmp_path / "answers.jsonl", KeptAnswer).lines()
    assert [line.reply.text for line in kept] == [ODD_TEXT] * 2


JOB = """
import sys
from pathlib import Path
from clients.connection import ModelServer
from clients.chat import run_job
from clients.messages import ChatItem, Decoding
from judging.types import Message

folder = Path(sys.argv[2])
items = [
    ChatItem(id=f"q{i}", messages=(Message(role="user", text=f"say {i}"),)) for i in range(40)
]
files = {"answers": folder / "answers.jsonl", "rejects": folder / "rejects.jsonl"}
run_job(items, ModelServer(sys.argv[1], "m", concurrency=4), Decoding(), **files)
"""


@pytest.mark.usefixtures("forking_python")
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_taken_up_again(fake: FakeServer, tmp_path: Path, blow: signal.Signals) -> None:
    """No answer comes after the first twelve, so that it cannot end before it is stopped."""

    def answer(seen: Seen) -> Say:
        return Say(body=completion(seen.text), delay=0.0 if len(fake.seen) <= 12 else 600.0)

    fake.answer = answer
    command = [sys.executable, "-c", JOB, fake.url, str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    path = tmp_path / "answers.jsonl"
    while not path.exists() or path.read_bytes().count(b"\n") < 10:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, blow)
    process.communicate(timeout=60)
    assert process.returncode in (-blow, 1)
    saved = {
        json.loads(line)["id"] for line in path.read_bytes().splitlines(True) if line[-1:] == b"\n"
    }
    assert 10 <= len(saved) < 40
    before = len(fake.seen)
    fake.answer = lambda seen: Say(body=completion(seen.text))
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    asked_again = [f"q{seen.text.removeprefix('say ')}" for seen in fake.seen[before:]]
    assert len(asked_again) == 40 - len(saved)
    assert not saved & set(asked_again)
    assert Counter(line["id"] for line in lines(path)) == Counter(f"q{i}" for i in range(40))
