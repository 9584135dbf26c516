"""A step over rows, against a server with faults: nothing is lost and nothing is paid twice."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from data_prep.construction.model_writer import load_rows, run_step
from data_prep.construction.steps.base import STEPS
from judging.errors import CustosError
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion
from tests.data_prep.construction.made_up import lines, say, writer

STEP = STEPS.get("simplevqa-atomic")
GOOD = {"original_question": "q?", "atomic_question": "What is it?"}


def write_rows(path: Path, count: int) -> Path:
    rows = [
        {"id": str(n), "question": f"When was {n} built?", "answer": "1900"} for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(fake: FakeServer, folder: Path, count: int = 6, **server: Any) -> dict[str, Any]:
    rows = load_rows(write_rows(folder / "in.jsonl", count), STEP.row_type)
    return run_step(STEP, rows, writer(fake, folder / "out", **server))


def test_faults_cost_nothing_but_time(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: say(**GOOD)
    good = completion(json.dumps(GOOD))
    fake.faults.extend(
        [
            Say(429, "slow down", {"Retry-After": "0.05"}),
            Say(500, "oops"),
            Say(body=good[: len(good) // 2]),  # half of the server's own JSON
            Say(body=good, delay=2.0),  # slower than the deadline
            RESET,
        ]
    )
    manifest = run(fake, tmp_path, deadline=0.5)
    assert manifest["counts"] == {"in": 6, "out": 6}
    assert manifest["rejected"] == {}
    assert len(fake.seen) == 6 + 5
    rows = lines(tmp_path / "out" / "rows.jsonl")
    assert [row["id"] for row in rows] == [str(n) for n in range(6)]
    assert {row["atomic_question"] for row in rows} == {"What is it?"}
    assert manifest["usage"] == {"prompt_tokens": 600, "completion_tokens": 60}
    assert manifest["cost"] == pytest.approx(0.0012)
    run(fake, tmp_path)
    assert len(fake.seen) == 6 + 5


def test_a_wrong_schema_is_mended_once(fake: FakeServer, tmp_path: Path) -> None:
    def answer(seen: Seen) -> Say:
        turns = seen.body["messages"]
        number = turns[1]["content"].split()[3]
        if number == "0" and len(turns) == 2:
            return say(atomic="What is it?")
        if number == "1" or (number == "2" and len(turns) == 2):
            return Say(body=completion('{"original_question": "q?", "atomic'))
        if number == "3":
            return Say(body=cut_off(GOOD))
        return say(**GOOD)

    fake.answer = answer
    manifest = run(fake, tmp_path, 5)
    assert manifest["counts"] == {"in": 5, "out": 3}
    assert manifest["rejected"] == {"cut off": 1, "not JSON": 1}
    rejects = lines(tmp_path / "out" / "rejects.jsonl")
    assert [(row["id"], row["reason"]) for row in rejects] == [("1", "not JSON"), ("3", "cut off")]
    assert len(fake.seen) == 5 + 3
    assert manifest["usage"]["prompt_tokens"] == 800
    mended = next(
        seen.body["messages"]
        for seen in fake.seen
        if len(seen.body["messages"]) == 4 and "When was 0 " in seen.body["messages"][1]["content"]
    )
    assert json.loads(mended[2]["content"]) == {"atomic": "What is it?"}
    assert "field 'original_question'" in mended[3]["content"]
    again = run(fake, tmp_path, 5)
    assert len(fake.seen) == 5 + 3
    assert (again["reused"], again["cost"]) == (8, manifest["cost"])


def cut_off(fields: dict[str, Any]) -> str:
    body = json.loads(completion(json.dumps(fields)))
    body["choices"][0]["finish_reason"] = "length"
    return json.dumps(body)


def test_requests_that_fail_are_sent_again(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(500, "no") if "When was 1 " in seen.text else say(**GOOD)
    manifest = run(fake, tmp_path, 3, tries=2)
    assert manifest["rejected"] == {"request failed": 1}
    fake.answer = lambda seen: say(**GOOD)
    asked = len(fake.seen)
    manifest = run(fake, tmp_path, 3)
    assert (manifest["counts"]["out"], len(fake.seen) - asked) == (3, 1)


JOB = """
import sys
from pathlib import Path
from clients.connection import ModelServer
from clients.messages import Decoding
from data_prep.construction.model_writer import ModelWriter, load_rows, run_step
from data_prep.construction.steps.simplevqa import AtomicQuestion, Item

url, rows, out = sys.argv[1:]
server = ModelServer(url, "m", concurrency=2)
writer = ModelWriter(server, Decoding(), None, Path(out), source={}, command="")
run_step(AtomicQuestion(), load_rows(Path(rows), Item), writer)
"""


@pytest.mark.usefixtures("forking_python")
def test_killed_and_taken_up_again(fake: FakeServer, tmp_path: Path) -> None:
    """After a kill, only what had not arrived is asked again: two requests at most."""
    rows, out = write_rows(tmp_path / "in.jsonl", 12), tmp_path / "out"

    def answer(seen: Seen) -> Say:
        said = say(**GOOD)
        said.delay = 0.0 if len(fake.seen) <= 6 else 600.0  # it cannot end before it is killed
        return said

    fake.answer = answer
    command = [sys.executable, "-c", JOB, fake.url, str(rows), str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    answers, deadline = out / "answers.jsonl", time.monotonic() + 60
    while not (answers.exists() and len(answers.read_bytes().splitlines()) >= 4):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)  # until nobody can write an answer any more
    kept = {line["id"] for line in map(json.loads, answers.read_bytes().split(b"\n")[:-1])}
    assert 4 <= len(kept) < 12
    fake.answer = lambda seen: say(**GOOD)
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
    asked = Counter(seen.text.split()[3] for seen in fake.seen)
    assert {row["id"] for row in lines(out / "rows.jsonl")} == set(asked)
    assert all(asked[name] == 1 for name in kept)
    assert 12 <= sum(asked.values()) <= 12 + 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows that can be used"),
        ('{"id": "1", "question": "q", "answer": "a"}\n' * 2, "'1' occurs twice"),
        ('{"id": "1", "question": "q"}\n', "row 1: field 'answer'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(text)
    with pytest.raises(CustosError, match=message):
        load_rows(path, STEP.row_type)
