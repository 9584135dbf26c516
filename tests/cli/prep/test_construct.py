"""Constructions from questions to rows that people settled, through faults."""

import inspect
import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sklearn.metrics import cohen_kappa_score

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.responses import build_questions
from cli.prep.sheets import screen
from data_prep.construction.sheets import item_name
from judging.errors import CustosError
from judging.types import Verdict
from tests.cli.made_up import read_csv, write_csv
from tests.cli.prep.made_up import read, run, write_rows
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion
from tests.data_prep.construction.conftest import fake as fake
from tests.data_prep.construction.made_up import chart, lines, say

JUDGES = ("j1", "j2", "j3", "j4", "j5")


def answer_or_judge(seen: Seen) -> Say:
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
    fake.answer = answer_or_judge
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
        rows = read_csv(sheet)
        assert rows[0]["Ground truth"] == "4"
        write_csv(sheet, [{**row, "score": "Correct"} for row in rows])
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
    shown = run(*command, "--prompt-price", 1).stdout
    assert "j1: 12 of 12 labels\ntokens: " in shown and ", cost 0." in shown
    assert "j5: 10 of 12 labels" in shown
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


def test_models_that_would_share_a_folder(fake: FakeServer, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "questions.jsonl", [{"id": "1", "question": "q"}])
    with pytest.raises(CustosError, match="would share a folder"):
        run(
            "construct", "respond", "--in", source, "--base-url", fake.url, "--model", "a/b",
            "--model", "a_b", "--out", tmp_path / "out",
        )  # fmt: skip
    assert fake.seen == []


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
        filled = {**check, "answer_found": "blue0"}
        rows_of_sheet = read_csv(sheet)
        write_csv(sheet, [r | filled if "thing 0" in r["Question"] else r for r in rows_of_sheet])
    sheets = ("--sheet", tmp_path / "anna.csv", "--sheet", tmp_path / "ben.csv")
    result = run(
        "construct", "collect", "simplevqa", "--in", final, *sheets, "--out", tmp_path / "final"
    )
    assert "1 settled, 0 discarded, 0 disagreements, 2 unfinished" in result.stdout
    [item] = lines(tmp_path / "final" / "rows.jsonl")
    assert (item["data_id"], item["sources"]) == ("s0", ["x", "y"])


ANSWERS = {"anna": "CCCWWWPC", "ben": "CCCWWWPW", "cem": "WCWCWPCC"}
"""Everybody's scores of eight rows; the last two are gold, and the key is W."""
WORDS = {"C": "Correct", "W": "Wrong", "P": "Partial"}
GOLD = 2


@pytest.fixture
def sheets(tmp_path: Path) -> list[object]:
    rows = [
        {"id": f"r{n}", "question": "?", "references": ["a"], "response": "b"} for n in range(8)
    ]
    gold = [row | {"gold": {"score": "Wrong"}} for row in rows[-GOLD:]]
    write_rows(tmp_path / "rows.jsonl", rows[:-GOLD])
    write_rows(tmp_path / "gold.jsonl", gold)
    for name, letters in ANSWERS.items():
        given = [
            {"item": item_name(f"r{n}"), "score": WORDS[letter]} for n, letter in enumerate(letters)
        ]
        write_csv(tmp_path / f"{name}.csv", given)
    named = [word for name in ANSWERS for word in ("--sheet", tmp_path / f"{name}.csv")]
    return ["--in", tmp_path / "rows.jsonl", "--gold", tmp_path / "gold.jsonl", *named]


def people(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "agreement.json").read_text())["annotators"]
    return found


def test_people_below_a_threshold_are_named(sheets: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--min-kappa", 0.2, "--min-gold", 0.5)
    shown = run(
        "construct", "collect", "hieval-qs", *sheets, *options, "--out", out
    ).stdout.splitlines()
    measured = people(out)
    for name in ANSWERS:
        own: list[str] = []
        others: list[str] = []
        for other in set(ANSWERS) - {name}:
            own += ANSWERS[name][:-GOLD]
            others += ANSWERS[other][:-GOLD]
        kappa = measured[name]["kappa"]["score"]
        assert kappa["value"] == pytest.approx(cohen_kappa_score(own, others))
        assert kappa["n"] == 12
    below = {name: [text.split()[0] for text in measured[name]["below"]] for name in ANSWERS}
    assert below == {"anna": ["gold"], "ben": [], "cem": ["kappa", "gold"]}
    assert [line.split(":")[0] for line in shown if line.startswith("retrain")] == [
        "retrain anna",
        "retrain cem",
    ]
    assert "2 of 3 people are below a threshold" in shown


def test_agreement_is_told_by_label(sheets: list[object], tmp_path: Path) -> None:
    """Pool the pairs of three people, and set each label against all others (HiEval's Table 7)."""
    out = tmp_path / "out"
    run("construct", "collect", "hieval-qs", *sheets, "--out", out)
    measured = json.loads((out / "agreement.json").read_text())["entries"]["score"]
    pairs = [
        (a, b)
        for first, second in combinations(ANSWERS.values(), 2)
        for a, b in zip(first[:-GOLD], second[:-GOLD], strict=True)
    ]
    assert measured["kappa"]["value"] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    for letter, label in WORDS.items():
        sides = zip(*((a == letter, b == letter) for a, b in pairs), strict=True)
        assert measured["per_label"][label]["value"] == pytest.approx(cohen_kappa_score(*sides))


def test_from_charts_to_a_benchmark_file_through_faults(fake: FakeServer, tmp_path: Path) -> None:
    pool = []
    for number in range(5):
        Image.new("RGB", (4, 4), (40 * number, 0, 0)).save(tmp_path / f"{number}.png")
        pool.append(chart(number, 1 + (number > 2), "cs", "bar").model_dump(mode="json"))
    (tmp_path / "charts.json").write_text(json.dumps(pool))

    def answer(seen: Seen) -> Say:
        recipe = str(seen.body["messages"][0]["content"])
        if "prediction" in recipe and "does not occur" in recipe:  # one cell is unreadable
            return Say(body=completion("I would rather not."))
        return Say(
            body=completion(json.dumps({"question": f"How? {len(seen.text)}", "answer": "So."}))
        )

    fake.answer = answer
    fake.faults.extend([Say(503, "busy", {"Retry-After": "0"}), RESET, Say(body="not JSON")])
    out = tmp_path / "out"
    command = (
        "charthal-construct", "generate", "--charts", tmp_path / "charts.json",
        "--count", 5, "--base-url", fake.url, "--model", "writer", "--out", out,
    )  # fmt: skip
    shown = run(*command).stdout
    assert "55 questions on 5 charts, 5 rejected" in shown and "tokens: " in shown
    assert len(fake.seen) == 5 * 12 + 3 + 5  # five replies without JSON are asked for again
    images = {seen.body["messages"][1]["content"][0]["image_url"]["url"] for seen in fake.seen}
    assert len(images) == 5
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["rejected"] == {"not JSON": 5}
    assert manifest["counts"]["open/irrel"] == 0
    assert {n for cell, n in manifest["counts"].items() if cell != "open/irrel"} == {5}
    run(*command)
    assert len(fake.seen) == 5 * 12 + 8  # nothing is asked twice

    sheet = tmp_path / "anna.csv"
    run("charthal-construct", "sheet", out, "--out", sheet)
    write_csv(sheet, [{**row, "status": "keep"} for row in read_csv(sheet)[:50]])
    result = run("charthal-construct", "collect", out, "--sheet", sheet)
    assert "50 kept, 0 discarded, 0 disagreements, 5 unchecked" in result.stdout
    rows = get_benchmark("charthal").load(str(out / "charthal.json"))
    assert len(rows) == 50
    assert all(Path(row["images"][0]).is_file() for row in rows)
    [request] = get_benchmark("charthal").requests({**rows[0], "response": "No idea."})
    assert request.task == "charthal"


def test_steps_and_forms_are_listed() -> None:
    assert "simplevqa-rewrite" in run("construct", "steps").stdout
    shown = run("construct", "forms").stdout
    assert "truthful-pair" in shown and "error_type" in shown


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


def test_judges_of_several_files_all_count(tmp_path: Path) -> None:
    items = write_rows(tmp_path / "items.jsonl", [{"id": "q", "question": "Boats?"}])
    about = {"item": "q", "answerer": "m"}
    response = {"id": "r", "question": "Boats?", "references": ["2"], "response": "3"}
    responses = write_rows(tmp_path / "rows.jsonl", [{**response, "metadata": about}])
    command = ["construct", "screen", "--in", items, "--responses", responses, "--models", 1]
    for label in ("Wrong", "Correct"):
        path = tmp_path / f"{label}.json"
        path.write_text(json.dumps({"r": [label]}))
        command += ["--verdicts", path]
    assert "1 kept" in run(*command, "--out", tmp_path / "kept.jsonl").stdout
