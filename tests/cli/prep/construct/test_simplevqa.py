"""SimpleVQA's construction from seeds to items that the benchmark reads, through faults."""

import csv
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.responses import build_questions
from cli.prep.sheets import screen
from tests.cli.prep.made_up import run, write_rows
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion
from tests.data_prep.construction.made_up import lines, say


def number_in(text: str) -> int:
    match = re.search(r"thing (\d+)", text)
    assert match
    return int(match[1])


def builder(seen: Seen) -> Say:
    """Reply to each step as a model would: seed 7 cannot be used, question 6 is vague."""
    system, number = str(seen.body["messages"][0]["content"]), number_in(seen.text)
    if "yes/no questions" in system:
        qualified = number != 7
        question = f"What is thing {number}?"
        return say(question=question, answer=f"blue{number}", qualified=qualified, reason="dark")
    if "You check a factual question" in system:
        faults = ["ambiguous or vague"] if number == 6 else []
        return say(
            question_analysis="seen", question_faults=faults, answer_analysis="", answer_faults=[]
        )
    if "atomic questions" in system:
        return say(original_question="q", atomic_question=f"Which thing is number {number}?")
    if "asks for the subject alone" in system:
        return say(atomic_fact=f"thing {number}")
    task, domain = ("PE", "AR") if number % 2 else ("LB", "NS")
    return say(task_analysis="", task=task, domain_analysis="", domain=domain)


def answerer(seen: Seen) -> Say:
    """Model a knows everything; model b does not know what is even."""
    number = number_in(seen.text)
    if seen.body["model"] == "judge":
        right = f"Response: blue{number}" in seen.text
        return Say(body=completion("Correct" if right else "Incorrect"))
    knows = seen.body["model"] == "a" or number % 2
    return Say(body=completion(f"blue{number}" if knows else "no idea"))


def step(fake: FakeServer, folder: Path, name: str, source: str, out: str) -> str:
    where = ("--base-url", fake.url, "--model", "m", "--prompt-price", 1)
    result = run(
        "construct", "step", name, "--in", folder / source, *where, "--out", folder / out
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_from_seeds_to_items(fake: FakeServer, tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    seeds = [
        {
            "id": f"s{n}",
            "images": ["a.png"],
            "question1": f"Is thing {n} blue{n}?",
            "answer1": "Yes",
            "question2": f"Is thing {n} red?",
            "answer2": "No",
        }
        for n in range(8)
    ]
    write_rows(tmp_path / "seeds.jsonl", seeds)
    fake.answer = builder
    fake.faults.extend([Say(429, "", {"Retry-After": "0"}), Say(500), RESET, Say(body='{"id": ')])
    shown = step(fake, tmp_path, "simplevqa-rewrite", "seeds.jsonl", "new")
    assert "rejected: 1 (1 not qualified)" in shown
    assert "tokens: 800 prompt and 80 completion, cost 0.0008" in shown
    assert len(fake.seen) == 8 + 4
    shown = step(fake, tmp_path, "simplevqa-check", "new/rows.jsonl", "checked")
    assert "7 rows in, 6 rows out" in shown

    fake.answer = answerer
    checked = tmp_path / "checked" / "rows.jsonl"
    where = ("--base-url", fake.url, "--out")
    respond = (
        "construct", "respond", "--in", checked, "--task", "simplevqa", "--model", "a",
        "--model", "b", *where, tmp_path / "answers",
    )  # fmt: skip
    assert "12 responses" in run(*respond).stdout
    asked = len(fake.seen)
    run(*respond)
    assert len(fake.seen) == asked
    answers = tmp_path / "answers" / "rows.jsonl"
    verdicts = ("construct", "verdicts", "--in", answers, "--model", "judge", *where)
    assert "judge: 12 of 12 labels" in run(*verdicts, tmp_path / "judged").stdout
    judged_with_picture = fake.seen[-1].body["messages"][-1]["content"]
    assert isinstance(judged_with_picture, str)  # the judge of the paper sees no picture
    screened = run(
        "construct", "screen", "--in", checked, "--responses", answers, "--verdicts",
        tmp_path / "judged" / "verdicts.json", "--models", 2, "--out", tmp_path / "hard.jsonl",
    )  # fmt: skip
    assert "3 kept, 3 answered by all, 0 not screened" in screened.stdout
    assert inspect.signature(screen).parameters["models"].default == 4  # as many as the paper asks
    hard = lines(tmp_path / "hard.jsonl")
    assert [row["id"] for row in hard] == ["s0", "s2", "s4"]
    assert hard[0]["right_answers"] == {"models": ["a"], "of": 2}

    fake.answer = builder
    step(fake, tmp_path, "simplevqa-atomic", "hard.jsonl", "atomic")
    step(fake, tmp_path, "simplevqa-fact", "atomic/rows.jsonl", "facts")
    step(fake, tmp_path, "simplevqa-classify", "facts/rows.jsonl", "classified")
    final = tmp_path / "classified" / "rows.jsonl"
    table = tmp_path / "table2.json"
    shown = run("construct", "statistics", "--in", final, "--json", table).stdout
    assert re.search(r"LB\b.*Location & Building.*100\.00%.*21\.53%", shown)
    assert json.loads(table.read_text())["Max query words"] == 4

    benchmark = get_benchmark("simplevqa")
    rows = benchmark.load(str(final))
    questions = build_questions(benchmark, rows, "cfq")
    assert len(questions) == 3 * 3
    assert all(Path(question.chat.messages[0].images[0]).is_file() for question in questions)

    check = {"suitable": "yes", "source1": "x", "source2": "y"}
    for name in ("anna", "ben"):
        sheet = tmp_path / f"{name}.csv"
        run("construct", "sheet", "simplevqa", "--in", final, "--seed", 1, "--out", sheet)
        fill(sheet, {"thing 0": {**check, "answer_found": "blue0"}})
    sheets = ("--sheet", tmp_path / "anna.csv", "--sheet", tmp_path / "ben.csv")
    result = run(
        "construct", "collect", "simplevqa", "--in", final, *sheets, "--out", tmp_path / "final"
    )
    assert "1 settled, 0 discarded, 0 disagreements, 2 unfinished" in result.stdout
    [item] = lines(tmp_path / "final" / "rows.jsonl")
    assert (item["data_id"], item["sources"]) == ("s0", ["x", "y"])


def fill(path: Path, cells_by_text: Mapping[str, Mapping[str, str]]) -> None:
    """Fill in the rows of a sheet whose question holds a text."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        for text, cells in cells_by_text.items():
            if text in row["Question"]:
                row.update(cells)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
