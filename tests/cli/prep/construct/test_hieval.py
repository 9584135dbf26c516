"""HiEval's construction: responses, people's labels, judges' verdicts, and the two filters."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from judging.types import Verdict
from tests.cli.prep.made_up import read, run, write_rows
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.data_prep.construction.made_up import lines

JUDGES = ("j1", "j2", "j3", "j4", "j5")


def answer(seen: Seen) -> Say:
    """Judges call everything Correct, but j1 to j3 call answers to odd questions Wrong."""
    model, text = seen.body["model"], seen.text
    if not model.startswith("j"):
        return Say(body=completion("four" if model == "short" else f"I think it is four: {text}"))
    is_odd = any(f"question {n}?" in text for n in (1, 3, 5))
    label = "Wrong" if is_odd and model in JUDGES[:3] else "Correct"
    return Say(
        body=completion("I cannot tell" if "question 0?" in text and model == "j5" else label)
    )


def test_from_questions_to_contested_rows(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = answer
    questions = [
        {"id": f"q{n}", "question": f"What is question {n}?", "answer": 4} for n in range(6)
    ]
    source = write_rows(tmp_path / "questions.jsonl", questions)
    server = ("--base-url", fake.url)
    run(
        "construct", "respond", "--in", source, *server, "--model", "org/long", "--model", "short",
        "--out", tmp_path / "answers",
    )  # fmt: skip
    answers = tmp_path / "answers" / "rows.jsonl"
    rows = lines(answers)
    assert [row["id"] for row in rows[:2]] == ["q0/org/long", "q0/short"]
    assert rows[0]["metadata"] == {"item": "q0", "answerer": "org/long"}
    assert (tmp_path / "answers" / "org_long" / "answers.jsonl").is_file()

    for name in ("anna", "ben"):
        sheet = tmp_path / f"{name}.csv"
        run("construct", "sheet", "hieval-qs", "--in", answers, "--out", sheet)
        label_all(sheet, "Correct")
    result = run(
        "construct", "collect", "hieval-qs", "--in", answers, "--sheet", tmp_path / "anna.csv",
        "--sheet", tmp_path / "ben.csv", "--out", tmp_path / "labels",
    )  # fmt: skip
    assert "12 settled" in result.stdout
    agreement = json.loads((tmp_path / "labels" / "agreement.json").read_text())
    assert agreement["entries"]["score"]["agreement"]["value"] == 1

    labels = tmp_path / "labels" / "rows.jsonl"
    graded = tmp_path / "graded.jsonl"
    given = [Verdict(id=row["id"], status="scored", label="Wrong") for row in lines(labels)]
    graded.write_text("".join(f"{verdict.model_dump_json()}\n" for verdict in given))
    models = [word for judge in JUDGES for word in ("--model", judge)]
    command: tuple[Any, ...] = (
        "construct", "verdicts", "--in", labels, *server, *models, "--graded", graded,
        "--out", tmp_path / "judges",
    )  # fmt: skip
    shown = run(*command).stdout
    assert "j1: 12 of 12 labels" in shown and "j5: 10 of 12 labels" in shown
    assert "6 judges" in shown
    asked = len(fake.seen)
    run(*command)
    assert len(fake.seen) == asked
    verdicts = json.loads((tmp_path / "judges" / "verdicts.json").read_text())
    assert verdicts["q1/short"] == ["Wrong"] * 3 + ["Correct"] * 2 + ["Wrong"]
    assert verdicts["q0/short"] == ["Correct"] * 4 + [None, "Wrong"]

    run(
        "table", labels, "--min-words", 3, "--verdicts", tmp_path / "judges" / "verdicts.json",
        "--disagreeing", 3, "--models", 6, "--test", "all", "--out", tmp_path / "qs",
    )  # fmt: skip
    assert {row.id for row in read(tmp_path / "qs", "test")} == {
        f"q{n}/org/long" for n in (1, 3, 5)
    }


def label_all(path: Path, score: str) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    assert rows[0]["Ground truth"] == "4"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "score": score} for row in rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name a judge"),
        (("--model", "j1"), "--base-url and --model go together"),
        (("--graded", "graded.jsonl"), "no verdict on row 'b'"),
    ],
)
def test_judges_that_are_not_named_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(
        tmp_path / "rows.jsonl",
        [{"id": name, "question": "q", "references": ["a"], "response": "a"} for name in "ab"],
    )
    verdict = Verdict(id="a", status="scored", label="Correct")
    (tmp_path / "graded.jsonl").write_text(verdict.model_dump_json())
    with pytest.raises(CustosError, match=message):
        run("construct", "verdicts", "--in", "rows.jsonl", "--out", "out", *options)


def test_models_that_would_share_a_folder(fake: FakeServer, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "questions.jsonl", [{"id": "1", "question": "q"}])
    with pytest.raises(CustosError, match="would share a folder"):
        run(
            "construct", "respond", "--in", source, "--base-url", fake.url, "--model", "a/b",
            "--model", "a_b", "--out", tmp_path / "out",
        )  # fmt: skip
    assert fake.seen == []


def test_steps_and_forms_are_listed() -> None:
    assert "simplevqa-rewrite" in run("construct", "steps").stdout
    shown = run("construct", "forms").stdout
    assert "truthful-pair" in shown and "error_type" in shown
