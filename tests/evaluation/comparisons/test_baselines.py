import json

import pytest

from evaluation.baselines import (
    RULES,
    containment,
    exact_match,
    majority_verdicts,
    parse_number,
    relaxed_accuracy,
    rule_verdicts,
    shared_token_f1,
    token_f1,
)
from judging.types import JudgeRequest, LabelledExample
from tests.evaluation.made_up import example
from tests.published_files import published

EVOUNA = published("evouna/NQ.json")
ANSWERERS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


def ask(response: str, *references: str, mode: str = "any") -> JudgeRequest:
    return JudgeRequest.model_validate(
        {
            "question": "?",
            "references": references,
            "response": response,
            "reference_mode": mode,
        }
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42", 42),
        (" 1,234.5 ", 1234.5),
        ("-.5", -0.5),
        ("5%", 0.05),
        ("12 %", 0.12),
        ("1e3", 1000),
        ("1,23", None),
        ("about 5", None),
        ("10²", None),
        ("nan", None),
        ("1e999", None),
        ("", None),
    ],
)
def test_parse_number(text: str, expected: float | None) -> None:
    assert parse_number(text) == (None if expected is None else pytest.approx(expected))


def test_exact_match_any() -> None:
    assert exact_match(ask("the Seine.", "Loire", "Seine")) == "Correct"
    assert exact_match(ask("It is the Seine", "Loire", "Seine")) == "Wrong"
    assert exact_match(ask("35", "3.5")) == "Wrong"


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("red, green and blue", "Correct"),
        ("Blue; the red\ngreen", "Correct"),
        ("red, blue", "Partial"),
        ("red", "Partial"),
        ("red, yellow", "Wrong"),
        ("red, green, blue, yellow", "Wrong"),
        ("yellow", "Wrong"),
        ("", "Wrong"),
        (", and", "Wrong"),
    ],
)
def test_exact_match_all_is_set_comparison(response: str, label: str) -> None:
    assert exact_match(ask(response, "red", "green", "blue", mode="all")) == label


def test_a_single_reference_is_never_partial() -> None:
    assert exact_match(ask("Paris, France", "Paris, France", mode="all")) == "Correct"
    assert exact_match(ask("Paris", "Paris, France", mode="all")) == "Wrong"


@pytest.mark.parametrize(
    ("response", "reference", "label"),
    [
        ("105", "100", "Correct"),
        ("95", "100", "Correct"),
        ("105.1", "100", "Wrong"),
        ("-105", "-100", "Correct"),
        ("1,040", "1000", "Correct"),
        ("52%", "0.5", "Correct"),
        ("52%", "50", "Wrong"),
        ("0", "0.0", "Correct"),
        ("0.01", "0", "Wrong"),
        ("Paris", "paris.", "Correct"),
        ("100 dollars", "100", "Wrong"),
    ],
)
def test_relaxed_accuracy(response: str, reference: str, label: str) -> None:
    assert relaxed_accuracy(ask(response, reference)) == label


def test_relaxed_accuracy_all() -> None:
    assert relaxed_accuracy(ask("10.2, 19.5", "10", "20", mode="all")) == "Correct"
    assert relaxed_accuracy(ask("10.2", "10", "20", mode="all")) == "Partial"
    assert relaxed_accuracy(ask("10.2, 30", "10", "20", mode="all")) == "Wrong"


def test_token_f1_by_hand() -> None:
    # One token shared of three and two: 2 * 1 / 5; two of four and two: 4 / 6.
    assert shared_token_f1("river seine flows", "seine bridge") == pytest.approx(2 / 5)
    assert shared_token_f1("go go go now", "go go") == pytest.approx(4 / 6)
    assert shared_token_f1("", "") == 1
    assert shared_token_f1("", "seine") == 0


def test_token_f1_threshold_is_inclusive() -> None:
    assert token_f1(ask("one two", "two three")) == "Correct"  # 2 / 4
    assert token_f1(ask("zero one two", "two three")) == "Wrong"  # 2 / 5
    assert token_f1(ask("zero one two", "nothing", "one two")) == "Correct"
    assert token_f1(ask("king Henry", "Henry VIII", "Anne Boleyn", mode="all")) == "Partial"


def test_containment() -> None:
    assert containment(ask("It was the Seine, I think", "Loire", "Seine")) == "Correct"
    assert containment(ask("No idea", "Loire", "Seine")) == "Wrong"
    both = ("red", "green")
    assert containment(ask("Green first, then red", *both, mode="all")) == "Correct"
    assert containment(ask("Green first, then blue", *both, mode="all")) == "Partial"
    assert containment(ask("Blue", *both, mode="all")) == "Wrong"
    assert containment(ask("It sank in 1912", "12")) == "Wrong"
    assert containment(ask("12 and 30", "1", "12", mode="all")) == "Partial"


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("mode", ["any", "all"])
def test_nothing_said_or_nothing_to_compare_with_is_wrong(name: str, mode: str) -> None:
    assert RULES[name](ask(" ", "Seine", "Loire", mode=mode)) == "Wrong"
    assert RULES[name](ask("Seine", mode=mode)) == "Wrong"
    assert RULES[name](ask("Seine", "", mode=mode)) == "Wrong"


def test_verdicts_of_a_rule_and_of_the_majority() -> None:
    examples = [
        example("Wrong", id="a", responses=("41",)),
        example("Correct", id="b"),
        example("Wrong", id="c"),
    ]
    by_rule = rule_verdicts(exact_match, examples)
    assert [(v.id, v.status, v.label) for v in by_rule] == [
        ("a", "scored", "Wrong"),
        ("b", "scored", "Correct"),
        ("c", "scored", "Correct"),
    ]
    assert [v.label for v in majority_verdicts(examples)] == ["Wrong"] * 3


@pytest.mark.skipif(
    not EVOUNA.is_file(), reason="needs EVOUNA's NQ.json; see tests/published_files.py"
)
@pytest.mark.parametrize(("name", "agreement"), [("containment", 0.829), ("exact_match", 0.388)])
def test_agreement_on_evouna(name: str, agreement: float) -> None:
    examples = evouna()
    assert len(examples) == 15_098
    agreed = sum(RULES[name](item) == item.label for item in examples)
    assert agreed / len(examples) == pytest.approx(agreement, abs=0.002)


def evouna() -> list[LabelledExample]:
    rows = json.loads(EVOUNA.read_text(encoding="utf-8"))
    return [
        example(
            "Correct" if row[f"judge_{answerer}"] else "Wrong",
            question=row["question"],
            references=tuple(row["golden_answer"].split("/")),
            reference_mode="any",
            responses=(row[f"answer_{answerer}"],),
        )
        for row in rows
        for answerer in ANSWERERS
        if not row["improper"] and row[f"answer_{answerer}"] is not None
    ]
