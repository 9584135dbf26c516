"""ChartHal-style questions: charts sampled, written by a (fake) model, checked by people."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from benchmarks.framework.base import get_benchmark
from cli.main import app
from data_prep.construction.charthal.charts import Chart, sample_charts
from data_prep.construction.charthal.checks import (
    Check,
    Question,
    parse_ranges,
    read_sheet,
    settle,
    write_sheet,
)
from data_prep.construction.charthal.recipes import CELLS, parse_question, recipe
from judging.errors import CustosError
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        yield server


def chart(number: int, num_subplots: int, discipline: str, chart_type: str) -> Chart:
    return Chart(
        id=str(number),
        images=(f"{number}.png",),
        num_subplots=num_subplots,
        discipline=discipline,
        chart_type=chart_type,
    )


POOL = [
    chart(
        number, 1 + number % 3, "cs" if number % 4 else "physics", "bar" if number % 7 else "line"
    )
    for number in range(300)
]


def test_subplots_three_to_two_and_disciplines_in_proportion() -> None:
    chosen = sample_charts(POOL, 50, seed=1)
    assert Counter(c.num_subplots for c in chosen) == {1: 30, 2: 20}
    for subplots, count in ((1, 30), (2, 20)):
        pool = [c for c in POOL if c.num_subplots == subplots]
        share = sum(c.discipline == "physics" for c in pool) / len(pool)
        found = sum(c.discipline == "physics" for c in chosen if c.num_subplots == subplots)
        assert abs(found - count * share) < 1
    assert chosen == sample_charts(POOL, 50, seed=1)
    assert chosen != sample_charts(POOL, 50, seed=2)
    assert len({c.id for c in chosen}) == 50


def test_every_chart_type_stays_in() -> None:
    rare = chart(999, 2, "physics", "radar")
    for seed in range(10):
        chosen = sample_charts([*POOL, rare], 10, seed)
        assert rare in chosen
        assert Counter(c.num_subplots for c in chosen) == {1: 6, 2: 4}
        assert sum(c.discipline == "physics" for c in chosen) in (2, 3)


def test_too_few_charts() -> None:
    with pytest.raises(CustosError, match="10 charts take 6 with num_subplots 1, there are 2"):
        sample_charts(POOL[:6], 10, seed=0)


def test_recipes_hold_every_criterion_of_their_cell() -> None:
    assert len(CELLS) == len({recipe(cell) for cell in CELLS}) == 12
    needed = {
        "desc": ["facts", "concrete answer"],
        "reason": ["difference", "comparison", "trend", "concrete answer"],
        "open": ["explanation", "cause", "interpretation", "prediction", "no particular fact"],
        "irrel": ["topic that does not occur in the chart at all", "cannot be answered"],
        "inexist": ["year", "category", "label", "variable", "missing", "cannot be answered"],
        "contra": ["false", "never in the question", "what the chart shows instead"],
        "normal": ["only of what the chart really shows", "consistent"],
    }
    for cell in CELLS:
        text = recipe(cell)
        assert all(word in text for word in needed[cell.q_type] + needed[cell.q_relation]), cell
        assert ("leaving the statement aside" in " ".join(text.split())) == (
            cell.q_relation == "contra" and cell.q_type != "open"
        )
        assert ("tentative" in text) == (cell == ("open", "normal"))


@pytest.mark.parametrize(
    "text",
    [
        "Question: Why?\nAnswer: Because.",
        "**Question:** Why?\n\n**Answer:** Because.",
        "\n### Question: Why?\n### Answer: Because.\n",
    ],
)
def test_replies_are_read(text: str) -> None:
    assert parse_question(text) == ("Why?", "Because.")


@pytest.mark.parametrize("text", ["", "Why?", "Answer: a\nQuestion: b", "Question: Why? Answer: x"])
def test_other_replies_are_not(text: str) -> None:
    with pytest.raises(CustosError, match="expected 'Question:'"):
        parse_question(text)


def question(number: int = 0, **fields: Any) -> Question:
    given = {
        "id": f"7_{number}", "figure_id": "7", "figure_path": "images/7.png", "subq_idx": number,
        "q_type": "desc", "q_relation": "normal", "question": f"How many, {number}?",
        "ref_answer": "About 5.",
    }  # fmt: skip
    return Question.model_validate(given | fields)


def check(asked: Question, status: str, **fields: Any) -> Check:
    return Check.model_validate({**asked.model_dump(), "status": status, **fields})


awkward = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1)


@settings(deadline=None, max_examples=40)
@given(awkward, awkward)
def test_sheets_give_back_what_went_in(
    tmp_path_factory: pytest.TempPathFactory, asked: str, answer: str
) -> None:
    folder = tmp_path_factory.mktemp("sheets")
    sent = [question(0, question=asked, ref_answer=answer), question(1, question='=1+1, "x"\n')]
    for name in ("a.csv", "a.jsonl"):
        write_sheet(folder / name, sent)
        back = read_sheet(folder / name)
        assert [
            row.model_dump(exclude={"status", "acceptable_ranges", "note"}) for row in back
        ] == [row.model_dump() for row in sent]
        assert {row.status for row in back} == {""}


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    write_sheet(tmp_path / "a.csv", [question(question="=HYPERLINK(1)", ref_answer="-5")])
    [row] = csv.DictReader((tmp_path / "a.csv").open(encoding="utf-8-sig"))
    assert (row["question"], row["ref_answer"]) == ("'=HYPERLINK(1)", "'-5")


def test_ranges_go_into_the_reference_as_charthal_words_them() -> None:
    ruled = check(question(), " KEEP ", acceptable_ranges="[4.5, 5.5]; [45%, 55%]").ruling()
    assert ruled is not None
    told = "(Answers in the range [4.5, 5.5]; [45%, 55%] are ACCEPTABLE)"
    assert ruled.ref_answer == f"About 5. {told}"
    again = check(ruled, "keep", acceptable_ranges="[4.5, 5.5]; [45%, 55%]").ruling()
    assert again == ruled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 to 5", r"expected \[low, high\]"),
        ("[5, 4]", "low <= high"),
        ("[a, b]", "two numbers"),
        ("[nan, 1]", "low <= high"),
        ("[0, inf]", "both finite"),
    ],
)
def test_ranges_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_ranges(text)


def test_annotators_agree_correct_discard_and_differ() -> None:
    sent = [question(n) for n in range(7)]
    corrected = {"question": "How many boats?", "q_relation": "contra"}
    anna = [
        check(sent[0], "keep"),
        check(sent[1], "discard"),
        check(sent[2], "keep", **corrected),
        check(sent[3], "keep"),
        check(sent[4], "keep", acceptable_ranges="[4, 6]"),
        check(sent[5], ""),
        check(sent[6], "keep"),
    ]
    ben = [
        check(sent[0], "keep", note="fine"),
        check(sent[1], "discard", note="about nothing"),
        check(sent[2], "keep", **corrected),
        check(sent[3], "discard"),
        check(sent[4], "keep"),
        check(sent[6], ""),
    ]
    rulings = settle(sent, {"anna": anna, "ben": ben})
    assert [kept.id for kept in rulings.kept] == ["7_0", "7_2", "7_6"]
    assert (rulings.kept[1].question, rulings.kept[1].q_relation) == ("How many boats?", "contra")
    assert rulings.discarded == ["7_1"]
    assert rulings.unchecked == ["7_5"]
    assert rulings.disagreements == [
        {"id": "7_3", "status": {"anna": "keep", "ben": "discard"}},
        {"id": "7_4", "acceptable_ranges": {"anna": "[4, 6]", "ben": ""}},
    ]
    settled = settle(sent, {"anna": anna, "ben": ben}, final=[check(sent[3], "discard"), anna[4]])
    assert settled.discarded == ["7_1", "7_3"]
    assert settled.kept[2].ref_answer.endswith("[4, 6] are ACCEPTABLE)")
    assert settled.disagreements == []
    with pytest.raises(CustosError, match="sheet 'final': that name"):
        settle(sent, {"anna": anna, "final": ben})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"status": "maybe"}, "sheet.csv row 1: field 'status'"),
        ({"q_type": "deep"}, "sheet.csv row 1: field 'q_type'"),
        ({"acceptable_ranges": "5"}, r"sheet.csv row 1: .*expected \[low, high\]"),
        ({"status": "keep", "question": " "}, "sheet.csv row 1: .*needs 'question'"),
    ],
)
def test_sheets_filled_in_wrongly(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [question()])
    [row] = csv.DictReader(path.open(encoding="utf-8-sig"))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow({**row, **changed})
    with pytest.raises(CustosError, match=message):
        read_sheet(path)


def test_a_question_that_was_not_sent_out() -> None:
    with pytest.raises(CustosError, match="sheet 'anna': no question '7_3' was sent out"):
        settle([question(0)], {"anna": [check(question(3), "keep")]})


def custos(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_from_charts_to_a_benchmark_file_through_faults(fake: FakeServer, tmp_path: Path) -> None:
    pool = []
    for number in range(5):
        Image.new("RGB", (4, 4), (40 * number, 0, 0)).save(tmp_path / f"{number}.png")
        pool.append(chart(number, 1 + (number > 2), "cs", "bar").model_dump(mode="json"))
    (tmp_path / "charts.json").write_text(json.dumps(pool))

    def answer(seen: Seen) -> Say:
        if "prediction" in seen.text and "does not occur" in seen.text:  # one cell is unreadable
            return Say(body=completion("I would rather not."))
        return Say(body=completion(f"Question: How? {len(seen.text)}\nAnswer: So."))

    fake.answer = answer
    fake.faults.extend([Say(503, "busy", {"Retry-After": "0"}), RESET, Say(body="not JSON")])
    out = tmp_path / "out"
    command = (
        "prep", "charthal-construct", "generate", "--charts", tmp_path / "charts.json",
        "--count", 5, "--base-url", fake.url, "--model", "writer", "--out", out,
    )  # fmt: skip
    assert "55 questions on 5 charts, 5 rejected" in custos(*command)
    assert len(fake.seen) == 5 * 12 + 3
    images = {seen.body["messages"][0]["content"][0]["image_url"]["url"] for seen in fake.seen}
    assert len(images) == 5
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["rejected"] == {"unreadable reply": 5}
    assert manifest["counts"]["open/irrel"] == 0
    assert {n for cell, n in manifest["counts"].items() if cell != "open/irrel"} == {5}
    custos(*command)
    assert len(fake.seen) == 5 * 12 + 3  # nothing is asked twice

    sheet = tmp_path / "anna.csv"
    custos("prep", "charthal-construct", "sheet", out, "--out", sheet)
    checks = read_sheet(sheet)
    kept = [row.model_copy(update={"status": "keep"}) for row in checks[:50]]
    filled = tmp_path / "anna.jsonl"
    filled.write_text("".join(f"{row.model_dump_json()}\n" for row in kept))
    said = custos("prep", "charthal-construct", "collect", out, "--sheet", filled)
    assert "50 kept, 0 discarded, 0 disagreements, 5 unchecked" in said
    rows = get_benchmark("charthal").load(str(out / "charthal.json"))
    assert len(rows) == 50
    assert all(Path(row["images"][0]).is_file() for row in rows)
    [request] = get_benchmark("charthal").requests({**rows[0], "response": "No idea."})
    assert request.task == "charthal"
