"""Complex fact questions."""

from __future__ import annotations

import pytest

from benchmarks.framework.leaderboard import number_of
from benchmarks.simplevqa.published_rows import BLIND, CFQ
from tests.benchmarks.simplevqa.made_up import COMPLEX, SIMPLEVQA, graded, item, three_forms


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


def test_a_conclusion_that_cannot_be_read_stays_in_the_papers_denominator() -> None:
    lost = three_forms("+++", 1)
    lost["cfq"]["Atomic"]["conclusion"] = None
    table = SIMPLEVQA.table([lost, three_forms("-++", 2)])
    assert table["cfq"]["Atomic"] == 1
    assert table["as_published"]["cfq"]["Atomic"] == 0.5
    assert table["as_published"]["overall"] == table["overall"]
    row = [number_of(cell) for cell in SIMPLEVQA.paper_rows(table, "mine")[CFQ]["mine"]]
    assert row == [50, 50, 100]


def test_a_language_model_stands_in_table_5_with_the_fact_given() -> None:
    rows = [
        {**three_forms(form, n), "without_image": True} for n, form in enumerate(("--+", "---"))
    ]
    published = SIMPLEVQA.paper_rows(SIMPLEVQA.table(rows), "mine")
    assert set(published) == {BLIND, CFQ}
    assert [number_of(cell) for cell in published[CFQ]["mine"]] == [None, None, 50]


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


@pytest.mark.parametrize(
    ("translation", "is_complex"),
    [
        ("Who is the person in this picture?", True),
        ("Who is the person in the picture?", False),
        (None, True),
    ],
)
def test_a_chinese_question_is_compared_by_its_translation(
    translation: str | None, is_complex: bool
) -> None:
    """``custos prep construct step simplevqa-atomic`` writes both questions in English."""
    fields = {**COMPLEX, "language": "CN", "question": "图中的人物是谁？"}
    asked = SIMPLEVQA.prompts(item(**fields, original_question=translation), "cfq")
    assert (len(asked) == 3) is is_complex


def test_a_file_without_atomic_answers_has_no_such_section() -> None:
    table = SIMPLEVQA.table(graded("AB"))
    assert "cfq" not in table
    assert "calibration" not in table
