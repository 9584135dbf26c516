"""``custos eval`` and ``custos compare`` on rows that several people labelled."""

import json
from pathlib import Path
from typing import Any

import pytest

from judging.judge import Judge
from tests.cli.made_up import succeed
from tests.serve.made_up import FakeJudge

NAMES = ("anna", "ben", "carla")


@pytest.fixture(autouse=True)
def fake_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge(source))


def rows() -> list[dict[str, str]]:
    """Forty answers; ben errs on every fifth, and carla labelled every second one."""
    made = []
    for number in range(40):
        right = number % 3 > 0
        words = ["no", "yes"]
        labels = (right, right != (number % 5 == 0), right if number % 2 else None)
        given = {
            name: "" if label is None else words[label]
            for name, label in zip(NAMES, labels, strict=True)
        }
        response = "Paris" if right else "Rome"
        made.append({"question": f"Which {number}?", "response": response, **given})
    return made


def wide(path: Path) -> Path:
    lines = ["question,references,response," + ",".join(NAMES)]
    for row in rows():
        lines.append(
            f"{row['question']},Paris,{row['response']}," + ",".join(row[name] for name in NAMES)
        )
    path.write_text("\n".join(lines))
    return path


def long(path: Path) -> Path:
    lines = ["question,references,response,who,label"]
    for name in NAMES:  # a file for each person, one after the other
        lines += [
            f"{row['question']},Paris,{row['response']},{name},{row[name]}"
            for row in rows()
            if row[name]
        ]
    path.write_text("\n".join(lines))
    return path


def evaluate(data: Path, out: Path, *options: str) -> tuple[Any, dict[str, Any]]:
    words = ("--labels", "yes=Correct,no=Wrong", "--no-zero-shot")
    result = succeed("eval", "mine", "--data", data, "--out", out, *words, *options)
    return result, json.loads((out / "report.json").read_text())


def test_columns_and_rows_of_people_give_the_same_report(tmp_path: Path) -> None:
    result, report = evaluate(
        wide(tmp_path / "wide.csv"), tmp_path / "a", "--annotators", ",".join(NAMES)
    )
    people = report["annotators"]
    assert people["names"] == list(NAMES)
    assert people["n"] == 40
    assert [people["each"][name]["n"] for name in NAMES] == [40, 40, 20]
    assert people["each"]["carla"]["p"] is None, "fewer than 30 rows"
    assert people["alternative"]["tested"] == 2
    assert people["alternative"]["epsilon"] == 0.1
    assert (tmp_path / "a" / "people.png").stat().st_size > 1000
    assert max(len(line) for line in result.stdout.splitlines() if str(tmp_path) not in line) <= 80
    _, other = evaluate(long(tmp_path / "long.csv"), tmp_path / "b", "--map", "annotators=who")
    assert other["annotators"]["each"] == people["each"]
    assert other["metrics"]["accuracy"] == report["metrics"]["accuracy"]

    compared = succeed(
        *("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", str(tmp_path / "c.json"))
    )
    difference = json.loads((tmp_path / "c.json").read_text())["annotators"]["agreement"]
    assert difference["difference"]["value"] == 0
    assert "agreement with a person" in compared.stdout


@pytest.mark.usefixtures("no_pictures")
def test_epsilon_is_what_a_judge_may_lose(tmp_path: Path) -> None:
    data, options = wide(tmp_path / "wide.csv"), ("--annotators", ",".join(NAMES))
    reports = [
        evaluate(data, tmp_path / each, *options, "--epsilon", each)[1]["annotators"]
        for each in ("0.01", "0.3")
    ]
    strict, lax = (each["each"]["anna"]["p"] for each in reports)
    assert strict > lax
    assert [each["alternative"]["epsilon"] for each in reports] == [0.01, 0.3]


def test_the_same_file_is_graded_without_peoples_columns(tmp_path: Path) -> None:
    out = tmp_path / "verdicts.jsonl"
    data, people = wide(tmp_path / "wide.csv"), ("--annotators", ",".join(NAMES))
    succeed("grade", "--judge", "mine", "--in", data, *people, "--out", out)
    assert len(out.read_text().splitlines()) == 40
