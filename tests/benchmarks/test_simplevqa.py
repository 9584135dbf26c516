"""SimpleVQA: conclusions, complex fact questions, stated confidence, files of several models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.framework.base import MeasuredRow, get_benchmark
from benchmarks.framework.leaderboard import model_name, number_of
from benchmarks.framework.responses import build_questions
from benchmarks.simplevqa.benchmark import BLIND, BY_DOMAIN, BY_TASK, CFQ
from judging.errors import CustosError, FieldError
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict

SIMPLEVQA = get_benchmark("simplevqa")


def item(number: int = 1, said: Any = None, **fields: Any) -> dict[str, Any]:
    row = {
        "data_id": number,
        "question": f"Who painted picture {number}?",
        "answer": "Rembrandt",
        "language": "EN",
        "vqa_category": {"task_category": "AC", "subject_category": "AR"},
        **fields,
    }
    return row if said is None else {**row, "judge_res": {"g4o_response": said}}


def graded(conclusions: Sequence[Any], **fields: Any) -> list[dict[str, Any]]:
    return [item(number, said, **fields) for number, said in enumerate(conclusions)]


COMPLEX: dict[str, Any] = {
    "question": "In what year was the person in the picture born?",
    "answer": "1606",
    "atomic_question": "Who is the person in the picture?",
    "atomic_fact": "Rembrandt",
}


def three_forms(letters: str, number: int) -> dict[str, Any]:
    """Item that is right (+) or not (-) as Origin, Atomic and Atomic-Given."""
    row = item(number, **COMPLEX, response="x", atomic_response="y", atomic_given_response="z")
    row["question"] += str(number)
    labels = {"+": "Correct", "-": "Incorrect", "0": "Not attempted"}
    verdicts = [Verdict(status="scored", label=labels[letter], judge="j") for letter in letters]
    return SIMPLEVQA.graded_row(row, verdicts)


def test_every_spelling_of_a_conclusion_counts() -> None:
    spellings = [
        *("A", "Correct", "正确", {"conclusion": "正确"}, {"conclusion": "A", "reasoning": "ok"}),
        *("B", "incorrect", "**错误**", {"conclusion": "错误"}),
        *("C", "Not attempted", "未尝试"),
    ]
    table = SIMPLEVQA.table(graded(spellings))
    assert table["overall"] == pytest.approx(
        {"CO": 5 / 12, "IN": 4 / 12, "NA": 3 / 12, "CGA": 5 / 9, "F": 10 / 21}
    )
    assert table["model"] == "g4o_response"
    measured = table["intervals"]["overall"]
    assert [measured[name]["n"] for name in ("CO", "IN", "NA", "CGA", "F")] == [12, 12, 12, 9, 12]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from("ABC"), min_size=1, max_size=30))
def test_the_metrics_belong_together(said: list[str]) -> None:
    overall = SIMPLEVQA.table(graded(said))["overall"]
    assert overall["CO"] + overall["IN"] + overall["NA"] == pytest.approx(1)
    assert (overall["CGA"] is None) == (set(said) == {"C"})
    co, cga = overall["CO"], overall["CGA"]
    harmonic = 2 * co * cga / (co + cga) if co else 0
    assert overall["F"] == pytest.approx(harmonic)


def test_parts() -> None:
    category = "{'task_category': 'LS', 'subject_category': 'LI'}"
    chinese = {"language": "CN", "vqa_category": category}
    table = SIMPLEVQA.table([*graded("AB"), *graded("AAC", **chinese)])
    assert table["by_language"]["EN"]["CO"] == 1 / 2
    assert table["by_language"]["CN"]["CO"] == 2 / 3
    assert table["by_task"]["LS"]["CGA"] == 1
    assert table["by_domain"].keys() == {"AR", "LI"}
    flat = {"language": "en", "task": "TE", "domain": "NS", "vqa_category": {}}
    assert SIMPLEVQA.table(graded("AB", **flat))["by_task"]["TE"]["IN"] == 1 / 2


def test_the_official_script_counts_it_as_no_attempt() -> None:
    """Of one file, a third of the readable conclusions and a quarter of all are correct."""
    table = SIMPLEVQA.table(graded(["A", "B", "C", "答案解析失败"]))
    assert table["overall"]["CO"] == pytest.approx(1 / 3)
    assert (table["n"], table["coverage"]) == (4, 0.75)
    official = table["as_published"]["overall"]
    assert (official["CO"], official["IN"], official["NA"]) == (0.25, 0.25, 0.5)
    assert official["CGA"] == 0.5
    row = row_values(SIMPLEVQA.paper_rows(table, "mine")[BY_TASK]["mine"])
    assert row[:5] == pytest.approx((25, 50, 25, 50, 100 / 3))
    assert not {"as_published", "cfq", "calibration"} & SIMPLEVQA.table(graded("ABC")).keys()


OFFICIAL = {"g4o_response": "Rembrandt", "g4o_confidence_score": 85}


@pytest.mark.parametrize(
    ("fields", "answer", "confidence"),
    [
        (OFFICIAL, "Rembrandt", 0.85),
        ({**OFFICIAL, "g4o_confidence_score": -1}, "Rembrandt", None),
        ({"response": '{"answer": "Rembrandt", "confidence_score": 85}'}, "Rembrandt", 0.85),
        ({"response": '```json\n{"answer": 5, "confidence_score": "7"}\n```'}, "5", 0.07),
        ({"response": "5 [0.85]"}, "5", 0.85),
        ({"response": "5 [confidence: 85%]."}, "5 .", 0.85),
        ({"response": "[1]"}, "[1]", 1.0),
        ({"response": "as in [3]"}, "as in [3]", None),
        ({"response": "{broken"}, "{broken", None),
    ],
)
def test_a_stated_confidence_is_no_part_of_the_answer(
    fields: dict[str, Any], answer: str, confidence: float | None
) -> None:
    row = item(**fields)
    [request] = SIMPLEVQA.requests(row)
    assert request.response == answer
    verdict = Verdict(status="scored", label="Correct", judge="j1")
    table = SIMPLEVQA.table([SIMPLEVQA.graded_row(row, [verdict])])
    stated = table["calibration"]["confidence"] if "calibration" in table else None
    assert stated == (None if confidence is None else pytest.approx(confidence))
    assert table["model"] == ("g4o_response" if "g4o_response" in fields else "response")
    assert model_name(table) == ("g4o_response" if "g4o_response" in fields else "this file")


def official(number: int, g4o: str, qwen: str, **fields: Any) -> dict[str, Any]:
    """Item of the official files with the answers of two models."""
    answers = {"g4o_response": g4o, "g4o_confidence_score": 80, "qwen_response": qwen}
    return item(number, **answers, **fields)


def test_the_answers_of_several_models_are_graded_in_one_file() -> None:
    row = official(1, "Rembrandt", "Rubens")
    asked = SIMPLEVQA.requests(row)
    assert [(r.id, r.response) for r in asked] == [
        ("1/g4o_response", "Rembrandt"),
        ("1/qwen_response", "Rubens"),
    ]
    labels = ("Correct", "Incorrect")
    verdicts = [Verdict(status="scored", label=label, judge="j1") for label in labels]
    graded_row = SIMPLEVQA.graded_row(row, verdicts)
    said = [value["conclusion"] for value in graded_row["judge_res"].values()]
    assert said == ["正确", "错误"]
    by_model = SIMPLEVQA.by_model([graded_row])
    assert list(by_model) == ["g4o_response", "qwen_response"]
    for (name, [of_model]), verdict in zip(by_model.items(), verdicts, strict=True):
        assert SIMPLEVQA.graded_label(of_model) == verdict.label
        assert SIMPLEVQA.compared_verdict(of_model) == verdict
        assert SIMPLEVQA.table([of_model])["model"] == name
    tables = [SIMPLEVQA.table(rows) for rows in by_model.values()]
    assert tables[0]["calibration"]["confidence"] == pytest.approx(0.8)
    assert "calibration" not in tables[1]  # qwen stated none


@pytest.mark.parametrize(
    "fields", [{"task": "LS"}, {"vqa_category": "{'task_category': 'LS'}"}, {"task_category": "LS"}]
)
def test_the_task_divides_a_report_however_it_is_given(fields: dict[str, str]) -> None:
    facets = SIMPLEVQA.facets_of({"data_id": 1, "language": "EN", **fields})
    assert facets == {"vqa_category.task_category": "LS", "language": "EN"}


@pytest.mark.parametrize("without", [{}, {"qwen_response": None}])
def test_a_verdict_on_the_only_answer_of_a_row_belongs_to_its_model(
    without: dict[str, None],
) -> None:
    alone = {k: v for k, v in official(2, "Rembrandt", "").items() if k != "qwen_response"}
    graded_rows = []
    for row in (official(1, "Rembrandt", "Rubens"), {**alone, **without}):
        verdicts = [Verdict(status="scored", label="Correct") for _ in SIMPLEVQA.requests(row)]
        graded_rows.append(SIMPLEVQA.graded_row(row, verdicts))
    by_model = SIMPLEVQA.by_model(graded_rows)
    statuses = {name: SIMPLEVQA.table(rows)["statuses"] for name, rows in by_model.items()}
    assert statuses == {"g4o_response": {"scored": 2}, "qwen_response": {"scored": 1}}


def test_a_models_missing_conclusion_is_no_attempt_in_the_papers_columns() -> None:
    """The official script divides by all items of the file, whoever answered them."""
    rows = [item(1, judge_res={"x": "A", "y": "A"}), item(2, judge_res={"x": "B"})]
    table = SIMPLEVQA.table(SIMPLEVQA.by_model(rows)["y"])
    assert table["overall"]["CO"] == 1
    assert table["as_published"]["overall"]["CO"] == 0.5
    assert (table["n"], table["coverage"]) == (2, 0.5)
    # Models that nobody graded are left out.
    rows = [official(1, "Rembrandt", "Rubens", judge_res={"g4o_response": "正确"})]
    assert list(SIMPLEVQA.by_model(rows)) == ["g4o_response"]


def test_intervals_resample_questions() -> None:
    table = SIMPLEVQA.table(graded("AB" * 30))
    co = table["intervals"]["overall"]["CO"]
    assert (co["value"], co["n"]) == (0.5, 60)
    assert 0.3 < co["low"] < 0.5 < co["high"] < 0.7
    same = SIMPLEVQA.table(graded("AB" * 30, question="the same"))
    assert same["intervals"]["overall"]["CO"]["low"] is None


@pytest.mark.parametrize(
    ("language", "variant"),
    [("EN", "english"), ("english", "english"), ("CN", "chinese"), ("zh", "chinese")],
)
def test_the_language_decides_how_it_is_judged(language: str, variant: str) -> None:
    [request] = SIMPLEVQA.requests(item(language=language, response="Rembrandt"))
    assert (request.id, request.variant, request.references) == ("1", variant, ("Rembrandt",))
    get_task("simplevqa").check(request)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "response"),
        ({"response": "x", "language": "fr"}, "language"),
        ({"response": "x", "vqa_category": "{oops"}, "vqa_category"),
        ({"response": "x", "confidence": 85}, "confidence"),
        ({"response": "x", "confidence": -1}, "confidence"),
        ({"response": "x", "confidence": float("nan")}, "confidence"),
    ],
)
def test_rows_that_do_not_fit(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(FieldError) as error:
        SIMPLEVQA.requests(item(**fields))
    assert (error.value.location, error.value.field) == ("item '1'", wrong)


def test_the_prompts_of_every_style() -> None:
    row = item(**COMPLEX)
    assert SIMPLEVQA.prompts(row, "standard") == {"response": COMPLEX["question"]}
    confident = SIMPLEVQA.prompts(row, "confidence")["response"]
    assert confident.startswith(COMPLEX["question"])
    assert "[0.85]" in confident
    asked = SIMPLEVQA.prompts(row, "cfq")
    assert asked["response"] == COMPLEX["question"]
    assert asked["atomic_response"] == COMPLEX["atomic_question"]
    assert asked["atomic_given_response"].endswith(COMPLEX["question"])
    assert "Rembrandt" in asked["atomic_given_response"]
    atomic = {**COMPLEX, "question": " Who is the person  in the picture?"}
    assert SIMPLEVQA.prompts(item(**atomic), "cfq").keys() == {"response"}
    assert "把握" in SIMPLEVQA.prompts(item(language="CN"), "confidence")["response"]
    for style in SIMPLEVQA.styles:
        with pytest.raises(CustosError, match="item '0': field 'question': is missing"):
            SIMPLEVQA.prompts(item(0, question=" "), style)


def test_the_official_form_of_answers_is_asked_for_in_the_items_language() -> None:
    for style, english, chinese in (
        ("entity", "one short named entity", "简短的命名实体"),
        ("entity-confidence", '"confidence_score": 85', '"confidence_score": 85'),
    ):
        for language, words in (("EN", english), ("CN", chinese)):
            row = item(language=language)
            asked = SIMPLEVQA.prompts(row, style)["response"]
            assert asked.startswith(row["question"])
            assert words in asked, (style, language)
    assert "0 to 100" in SIMPLEVQA.prompts(item(), "entity-confidence")["response"]


def test_the_official_prompts_go_in_by_language() -> None:
    wording = {"response/CN": "看图：{question}", "response": "See: {question}"}
    rows = [item(1, language="CN"), item(2, language="EN")]
    asked = build_questions(SIMPLEVQA, rows, "entity", wording=wording)
    texts = [question.chat.messages[0].text for question in asked]
    assert texts == [f"看图：{rows[0]['question']}", f"See: {rows[1]['question']}"]


def row_values(row: MeasuredRow) -> tuple[float | None, ...]:
    return tuple(map(number_of, row))


def test_rows_beside_the_published_ones() -> None:
    chinese = {"language": "CN", "vqa_category": {"task_category": "LS", "subject_category": "LI"}}
    table = SIMPLEVQA.table([*graded("AABC"), *graded("AB", **chinese)])
    rows = SIMPLEVQA.paper_rows(table, "mine")
    assert rows.keys() == {BY_TASK, BY_DOMAIN}
    third, fourth = (row_values(row["mine"]) for row in rows.values())
    assert third[:5] == pytest.approx((100 * 3 / 6, 100 / 6, 100 * 2 / 6, 60, 100 * 6 / 11))
    assert third[5] == pytest.approx(50)  # F of task LS
    assert third[6] is None
    assert fourth[:6] == pytest.approx((50, 50, 50, 50, 100 * 2 / 3, 100 * 4 / 7))
    interval = rows[BY_TASK]["mine"][0]
    assert isinstance(interval, Mapping)
    assert interval["low"] == pytest.approx(100 * table["intervals"]["overall"]["CO"]["low"])
    columns = {published.source: published.columns for published in SIMPLEVQA.published}
    assert all(len(row["mine"]) == len(columns[source]) for source, row in rows.items())
    cfq = SIMPLEVQA.table([three_forms("+-+", 1), three_forms("--+", 2)])
    assert row_values(SIMPLEVQA.paper_rows(cfq, "mine")[CFQ]["mine"]) == (50, 0, 100)


def test_a_blind_run_belongs_to_table_6_alone() -> None:
    table = SIMPLEVQA.table(graded("ABCC", without_image=True))
    [(source, rows)] = SIMPLEVQA.paper_rows(table, "blind").items()
    assert source == BLIND
    assert row_values(rows["blind"]) == (25, 25, 50, 50)


def test_failures_are_put_down_to_seeing_or_knowing() -> None:
    forms = ["+++", "+-+", "--+", "--+", "0-+", "-+-", "-+0", "---", "-++", "++-"]
    rows = [three_forms(form, number) for number, form in enumerate(forms)]
    lost = three_forms("+++", 99)
    lost["cfq"]["Atomic"]["conclusion"] = None
    cfq = SIMPLEVQA.table([*rows, lost, item(50, judge_res={"response": "A"})])["cfq"]
    assert cfq == pytest.approx(
        {
            "Origin": 4 / 11,  # each form over its own items
            "Atomic": 5 / 10,
            "Atomic-Given": 7 / 11,
            "did not see": 3 / 7,
            "did not know": 2 / 7,
            "neither saw nor knew": 1 / 7,
            "saw and knew": 1 / 7,
        }
    )


def test_a_language_model_stands_in_table_5_with_the_fact_given() -> None:
    rows = [
        {**three_forms(form, n), "without_image": True} for n, form in enumerate(("--+", "---"))
    ]
    published = SIMPLEVQA.paper_rows(SIMPLEVQA.table(rows), "mine")
    assert set(published) == {BLIND, CFQ}
    assert row_values(published[CFQ]["mine"]) == (None, None, 50)


@pytest.mark.parametrize(
    ("question", "is_complex"),
    [
        ("who is the person in the picture", False),
        ("Who is the person, in the picture ?", False),
        ("Who is the mother of the person in the picture?", True),
    ],
)
def test_questions_are_compared_whatever_their_spelling(question: str, is_complex: bool) -> None:
    asked = SIMPLEVQA.prompts(item(**{**COMPLEX, "question": question}), "cfq")
    assert (len(asked) == 3) is is_complex


def test_a_chinese_question_is_compared_by_its_translation() -> None:
    """``custos prep construct step simplevqa-atomic`` writes both questions in English."""
    fields = {**COMPLEX, "language": "CN", "question": "图中的人物是谁？"}
    for translation, count in (
        ("Who is the person in this picture?", 3),
        ("Who is the person in the picture?", 1),
        (None, 3),
    ):
        asked = SIMPLEVQA.prompts(item(**fields, original_question=translation), "cfq")
        assert len(asked) == count


def test_stated_confidence_by_hand() -> None:
    said = [("A", "Rembrandt [0.95]"), ("A", "Rembrandt [90%]"), ("B", "Rubens [0.9]")] + [
        ("C", "no idea [0.1]"),
        ("A", "Rembrandt"),
        ("huh", "Rembrandt [0.2]"),
    ]
    rows = [item(n, conclusion, response=text) for n, (conclusion, text) in enumerate(said)]
    calibration = SIMPLEVQA.table(rows)["calibration"]
    assert calibration["accuracy"] == 2 / 4
    assert calibration["confidence"] == pytest.approx((0.95 + 0.9 + 0.9 + 0.1) / 4)
    assert calibration["by_confidence"] == {
        "0.1-0.2": {"accuracy": 0},
        "0.9-1.0": {"accuracy": 2 / 3},
    }
    stated, right = np.array([0.95, 0.9, 0.9, 0.1]), np.array([1, 1, 0, 0])
    # Bins of equal mass: with fewer items than bins, one for each value of confidence.
    groups = [stated == value for value in (0.95, 0.9, 0.1)]
    expected = sum(abs(stated[g].mean() - right[g].mean()) * g.sum() for g in groups) / 4
    assert calibration["ece"] == pytest.approx(expected)
    # Bins of equal width: .95 lies in the last of 15, which begins at .933, and .9 before it.
    apart = [stated == 0.95, stated == 0.9, stated == 0.1]
    by_width = sum(abs(stated[g].sum() - right[g].sum()) for g in apart) / 4
    assert calibration["ece_equal_width"] == pytest.approx(by_width)
    unread = SIMPLEVQA.table([item(1, "huh", response="Rembrandt [0.2]")])["calibration"]
    assert unread["ece"] is None and unread["by_confidence"] == {}


@pytest.mark.parametrize(
    ("response", "reference", "conclusion"),
    [
        ("There were 24 ships.", "4", "Incorrect"),
        ("There were 4 ships.", "4", "Correct"),
        ("-7 degrees", "7", "Incorrect"),
        ("共有２４艘船。", "4", "Incorrect"),
        ("共有４艘船。", "4", "Correct"),
        ("这是故宫博物院。", "故宫", "Correct"),
        ("A German car", "Man", "Incorrect"),
        ("I do not know.", "No", "Not attempted"),
        ("No idea", "No", "Not attempted"),
        ("There is no way to tell.", "no", "Not attempted"),
        ("No, I cannot see one.", "No", "Correct"),
        ("不知道", "不", "Not attempted"),
        ("The painter is unknown", "unknown", "Correct"),
        ("Unknown", "Unknown", "Correct"),
        ("unknown", "Monet", "Not attempted"),
        ("Nobody", "", "Incorrect"),
        ("Vitamin C", "Vitamin A", "Incorrect"),
    ],
)
def test_rules_know_whole_words_and_numbers_and_answers_that_are_none(
    response: str, reference: str, conclusion: str
) -> None:
    request = JudgeRequest(
        task="simplevqa", question="?", references=(reference,), responses=(response,)
    )
    assert get_task("simplevqa").label_by_rule(request) == conclusion
