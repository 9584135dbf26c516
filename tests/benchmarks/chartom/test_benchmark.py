from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chartom.benchmark import ANSWERS
from benchmarks.framework.base import get_benchmark
from benchmarks.framework.leaderboard import number_of
from judging.errors import CustosError
from judging.types import Verdict
from tests.benchmarks.chartom.test_misleadingness import MANIPULATED, ORIGINAL, everyone
from tests.published_files import published

CHARTOM = get_benchmark("chartom")
PAPER = published("chartom.txt")


def test_table_1() -> None:
    table = CHARTOM.published[0]
    assert table.source == "Table 1"
    assert len(table.rows) == 14
    assert table.rows["G7_Q1"] == ("bar", 0.18, "truncated y-axis", 0.29)
    assert table.rows["G14_Q1"] == ("pie", 0.66, "3D effect + pop out", 0.99)


@pytest.mark.skipif(
    not PAPER.is_file(), reason="needs the paper's text; see tests/published_files.py"
)
def test_table_1_is_the_papers() -> None:
    line = re.compile(r"(\w+) (G\d+_Q1)_1 (0\.\d\d) \2_2 (.+) (0\.\d\d)")
    rows = {
        found[2]: (found[1], float(found[3]), found[4], float(found[5]))
        for found in map(line.fullmatch, PAPER.read_text(encoding="utf-8").splitlines())
        if found
    }
    assert CHARTOM.published[0].rows == rows


@pytest.mark.skipif(
    not PAPER.is_file(), reason="needs the paper's text; see tests/published_files.py"
)
def test_table_2_is_the_papers() -> None:
    lines = PAPER.read_text(encoding="utf-8").splitlines()
    answers, counts = (
        [list(map(float, line.split()[1:])) for line in lines if re.match(rf"{word} \d", line)]
        for word in ("answer", "count")
    )
    printed = [dict(zip(*columns, strict=True)) for columns in zip(answers, counts, strict=True)]
    assert printed == [ANSWERS["G7_Q1_1"], ANSWERS["G7_Q1_2"]]


def item(**fields: Any) -> dict[str, Any]:
    return {
        "id": "P1_1",
        "kind": "bar",
        "question": "How many bags?",
        "question_type": "number",
        "answer": 1.2,
        "unit": "million bags",
        "hmi": 0.2,
        **fields,
    }


def misleading(**fields: Any) -> dict[str, Any]:
    return item(**{"id": "P1_2", "manipulation": "truncated y-axis", "hmi": 0.9, **fields})


def test_a_readable_answer_needs_no_judge() -> None:
    row = item(fact_response="1.2 million bags")
    assert CHARTOM.requests(row) == ()
    assert CHARTOM.graded_row(row, [])["fact_correct"] is True
    assert CHARTOM.graded_row(item(fact_response="6"), [])["fact_correct"] is False
    assert CHARTOM.graded_row(item(fact_response=" "), [])["fact_correct"] is False


def test_what_rules_cannot_read_goes_to_the_judge() -> None:
    row = item(fact_response="Somewhere from 1 to 2 million")
    [request] = CHARTOM.requests(row)
    assert (request.task, request.variant) == ("chartom-fact", "number")
    assert request.references == ("1.2 million bags",)
    said = Verdict(status="scored", label="Incorrect", judge="j1")
    assert CHARTOM.graded_row(row, [said])["fact_correct"] is False
    lost = Verdict(status="judge_error", message="broken")
    assert CHARTOM.graded_row(row, [lost])["fact_correct"] is None


def test_no_rule_reads_an_answer_that_was_cut_off() -> None:
    row = item(fact_response="1.2", cut_off=["fact_response"])
    assert len(CHARTOM.requests(row)) == 1
    said = Verdict(status="scored", label="Incorrect", judge="j1")
    graded = CHARTOM.graded_row(row, [said])
    assert graded["fact_correct"] is False
    assert CHARTOM.table([graded])["cut_off"] == 1


def test_the_reasons_are_judged_only_where_a_manipulation_misleads() -> None:
    said = "0.9. The axis is cut off."
    assert CHARTOM.requests(item(mind_response=said)) == ()
    assert CHARTOM.requests(misleading(mind_response=said, hmi=0.1)) == ()
    [request] = CHARTOM.requests(misleading(mind_response=said))
    assert request.task == "chartom-justification"
    assert (request.response, request.references) == ("The axis is cut off.", ("truncated y-axis",))


def test_a_row_without_any_response_is_refused() -> None:
    with pytest.raises(CustosError, match="item 'P1_1': field 'fact_response'"):
        CHARTOM.requests(item())


def test_the_table() -> None:
    named = Verdict(status="scored", label="Named", judge="j1")
    rows = [
        CHARTOM.graded_row(item(fact_response="1.25 million", mind_response="0.5 hm"), []),
        CHARTOM.graded_row(misleading(fact_response="6", mind_response="0.4 the axis"), [named]),
        CHARTOM.graded_row(
            item(id="P2_1", kind="pie", fact_response="1.3", mind_response="lots"), []
        ),
    ]
    table = CHARTOM.table(rows)
    assert table["overall"]["fact_accuracy"] == 2 / 3
    assert table["overall"]["mind_mse"] == pytest.approx((0.3**2 + 0.5**2) / 2)
    assert table["overall"]["justification"] == 1
    assert table["by_version"]["original"]["fact_accuracy"] == 1
    assert table["by_version"]["manipulated"]["fact_accuracy"] == 0
    assert table["by_kind"]["pie"]["mind_mse"] is None
    assert table["by_manipulation"].keys() == {"truncated y-axis"}
    assert (table["n"], table["coverage"]) == (7, 6 / 7)  # "lots" is no prediction
    assert table["judges"] == ["j1"]


def test_charts_that_are_numbered_are_no_versions_of_one_pair(tmp_path: Path) -> None:
    """Only the ends _1 and _2 name a pair: 10.5 bounds the answers of the first chart alone."""
    path = tmp_path / "items.jsonl"
    rows = [
        item(
            id=f"chart_{number:02}",
            answer=10,
            alternatives=[20 if number else 10.5],
            human_answers=[10, 11, 12, 19],
            unit="",
        )
        for number in range(3)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    items = CHARTOM.load(str(path))
    assert [row["hmi"] for row in items] == [0.75, 0.25, 0.25]
    graded = [CHARTOM.graded_row({**row, "fact_response": "10"}, []) for row in items]
    assert len({score.cluster for score in CHARTOM.scores(graded)}) == 3


def test_grades_without_their_responses_are_all_of_the_coverage() -> None:
    """Count the grades of a file of people's labels, which need not repeat the responses."""
    rows = [
        item(fact_correct=True),
        item(id="P1_2", fact_correct=False, mind_prediction=0.3),
        item(id="P2_1", fact_response="so-so"),
    ]
    table = CHARTOM.table(rows)
    assert (table["n"], table["coverage"]) == (4, 3 / 4)


def test_a_row_of_the_measures_that_the_paper_defines() -> None:
    named = Verdict(status="scored", label="Named", judge="j1")
    rows = [
        CHARTOM.graded_row(item(fact_response="1.25 million", mind_response="0.5"), []),
        CHARTOM.graded_row(misleading(fact_response="6", mind_response="0.4 the axis"), [named]),
    ]
    [(source, own)] = CHARTOM.paper_rows(CHARTOM.table(rows), "mine").items()
    [published] = [table for table in CHARTOM.published if table.source == source]
    assert published.rows == {}
    values = [number_of(cell) for cell in own["mine"]]
    assert values == pytest.approx([50, 100, 0, (0.3**2 + 0.5**2) / 2, 100])
    assert len(published.columns) == 5


def test_mean_squared_error_against_table_1() -> None:
    """A reader who always predicts a half, over the 28 published HMI values."""
    rows = [
        CHARTOM.graded_row(item(id=f"{pair}_{version}", hmi=value, mind_response="0.5"), [])
        for pair, figures in CHARTOM.published[0].rows.items()
        for version, value in ((1, figures[1]), (2, figures[3]))
    ]
    originals = (3, 3, 6, 14, 7, 28, 18, 9, 2, 3, 2, 1, 26, 66)
    manipulated = (97, 81, 74, 40, 4, 96, 29, 6, 6, 71, 63, 10, 90, 99)
    expected = sum((50 - value) ** 2 for value in originals + manipulated) / 28 / 100**2
    table = CHARTOM.table(rows)
    assert table["overall"]["mind_mse"] == pytest.approx(expected)
    interval = table["intervals"]["overall"]["mind_mse"]
    assert interval["n"] == 28
    assert interval["low"] < expected < interval["high"]


def test_hmi_is_computed_from_the_pairs_raw_answers(tmp_path: Path) -> None:
    rows = [
        item(id="G7_Q1_1", alternatives=[300], human_answers=everyone(ORIGINAL)),
        misleading(id="G7_Q1_2", alternatives=[6, 300], human_answers=everyone(MANIPULATED)),
        item(id="G8_Q1_1", hmi=0.09),
    ]
    for row in rows[:2]:
        del row["hmi"]
    (tmp_path / "items.json").write_text(json.dumps(rows))
    loaded = CHARTOM.load(str(tmp_path / "items.json"))
    assert [row["hmi"] for row in loaded] == [12 / 68, 20 / 68, 0.09]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question_type": "choice", "answer": "blue", "choices": ["red", "green"]}, "none of the"),
        ({"answer": "many"}, "'many' is not a number"),
        ({"kind": "radar"}, "item 'P1_1': field 'kind'"),
    ],
)
def test_items_that_cannot_be_graded(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CustosError, match=message):
        CHARTOM.requests(item(fact_response="1", **fields))


def test_what_a_model_is_asked() -> None:
    asked = CHARTOM.prompts(item(question_type="choice", choices=["red", "blue"], answer="red"), "")
    assert asked["fact_response"] == "How many bags?\n1. red  2. blue"
    assert asked["fact_response"] in asked["mind_response"]
    assert "decimal number from 0 to 1" in asked["mind_response"]
    assert CHARTOM.prompts(item(), "")["fact_response"] == "How many bags?"


@pytest.mark.parametrize("key", [1, "1", "A", "the left"])
@pytest.mark.parametrize("said", [[1, 2, 2, None], ["A", "B", "the right", "neither"]])
def test_people_choose_as_models_do(tmp_path: Path, key: Any, said: list[Any]) -> None:
    choices = ["the left", "the right"]
    row = item(question_type="choice", choices=choices, answer=key, human_answers=said)
    (tmp_path / "items.json").write_text(json.dumps([row]))
    assert CHARTOM.load(str(tmp_path / "items.json"))[0]["hmi"] == 0.75


def test_a_number_for_a_text_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "items.json").write_text(json.dumps([item(answer="ten", human_answers=[10])]))
    with pytest.raises(CustosError, match="field 'answer': 'ten' is not a number"):
        CHARTOM.load(str(tmp_path / "items.json"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answer": 0, "alternatives": [6]}, "item 'P1_1': no geometric mean of 0.0 and 6.0"),
        ({"kind": "sketch"}, "row 'P1_1': field 'kind': "),
    ],
)
def test_items_that_cannot_be_read_name_file_and_item(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    row = item(human_answers=[10], id="P1_1", **fields)
    (tmp_path / "items.json").write_text(json.dumps([row]))
    with pytest.raises(CustosError, match=f"items.json: {message}"):
        CHARTOM.load(str(tmp_path / "items.json"))


def test_a_response_beyond_the_limit_is_named() -> None:
    row = item(fact_response="bags " * 50_000, question_type="ranking", answer=["a", "b"])
    with pytest.raises(CustosError, match="item '.*': field 'responses"):
        CHARTOM.requests(row)


def test_peoples_answers_replace_a_stated_hmi(tmp_path: Path) -> None:
    row = item(hmi=0.5, alternatives=[300], human_answers=everyone(ORIGINAL))
    (tmp_path / "items.json").write_text(json.dumps([row]))
    assert CHARTOM.load(str(tmp_path / "items.json"))[0]["hmi"] == 10 / 68
