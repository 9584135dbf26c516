"""A user's own rubrics in place of a benchmark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from judging.judge.card import JudgeCard
from judging.tasks import base as tasks
from judging.tasks import get_task
from tests.cli.bench.made_up import Grader, charthal_responses, grade, read
from tests.clients.fake_server import FakeServer, Say, completion

RUBRICS = {name: f"OUR OWN {name}" for name in get_task("charthal").variants}


@pytest.fixture
def rubrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tasks.TASKS, "entries", dict(tasks.TASKS.entries))
    path = tmp_path / "rubrics.yaml"
    path.write_text(yaml.safe_dump(RUBRICS))
    return path


def test_a_users_wording_reaches_a_server(fake: FakeServer, rubrics: Path, tmp_path: Path) -> None:
    """The whole way over a socket: own instructions out, digits back, cost kept."""
    fake.answer = lambda seen: Say(
        body=completion("Score: 1" if "right" in seen.text else "maybe", 100, 10)
    )
    said, out = charthal_responses("right", "wrong", ""), tmp_path / "out.json"
    server = ("--judge", fake.url, "--model", "m")
    priced = ("--prompt-price", "1", "--completion-price", "10")
    done = grade(tmp_path, said, *server, "--rubric-file", rubrics, *priced)
    assert done.exit_code == 0, done.stderr
    rows = list(read(out).values())
    assert [row["score"] for row in rows] == [1, -1, 0]
    assert "in.json row 2: no label in the answer: maybe" in done.stderr
    for seen in fake.seen:
        system, user = seen.body["messages"]
        assert system["content"] == "OUR OWN irrelevant"
        assert user["content"].startswith("Question: Who won?\nResponse: ")
        assert seen.body["temperature"] == 0
    assert read(tmp_path / "out.json.run.json")["cost"] == pytest.approx(2 * (100 + 10 * 10) / 1e6)

    plain = tmp_path / "plain.json"
    assert grade(tmp_path, said, *server, "--out", plain).exit_code == 0
    judges = {
        path: {row["verdicts"]["charthal"]["judge"] for row in read(path).values()}
        for path in (out, plain)
    }
    assert all(len(found) == 1 for found in judges.values())
    assert judges[out] != judges[plain]


def test_a_zero_shot_judge_takes_a_users_wording(
    tiny_folders: Callable[[str], str], rubrics: Path, tmp_path: Path
) -> None:
    found = []
    for more in (("--rubric-file", rubrics), ()):
        said, judge = charthal_responses("It is unrelated."), tiny_folders("qwen2_5_vl")
        assert grade(tmp_path, said, "--judge", judge, *more).exit_code == 0
        found.append(read(tmp_path / "out.json")["0_0"]["verdicts"]["charthal"])
    assert found[0]["judge"] != found[1]["judge"]
    assert found[0]["probabilities"] != found[1]["probabilities"]


OFFICIAL = "Is it unrelated?\nQ: <|QUESTION|>\nR: <|RESPONSE|>\n\nScore it."


@pytest.fixture
def official(rubrics: Path) -> Path:
    rubrics.write_text(yaml.safe_dump({**RUBRICS, "irrelevant": OFFICIAL}))
    return rubrics


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Score: 1\nIt says so.", 1),
        ("**Score**: 0", 0),
        ("1", 1),
        ("Reason: none.\n\nscore - 1", 1),
        ("Score: 10", -1),
        ("a\nb\nc\nScore: 1", -1),
        ("Score: 0.5", -1),
    ],
)
def test_a_prompt_with_the_official_marks_is_the_whole_message(
    fake: FakeServer, official: Path, tmp_path: Path, reply: str, score: int
) -> None:
    fake.answer = lambda seen: Say(body=completion(reply))
    server = ("--judge", fake.url, "--model", "m", "--rubric-file", official)
    grade(tmp_path, charthal_responses("See <|QUESTION|>: 3 apples."), *server)
    [message] = fake.seen[0].body["messages"]
    assert message == {
        "role": "user",
        "content": "Is it unrelated?\nQ: Who won?\nR: See <|QUESTION|>: 3 apples.\n\nScore it.",
    }
    assert [row["score"] for row in read(tmp_path / "out.json").values()] == [score]


def test_a_local_judge_refuses_whole_prompts(
    tiny_folders: Callable[[str], str], official: Path, tmp_path: Path
) -> None:
    options = ("--judge", tiny_folders("qwen2_5_vl"), "--rubric-file", official)
    done = grade(tmp_path, charthal_responses("x"), *options)
    assert done.exit_code == 2
    assert "holds whole prompts, which a chat model alone takes" in done.stderr


def test_a_trained_judge_refuses_a_users_wording(
    judge: Grader, rubrics: Path, tmp_path: Path
) -> None:
    judge.card = JudgeCard(
        backbone="none", backbone_version="none", tasks={"charthal": ("desc",)}, instructions={}
    )
    done = grade(tmp_path, charthal_responses("x"), "--judge", "j", "--rubric-file", rubrics)
    assert done.exit_code == 2
    assert "judge 'fake' was trained under other instructions" in done.stderr
    assert judge.batches == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("- a", "expected every rubric's name"),
        (yaml.safe_dump({**RUBRICS, "mine": "x"}), "rubric 'mine' is not one of normal-closed"),
        (yaml.safe_dump({**RUBRICS, "normal-open": " "}), "rubric 'normal-open' has no text"),
    ],
)
def test_rubric_files_that_cannot_be_used(
    judge: Grader, tmp_path: Path, content: str, message: str
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(content)
    done = grade(tmp_path, charthal_responses("x"), "--judge", "j", "--rubric-file", own)
    assert done.exit_code == 2
    assert message in done.stderr


def test_simplevqas_official_replies_are_read(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.TASKS, "entries", dict(tasks.TASKS.entries))
    prompt = "问题: <|QUESTION|>\n正确答案: <|REF_ANS|>\n预测答案: \n[预测答案0]：<|RESPONSE|>"
    rubrics = tmp_path / "official.yaml"
    rubrics.write_text(yaml.safe_dump({"english": prompt, "chinese": prompt}, allow_unicode=True))
    fake.answer = lambda seen: Say(
        body=completion('{"预测答案0": "正确"}' if "Seine" in seen.text else "A: Correct")
    )
    item = {"language": "EN", "question": "Which river?", "answer": "Loire"}
    items = [{**item, "data_id": str(n), "response": text} for n, text in enumerate(["Seine", "x"])]
    server = ("--judge", fake.url, "--model", "m", "--rubric-file", rubrics)
    done = grade(tmp_path, items, *server, name="simplevqa")
    assert done.exit_code == 0, done.stderr
    rows = read(tmp_path / "out.json")
    conclusions = [part for row in rows for part in row["judge_res"].values()]
    assert conclusions == [{"conclusion": "正确"}] * 2
