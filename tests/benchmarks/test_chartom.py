"""CHARTOM: requests, grades, the table, measures beside FACT, and HMI with its report."""

import json
import math
import random
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.stats import binomtest

from benchmarks.chartom.benchmark import JUSTIFICATION, MIND_ERROR, MODELS
from benchmarks.chartom.item import ChartomItem, acceptable_interval, hmi, measure_hmi
from benchmarks.framework.base import get_benchmark
from benchmarks.framework.correction import corrected_score, human_scores
from benchmarks.framework.graded import GradedModel, ScoredItems, compare_graded, read_responses
from benchmarks.framework.leaderboard import build_table, number_of
from benchmarks.framework.report.page import summary_lines
from evaluation.correction.scores import corrected_rate
from judging.errors import CustosError, FieldError
from judging.types import Verdict
from tests.cli.bench.made_up import grade, read, run, write

CHARTOM = get_benchmark("chartom")
TABLE_1, TABLE_2, _ = CHARTOM.published
ANSWERS = {
    name: {float(a): int(n) for a, n in re.findall(r"([\d.]+) \((\d+)\)", str(text))}
    for name, (text,) in TABLE_2.rows.items()
}
"""Chart to the answers of people, and how many gave each."""
NAMED = Verdict(status="scored", label="Named", judge="j1")


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


def load(path: Path, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    return CHARTOM.load(str(write(path / "items.json", list(rows))))


@pytest.mark.parametrize("figure", [-0.01, 1.01, 20, math.nan, math.inf])
def test_an_hmi_that_is_no_share_is_reported_with_its_row(figure: float, tmp_path: Path) -> None:
    with pytest.raises(FieldError) as error:
        load(tmp_path, item(), misleading(hmi=figure))
    assert (error.value.field, error.value.location.endswith("row 'P1_2'")) == ("hmi", True)
    people = [{"id": "P1_1", "hmi": figure}]
    graded = [CHARTOM.graded_row(item(mind_response="0.5. It looks odd."), [])]
    with pytest.raises(FieldError, match="P1_1.*hmi"):
        corrected_score(GradedModel(CHARTOM, graded, people=people), MIND_ERROR)


@pytest.mark.parametrize(
    ("response", "is_right"), [("1.2 million bags", True), ("6", False), (" ", False)]
)
def test_a_readable_answer_needs_no_judge(response: str, is_right: bool) -> None:
    row = item(fact_response=response)
    assert CHARTOM.requests(row) == ()
    assert CHARTOM.graded_row(row, [])["fact_correct"] is is_right


def test_the_key_of_a_number_may_be_a_text() -> None:
    """Write them as files of tables do; a choice may be called like a number."""
    assert CHARTOM.requests(item(answer="1.2", fact_response="1.2 million bags")) == ()
    choice = item(question_type="choice", choices=["2.0", "2.5"], answer="2.0", fact_response="1")
    assert ChartomItem.model_validate(choice).key == ("2.0",)
    choice |= {"choices": ["1234567", "2345678"], "answer": 1234567}
    assert ChartomItem.model_validate(choice).key == ("1234567",)


def test_ids_options_and_responses_may_be_numbers() -> None:
    row = item(id=5, unit="", answer=40, fact_response=41, mind_response=0.2)
    graded = CHARTOM.graded_row(row, [])
    assert (graded["fact_correct"], graded["mind_prediction"]) == (True, 0.2)
    choice = {"question_type": "choice", "choices": [2019, 2020], "answer": 2020}
    assert CHARTOM.graded_row({**row, **choice, "fact_response": 2020}, [])["fact_correct"]


def test_what_rules_cannot_read_goes_to_the_judge() -> None:
    row = item(fact_response="Somewhere from 1 to 2 million")
    [request] = CHARTOM.requests(row)
    assert (request.task, request.variant) == ("chartom-fact", "number")
    assert request.references == ("1.2 million bags",)
    said = Verdict(status="scored", label="Incorrect", judge="j1")
    assert CHARTOM.graded_row(row, [said])["fact_correct"] is False
    lost = Verdict(status="judge_error", message="broken")
    assert CHARTOM.graded_row(row, [lost])["fact_correct"] is None
    # Nor does a rule read an answer that was cut off.
    graded = CHARTOM.graded_row(item(fact_response="1.2", cut_off=["fact_response"]), [said])
    assert graded["fact_correct"] is False
    assert CHARTOM.table([graded])["cut_off"] == 1


def test_the_reasons_are_judged_only_where_a_manipulation_misleads() -> None:
    said = "0.9. The axis is cut off."
    assert CHARTOM.requests(item(mind_response=said)) == ()
    assert CHARTOM.requests(misleading(mind_response=said, hmi=0.1)) == ()
    [request] = CHARTOM.requests(misleading(mind_response=said))
    assert request.task == "chartom-justification"
    assert (request.response, request.references) == ("The axis is cut off.", ("truncated y-axis",))


CHOICE: dict[str, Any] = {"question_type": "choice", "answer": "blue", "choices": ["red", "green"]}
LONG = {"fact_response": "bags " * 50_000, "question_type": "ranking", "answer": ["a", "b"]}


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "fact_response"),
        ({"fact_response": "1", **CHOICE}, "answer"),
        ({"fact_response": "1", "answer": "many"}, "answer"),
        ({"fact_response": "1", "kind": "radar"}, "kind"),
        (LONG, "responses.0"),
    ],
)
def test_rows_that_cannot_be_graded(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(FieldError) as error:
        CHARTOM.requests(item(**fields))
    assert (error.value.location, error.value.field) == ("item 'P1_1'", wrong)


def test_the_table() -> None:
    rows = [
        CHARTOM.graded_row(item(fact_response="1.25 million", mind_response="0.5 hm"), []),
        CHARTOM.graded_row(misleading(fact_response="6", mind_response="0.4 the axis"), [NAMED]),
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

    [(source, own)] = CHARTOM.paper_rows(CHARTOM.table(rows[:2]), "mine").items()
    [published] = [table for table in CHARTOM.published if table.source == source]
    assert published.rows == {}
    values = [number_of(cell) for cell in own["mine"]]
    assert values == pytest.approx([50, 100, 0, (0.3**2 + 0.5**2) / 2, 100])
    assert len(published.columns) == 5


def test_mean_squared_error_against_table_1() -> None:
    """A reader who always predicts a half, over the 28 published HMI values."""
    rows = [
        CHARTOM.graded_row(item(id=f"{pair}_{version}", hmi=value, mind_response="0.5"), [])
        for pair, figures in TABLE_1.rows.items()
        for version, value in ((1, figures[1]), (2, figures[3]))
    ]
    originals = (3, 3, 6, 14, 7, 28, 18, 9, 2, 3, 2, 1, 26, 66)
    manipulated = (97, 81, 74, 40, 4, 96, 29, 6, 6, 71, 63, 10, 90, 99)
    expected = sum((50 - value) ** 2 for value in originals + manipulated) / 28 / 100**2
    interval = CHARTOM.table(rows)["intervals"]["overall"]["mind_mse"]
    assert (interval["value"], interval["n"]) == (pytest.approx(expected), 28)
    assert interval["low"] < expected < interval["high"]


@pytest.mark.parametrize("key", [1, "1", "A", "the left"])
@pytest.mark.parametrize("said", [[1, 2, 2, None], ["A", "B", "the right", "neither"]])
def test_people_choose_as_models_do(tmp_path: Path, key: Any, said: list[Any]) -> None:
    fields = {"question_type": "choice", "choices": ["the left", "the right"], "answer": key}
    assert load(tmp_path, item(**fields, human_answers=said))[0]["hmi"] == 0.75


def test_long_numbers_of_people_are_told_apart() -> None:
    [chart] = measure_hmi([item(unit="", human_answers=[1234567, 1234568, 1234568])])
    assert chart["answers"] == {"1234568": 2, "1234567": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answer": 0, "alternatives": [6]}, "item 'P1_1': no geometric mean of 0.0 and 6.0"),
        ({"kind": "sketch"}, "row 'P1_1': field 'kind': "),
        ({"answer": "ten"}, "item 'P1_1': field 'answer': "),
        ({"hmi": 1.5}, "row 'P1_1': field 'hmi': "),
        ({"hmi": math.nan}, "row 'P1_1': field 'hmi': "),
        ({"hmi": "Infinity"}, "row 'P1_1': field 'hmi': "),
        ({"alternatives": ["inf"]}, "row 'P1_1': field 'alternatives.0': "),
        ({"answer": math.nan}, "item 'P1_1': field 'answer': 'nan' is not a number"),
        ({"human_answers": [{"a": 1}]}, "row 'P1_1': field 'human_answers"),
        (
            {"question_type": "choice", "choices": ["left", "right" * 400], "answer": "left"},
            "item 'P1_1': field 'choices': 2,004 characters",
        ),
        (
            {"question_type": "ranking", "answer": [f"n{n}" for n in range(1000)]},
            "item 'P1_1': field 'answer': 3,890 characters",
        ),
    ],
)
def test_items_that_cannot_be_read_name_file_and_item(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(CustosError, match=f"items.json: {message}"):
        load(tmp_path, item(**{"human_answers": [10], **fields}))


def test_what_a_model_is_asked() -> None:
    asked = CHARTOM.prompts(item(question_type="choice", choices=["red", "blue"], answer="red"), "")
    assert asked["fact_response"] == "How many bags?\n1. red  2. blue"
    assert asked["fact_response"] in asked["mind_response"]
    assert "decimal number from 0 to 1" in asked["mind_response"]
    assert CHARTOM.prompts(item(), "")["fact_response"] == "How many bags?"


def test_the_command_compares_them(tmp_path: Path) -> None:
    """Squared errors are compared chart by chart."""
    replies = {"a": ("0.2", "0.7"), "b": ("0.4", "0.2")}
    files = {
        name: [item(id=f"P{n}_1", hmi=0.2, mind_response=text) for n, text in enumerate(texts)]
        for name, texts in replies.items()
    }
    result = compare_graded(*(ScoredItems.of(CHARTOM, r, MIND_ERROR) for r in files.values()))
    assert result["metric"] == MIND_ERROR
    assert result["a"]["value"] == pytest.approx((0 + 0.25) / 2)
    assert result["b"]["value"] == pytest.approx((0.04 + 0) / 2)
    names = [write(tmp_path / f"{name}.json", rows) for name, rows in files.items()]
    out = tmp_path / "out.json"
    done = run("compare", "chartom", *names, "--measure", MIND_ERROR, "--json", out)
    assert done.exit_code == 0, done.stderr
    assert read(out)["difference"]["value"] == pytest.approx(-0.105)
    with pytest.raises(CustosError, match=f"not one of FACT accuracy, {MIND_ERROR}, justification"):
        ScoredItems.of(CHARTOM, files["a"], "MIND")


def test_borrowed_targets_are_corrected_with_the_hmi_of_people() -> None:
    rng = np.random.default_rng(0)
    borrowed, predicted = rng.choice([0.2, 0.4], 80), rng.uniform(0, 1, 80).round(2)
    hmi = np.clip(borrowed + rng.normal(0, 0.1, 80), 0, 1)
    rows = [
        CHARTOM.graded_row(
            item(id=f"P{n}_1", hmi=float(target), mind_response=f"{reply}. It looks odd."), []
        )
        for n, (target, reply) in enumerate(zip(borrowed, predicted, strict=True))
    ]
    people = [{"id": f"P{n}_1", "hmi": float(hmi[n])} for n in range(30)]
    model = GradedModel(CHARTOM, rows, people=people, random_sample=True)
    result = corrected_score(model, MIND_ERROR)
    errors = (predicted - borrowed) ** 2
    of_people = np.where(np.arange(80) < 30, (predicted - hmi) ** 2, np.nan)
    expected = corrected_rate(errors, of_people, random_sample=True, groups=np.arange(80))
    assert result["raw"]["value"] == pytest.approx(errors.mean())
    assert result["corrected"]["value"] == pytest.approx(expected.corrected.value)
    assert result["labelled"]["value"] == pytest.approx(np.nanmean(of_people))
    assert result["corrected"]["n"] == 30


def test_justifications_are_corrected_and_facts_are_not_asked_for() -> None:
    rows = []
    for number in range(60):
        verdict = Verdict(status="scored", label="Named" if number % 3 else "Missed", judge="j")
        row = misleading(id=f"P{number}_2", mind_response="0.8 The axis is cut.")
        rows.append(CHARTOM.graded_row(row, [verdict]))
    people = [
        {"id": f"P{number}_2", "justification_named": bool(number % 2)} for number in range(40)
    ]
    table = build_table(GradedModel(CHARTOM, rows, people=people, random_sample=True))
    assert "corrected" not in table, "people graded no FACT answer"
    assert set(table["corrected_measures"]) == {JUSTIFICATION}, "nobody measured HMI anew"
    result = table["corrected_measures"][JUSTIFICATION]
    assert result["raw"]["value"] == pytest.approx(40 / 60)
    assert result["labelled"]["value"] == 0.5
    assert any(line.startswith(f"corrected {JUSTIFICATION}") for line in summary_lines(table))


def test_several_models_stand_in_one_table(tmp_path: Path) -> None:
    names = []
    for name, replies in (("good", "0.2"), ("bad", "0.9")):
        rows = [
            CHARTOM.graded_row(item(id=f"P{n}_1", fact_response="1.2", mind_response=replies), [])
            for n in range(4)
        ]
        names.append(f"{name}={write(tmp_path / f'{name}.json', rows)}")
    done = run("table", "chartom", *names, "--json", tmp_path / "out.json")
    assert done.exit_code == 0, done.stderr
    [ours] = [t for t in read(tmp_path / "out.json")["tables"] if t["source"] == MODELS]
    errors = {
        row["name"]: number_of(row["figures"][ours["columns"].index("MIND squared error")])
        for row in ours["rows"]
    }
    assert errors == pytest.approx({"good": 0.0, "bad": 0.49})


def chart(name: str, manipulation: str = "", **fields: Any) -> dict[str, Any]:
    own = {"alternatives": [6, 300] if manipulation else [300], "manipulation": manipulation}
    return {k: v for k, v in item(id=name).items() if k != "hmi"} | own | fields


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("hmi")
    rows = [
        chart(name, manipulation, human_answers=everyone(ANSWERS[name]))
        for name, manipulation in (("G7_Q1_1", ""), ("G7_Q1_2", "truncated y-axis"))
    ]
    rows.append(chart("G1_Q1_2", "truncated y-axis", hmi=0.4))
    out = tmp_path / "out"
    done = run("hmi", "--items", write(tmp_path / "items.json", rows), "--out", out)
    assert done.exit_code == 0, done.output
    assert "3 charts" in done.output
    return out


def test_the_published_pair(report: Path) -> None:
    charts = {chart["id"]: chart for chart in json.loads((report / "hmi.json").read_text())}
    kind, original, manipulation, manipulated = TABLE_1.rows["G7_Q1"]
    for name, value, misled in (("G7_Q1_1", original, 12), ("G7_Q1_2", manipulated, 20)):
        hmi = charts[name]["hmi"]
        assert round(hmi["value"], 2) == value
        low, high = binomtest(misled, 68).proportion_ci(method="wilson")
        assert (hmi["low"], hmi["high"], hmi["n"]) == (pytest.approx(low), pytest.approx(high), 68)
        assert charts[name]["acceptable"] == [None, pytest.approx(7.2**0.5)]
        assert charts[name]["answers"] == {f"{a:g}": n for a, n in ANSWERS[name].items()}
    assert charts["G7_Q1_2"]["manipulation"] == manipulation
    assert charts["G7_Q1_1"]["kind"] == kind
    assert list(charts) == ["G7_Q1_1", "G7_Q1_2", "G1_Q1_2"]
    lines = (report / "hmi.md").read_text().splitlines()
    assert "| G1_Q1 | bar | - | truncated y-axis | 0.400 |" in lines
    assert any(line.startswith("| G7_Q1 | bar | 0.176 [0.104, 0.") for line in lines)
    assert "![HMI of all charts, sorted](hmi.png)" in lines


def test_answers_of_people_on_the_rows_are_enough(tmp_path: Path) -> None:
    """Neither items nor an ``hmi`` are given; the pair's alternatives count on both charts."""
    rows = [
        chart(name, trick, human_answers=everyone(ANSWERS[name]), mind_response=said)
        for name, trick, said in (("G7_Q1_1", "", "0.1"), ("G7_Q1_2", "truncated y-axis", "0.5"))
    ]
    rows.append(chart("G1_Q1_2", "truncated y-axis", hmi=0.4, human_answers=[6], mind_response="0"))
    done = grade(tmp_path, rows, name="chartom")
    assert done.exit_code == 0, done.output
    assert [row["hmi"] for row in read(tmp_path / "out.json")] == [12 / 68, 20 / 68, 0.4]
    expected = ((12 / 68 - 0.1) ** 2 + (20 / 68 - 0.5) ** 2 + 0.4**2) / 3
    ungraded = write(tmp_path / "rows.json", rows)
    shown = tmp_path / "shown.json"
    for graded in (tmp_path / "out.json", ungraded):
        assert run("table", "chartom", "--graded", graded, "--json", shown).exit_code == 0
        assert read(shown)["overall"]["mind_mse"] == pytest.approx(expected)
    assert run("table", "chartom", ungraded, f"b={ungraded}", "--json", shown).exit_code == 0
    [models] = [table for table in read(shown)["tables"] if table["source"] == MODELS]
    for row in models["rows"]:
        assert number_of(row["figures"][3]) == pytest.approx(expected)
    compared = ("compare", "chartom", ungraded, ungraded, "--measure", MIND_ERROR)
    assert run(*compared, "--json", tmp_path / "compared.json").exit_code == 0
    assert read(tmp_path / "compared.json")["a"]["value"] == pytest.approx(expected)


def test_reasons_are_judged_where_peoples_answers_say_that_a_chart_misleads(tmp_path: Path) -> None:
    row = chart("P1_2", "truncated y-axis", human_answers=[6, 6, 1.2], mind_response="0.9 Cut off.")
    work = read_responses(CHARTOM, write(tmp_path / "in.json", [row]), None, tmp_path)
    assert [request.task for _, request in work.numbered_requests()] == ["chartom-justification"]


def test_people_may_give_answers_in_place_of_an_hmi() -> None:
    """Ask people about one chart of a pair; the other bounds what is acceptable too."""
    answers = everyone(ANSWERS["G7_Q1_1"])
    rows = [chart(f"G7_Q1_{n}", trick, hmi=0.4) for n, trick in ((1, ""), (2, "3D effect"))]
    graded = [
        CHARTOM.graded_row({**row, "mind_response": "0.5. It looks odd."}, []) for row in rows
    ]
    people = [{"id": "G7_Q1_1", "human_answers": answers}]
    model = GradedModel(CHARTOM, graded, people=people, random_sample=True)
    assert human_scores(model, MIND_ERROR) == {"G7_Q1_1": pytest.approx((12 / 68 - 0.5) ** 2)}


def test_the_picture_has_a_bar_of_each_colour(report: Path) -> None:
    with Image.open(report / "hmi.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20) or ()}
    assert {(0, 114, 178), (213, 94, 0)} <= colours


def test_a_report_replaces_an_earlier_one_alone(report: Path, tmp_path: Path) -> None:
    again = ("hmi", "--items", report.parent / "items.json", "--out", tmp_path)
    (tmp_path / "hmi.md").write_text("my notes")
    assert "holds files of yours that would be replaced (hmi.md)" in run(*again).stderr
    assert (tmp_path / "hmi.md").read_text() == "my notes"
    (tmp_path / "hmi.json").write_bytes((report / "hmi.json").read_bytes())
    assert run(*again).exit_code == 0


ORIGINAL, MANIPULATED = ANSWERS["G7_Q1_1"], ANSWERS["G7_Q1_2"]
"""What 68 people answered about the dogs, on both charts of the pair (Table 2)."""


def everyone(counts: Mapping[float, int]) -> list[float]:
    return [answer for answer, count in counts.items() for _ in range(count)]


def test_the_worked_example() -> None:
    low, high = acceptable_interval(1.2, [6, 300])
    assert low == -math.inf
    assert high == pytest.approx(math.sqrt(7.2))
    assert round(high, 2) == 2.68
    assert len(everyone(ORIGINAL)) == len(everyone(MANIPULATED)) == 68
    assert hmi(everyone(ORIGINAL), 1.2, [6, 300]) == 12 / 68
    assert hmi(everyone(MANIPULATED), 1.2, [6, 300]) == 20 / 68
    assert [round(n / 68, 2) for n in (12, 20)] == [0.18, 0.29]


def test_the_originals_own_alternatives_alone_would_miss_the_published_value() -> None:
    assert hmi(everyone(ORIGINAL), 1.2, [300]) == 10 / 68


@pytest.mark.parametrize(("correct", "alternative"), [(0, 5), (2, -1), (2, 0)])
def test_no_geometric_mean_across_zero(correct: float, alternative: float) -> None:
    with pytest.raises(CustosError):
        acceptable_interval(correct, [alternative])


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1.0, 1e160, 1e200])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_of_any_size_have_a_geometric_mean(size: float, sign: int) -> None:
    bound = acceptable_interval(2 * size * sign, [8 * size * sign])[sign > 0]
    assert bound == pytest.approx(4 * size * sign, rel=1e-12)
    said = [f"{value * sign}" for value in (size, 3.9 * size, 4.1 * size)]
    assert hmi(said, 2 * size * sign, [8 * size * sign], unit="million bags") == 1 / 3


def test_huge_and_tiny_answers_are_not_acceptable() -> None:
    others = [1e-300, 6, 1e300]
    answers: list[float | str] = [
        1e308,
        "1" * 400,
        5e-324,
        f"0.{'0' * 400}1",
        "1e999",
        "1/0",
        -1e308,
        math.inf,
    ]
    for unit in ("", "million bags", "trillion bags"):
        assert hmi(answers, 1.2, others, unit=unit) == 1
        assert hmi(["1.2"], 1.2, others, unit=unit) == 0


def test_thousands_of_answers_beside_thousands_of_alternatives_take_linear_time() -> None:
    answers = [f"{number}.5 million" for number in range(3_000)]
    started = time.process_time()
    hmi(answers, 1.2, range(2, 20_000), unit="million bags" + " a" * 5_000)
    assert time.process_time() - started < 5


def test_both_ends_are_open_and_no_answer_is_not_acceptable() -> None:
    assert hmi([2, 6, 2.001, 5.999], 4, [1, 9]) == 0.5
    assert hmi([None, "", "no idea", math.nan], 4, [9]) == 1
    assert hmi(["about 4", "4.0", 4], 4, [9]) == 0


@pytest.mark.parametrize(
    ("answer", "correct", "alternatives", "unit", "is_acceptable"),
    [
        ("1.2 million bags", 1.2, [6, 300], "million bags", True),
        ("1,200,000", 1.2, [6, 300], "million bags", True),
        (1_200_000, 1.2, [6, 300], "million bags", True),
        ("6,000,000 bags", 1.2, [6, 300], "million bags", False),
        ("300", 1.2, [6, 300], "million bags", False),
        ("1.2 thousand", 120, [600], "thousand bags", False),
        ("1.2 million bags", 1.2, [6, 300], "", True),
        ("1,200,000", 1.2, [6, 300], "", False),
        ("1.2 million", 1.2, [6, 300], "", True),
        ("300", 1.2, [6, 300], "", False),
        ("1200", 1.2, [6, 1200], "", False),
        ("5 feet", 5 / 3, [5], "yards", True),
        ("5 yards", 5 / 3, [5], "yards", False),
        ("2 kg", 5 / 3, [5], "yards", False),
        ("1.2 tons", 1.2, [6], "", True),
        ("1.2 m", 1.2, [6], "", True),
        ("3 tons", 1.2, [6], "", False),
        ("1.2M", 1.2, [6, 300], "million bags", True),
        ("6m bags", 1.2, [6, 300], "million bags", False),
        ("$1.2M", 1.2, [6, 300], "million dollars", True),
        ("1.2 m", 120, [600], "cm", True),
        ("50 %", 50, [90], "%", True),
        ("0.5", 50, [90], "%", True),
        ("0.9", 50, [90], "%", False),
        ("It is 1.2 (in 2019)", 1.2, [6], "", False),  # two numbers: which one is left open
    ],
)
def test_answers_are_read_in_the_keys_magnitude_and_unit(
    answer: str | float, correct: float, alternatives: list[float], unit: str, is_acceptable: bool
) -> None:
    # Without these answers' lower bound a small number would be acceptable whatever it means.
    assert hmi([answer], correct, [*alternatives, correct / 4], unit=unit) == 1 - is_acceptable


def test_bare_numbers_are_judged_by_the_formula_alone() -> None:
    """Derive it again from section 2.2.2: accepted in (L, U), bounded by geometric means."""
    rng = random.Random(7)

    def drawn() -> float:
        return float(f"{10 ** rng.uniform(-3, 4):.{rng.randint(1, 5)}g}")

    for _ in range(1000):
        correct, others = drawn(), [drawn() for _ in range(rng.randint(0, 4))]
        answers = [drawn() for _ in range(rng.randint(1, 12))]
        answers += [value * scale for value in (correct, *others) for scale in (1, 1e-3, 1e3, 1e6)]
        larger, smaller = [a for a in others if a > correct], [a for a in others if a < correct]
        upper = (correct * min(larger)) ** 0.5 if larger else math.inf
        lower = (correct * max(smaller)) ** 0.5 if smaller else -math.inf
        misled = [answer for answer in answers if answer <= lower or answer >= upper]
        written = [answer if rng.random() < 0.5 else repr(answer) for answer in answers]
        unit = rng.choice(("", "tons", "trucks"))
        assert hmi(written, correct, others, unit=unit) == len(misled) / len(answers)


@pytest.mark.parametrize(
    ("question", "is_upward"),
    [("Rank the trees from smallest to largest.", True), ("Rank the trees by height.", False)],
)
def test_an_order_is_read_in_the_direction_of_the_question(question: str, is_upward: bool) -> None:
    answers = ("Cedar < Beech < Aster", "from largest to smallest: Aster, Beech, Cedar")
    item = ChartomItem(
        id="P1_1",
        kind="bar",
        question=question,
        question_type="ranking",
        answer=("Cedar", "Beech", "Aster"),
        human_answers=(*answers, "Cedar, Beech, Aster", ("Cedar", "Beech", "Aster")),
    )
    assert item.measured_hmi(()) == (0 if is_upward else 0.5)
