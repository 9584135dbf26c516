from typing import Any

import pytest

from benchmarks.framework.base import get_benchmark
from judging.errors import CustosError
from judging.types import Pass, Verdict

HIEVAL = get_benchmark("hieval")


def example(number: int, label: str, said: str | None, task: str = "hieval-qs") -> dict[str, Any]:
    """A graded row; ``said`` is a full label, ``None`` an item the judge failed on."""
    row = {
        "id": str(number),
        "task": task,
        "question": f"How many in {number}?",
        "references": ["19"],
        "response": "some",
        "label": label,
    }
    score, _, kind = (said or "").partition("; ")
    status: dict[str, Any] = {"status": "judge_error"}
    if said:
        status = {"status": "scored", "label": score, "error_type": kind or None}
    return HIEVAL.graded_row(row, [Verdict(id="other", judge="j1", **status)])


def test_quick_score_is_accuracy() -> None:
    said = ("Correct", "Wrong", "Partial", "Wrong", None)
    people = ("Correct", "Wrong", "Wrong", "Wrong", "Correct")
    rows = [example(n, p, s) for n, (p, s) in enumerate(zip(people, said, strict=True))]
    table = HIEVAL.table(rows)
    assert table["hieval-qs"]["accuracy"] == 3 / 4
    assert (table["n"], table["coverage"], table["judges"]) == (5, 0.8, ["j1"])
    assert [score.value for score in HIEVAL.scores(rows)] == [1, 1, 0, 1, None]


def test_error_analysis_keeps_score_and_type_apart() -> None:
    pairs = [
        ("Wrong; Overthinking", "Wrong; Overthinking"),
        ("Wrong; Overthinking", "Partial; Overthinking"),
        ("Wrong; Other", "Wrong; Reasoning Error"),
        ("Correct", "Correct"),
    ]
    rows = [example(n, p, s, "hieval-ea") for n, (p, s) in enumerate(pairs)]
    table = HIEVAL.table([*rows, example(9, "Wrong", "Wrong")])
    assert table["hieval-qs"]["accuracy"] == 1
    found = table["hieval-ea"]
    assert found["A-Acc"] == 2 / 3  # errors alone
    assert found["S-Acc"] == 3 / 4
    assert found["by_error_type"]["Overthinking"] == 1
    assert found["by_error_type"]["Other"] == 0
    assert found["by_error_type"]["Unanswerable"] is None
    assert table["intervals"]["hieval-ea"]["A-Acc"]["n"] == 3


def test_the_quick_score_sees_no_picture_and_the_error_analysis_does() -> None:
    for task, label, images in (
        ("hieval-qs", "Wrong", ()),
        ("hieval-ea", "Wrong; Other", ("a.png",)),
    ):
        row = {**example(1, label, label, task), "images": ["a.png"]}
        [request] = HIEVAL.requests(_ungraded(row))
        assert request.images == images
        assert request.id == "1" and not hasattr(request, "label")


def test_a_row_without_a_verdict() -> None:
    with pytest.raises(CustosError, match="item '1': no verdict on 'hieval-qs'"):
        HIEVAL.table([_ungraded(example(1, "Wrong", "Wrong"))])


def row_values(row: Any) -> tuple[Any, ...]:
    return tuple(cell["value"] if isinstance(cell, dict) else cell for cell in row)


def test_our_rows_in_the_papers_layout() -> None:
    """Table 2 with time, cost and the rules; Tables 4 and 5 in per cent."""
    quick = HIEVAL.table(
        [
            example(1, "Correct", "Correct"),
            {**example(2, "Wrong", "Correct"), "response": "18.5"},
            {**example(3, "Correct", "Wrong"), "response": "19"},
        ]
    )
    rows = HIEVAL.paper_rows({**quick, "run": {"seconds": 12.500049, "cost": 0.25}}, "mine")
    [(source, own)] = rows.items()
    assert source == "Table 2: quick score"
    assert own["mine"][:2] == (12.5, 0.25)
    assert row_values(own["mine"])[2] == pytest.approx(100 / 3)
    # "some" and "18.5" are not "19"; 18.5 is within 5 % of it
    for name, accuracy in (("Acc (rule)", 200 / 3), ("Relaxed-Acc (rule)", 100 / 3)):
        assert own[name][:2] == (None, "free")
        assert row_values(own[name])[2] == pytest.approx(accuracy)

    pairs = [("Wrong; Overthinking", "Partial; Overthinking"), ("Wrong; Other", "Wrong; Other")]
    rows = HIEVAL.paper_rows(
        HIEVAL.table([example(n, p, s, "hieval-ea") for n, (p, s) in enumerate(pairs)]), "mine"
    )
    four = rows["Table 4: error analysis"]["mine"]
    assert row_values(four) == (None, None, 100, 50)
    five = rows["Table 5: A-Acc by error type"]["mine"]
    assert row_values(five) == (None, None, None, 100, 100, 100)
    assert all(
        len(row) == len(published.columns)
        for published in HIEVAL.published
        for row in rows.get(published.source, {}).values()
    )


def test_the_papers_columns_count_unreadable_replies_as_wrong() -> None:
    """Two right and two unread are 100 % of what was read and 50 % of the paper's column."""
    rows = [example(n, "Wrong", said) for n, said in enumerate(("Wrong", "Wrong", None, None))]
    table = HIEVAL.table(rows)
    assert table["hieval-qs"]["accuracy"] == 1
    assert table["hieval-qs"]["as_published"]["accuracy"] == 0.5
    [(_, own)] = HIEVAL.paper_rows(table, "mine").items()
    assert row_values(own["mine"])[-1] == 50

    label = "Wrong; Overthinking"
    rows = [example(n, label, said, "hieval-ea") for n, said in enumerate((label, None))]
    table = HIEVAL.table(rows)
    assert table["hieval-ea"]["A-Acc"] == 1
    rows_in_paper = HIEVAL.paper_rows(table, "mine")
    assert row_values(rows_in_paper["Table 4: error analysis"]["mine"])[2:] == (50, 50)
    assert row_values(rows_in_paper["Table 5: A-Acc by error type"]["mine"])[3] == 50


def _calibrated(posterior: dict[str, float], label: str) -> Verdict:
    """A verdict whose calibration leads to a label, and whose pass has another posterior."""
    score, _, kind = label.partition("; ")
    return Verdict(
        status="scored",
        label=score,
        error_type=kind or None,
        probabilities={name: 0.9 if name == label else 0.1 for name in posterior},
        confidence=0.9,
        label_mass=1.0,
        posterior="exact",
        passes=(Pass(posterior=posterior),),
    )


def test_the_papers_columns_have_labels_before_calibration() -> None:
    """Calibration turns one right label wrong and, of error types, one wrong label right."""
    row = example(1, "Partial", None)
    said = _calibrated({"Correct": 0.2, "Partial": 0.5, "Wrong": 0.3}, "Wrong")
    table = HIEVAL.table([HIEVAL.graded_row(_ungraded(row), [said])])
    assert table["hieval-qs"]["accuracy"] == 0
    assert table["hieval-qs"]["as_published"]["accuracy"] == 1
    assert row_values(HIEVAL.paper_rows(table, "mine")["Table 2: quick score"]["mine"])[-1] == 100

    row = example(1, "Wrong; Overthinking", None, "hieval-ea")
    posterior = {"Correct": 0.1, "Wrong; Overthinking": 0.4, "Wrong; Other": 0.5}
    said = _calibrated(posterior, "Wrong; Overthinking")
    table = HIEVAL.table([HIEVAL.graded_row(_ungraded(row), [said])])
    assert (table["hieval-ea"]["A-Acc"], table["hieval-ea"]["S-Acc"]) == (1, 1)
    published = table["hieval-ea"]["as_published"]
    assert (published["A-Acc"], published["S-Acc"]) == (0, 1)
    assert published["by_error_type"] == {"Overthinking": 0}
    rows = HIEVAL.paper_rows(table, "mine")
    assert row_values(rows["Table 4: error analysis"]["mine"])[2:] == (0, 100)
    assert row_values(rows["Table 5: A-Acc by error type"]["mine"])[3] == 0


def _ungraded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "verdicts"}
