"""Judges that need no model: rules, regressions, and rivals by task."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from evaluation.baselines import (
    QUICK_RULES,
    RULES_NAME,
    VARIANT_MAJORITY,
    containment,
    exact_match,
    longer_response,
    majority_verdicts,
    measure_by_task,
    nearer_reference,
    overlap_verdicts,
    parse_number,
    relaxed_accuracy,
    rule_verdicts,
    sentence_verdicts,
    token_f1,
)
from evaluation.intervals import Floats
from evaluation.report.report import baseline_verdicts
from judging.types import JudgeRequest, LabelledExample, Verdict
from tests.evaluation.made_up import example


def ask(response: str, *references: str, mode: str = "any") -> JudgeRequest:
    return JudgeRequest.model_validate(
        {"question": "?", "references": references, "response": response, "reference_mode": mode}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 1,234.5 ", 1234.5),
        ("-.5", -0.5),
        ("12 %", 0.12),
        ("1e3", 1000),
        ("1,23", None),
        ("about 5", None),
        ("10²", None),
        ("nan", None),
        ("1e999", None),
    ],
)
def test_parse_number(text: str, expected: float | None) -> None:
    assert parse_number(text) == (None if expected is None else pytest.approx(expected))


def test_a_run_of_digits_is_read_once() -> None:
    started = time.process_time()
    assert relaxed_accuracy(ask("1" * 100_000 + "x", "11")) == "Wrong"
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("red, green and blue", "Correct"),
        ("Blue; the red\ngreen", "Correct"),
        ("red, blue", "Partial"),
        ("red, green, blue, yellow", "Wrong"),
        (", and", "Wrong"),
    ],
)
def test_exact_match_all_is_set_comparison(response: str, label: str) -> None:
    assert exact_match(ask(response, "red", "green", "blue", mode="all")) == label


@pytest.mark.parametrize("rule", [relaxed_accuracy, token_f1])
def test_an_element_that_is_repeated_is_compared_once(rule: Callable[[JudgeRequest], str]) -> None:
    """Models that get stuck write one element again and again."""
    references = [str(number) for number in range(100, 200)]
    started = time.process_time()
    assert rule(ask("199, " * 20_000, *references, mode="all")) == "Partial"
    assert time.process_time() - started < 2


@pytest.mark.parametrize("rule", [exact_match, relaxed_accuracy, token_f1])
def test_thousands_of_elements_are_not_compared_with_all_references(
    rule: Callable[[JudgeRequest], str],
) -> None:
    references = [f"a{number} b{number}" for number in range(3_000)]
    started = time.process_time()
    assert rule(ask("; ".join(references[::-1]), *references, mode="all")) == "Correct"
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("p q; r s", "Correct"),
        ("q p x y", "Partial"),
        ("p x p y p", "Wrong"),  # only one p of the three is shared with "p q"
        ("p x; r x", "Correct"),
        ("p q r s", "Correct"),  # one element for both
        ("p q; x", "Wrong"),
    ],
)
def test_token_f1_all_needs_half_of_the_tokens(response: str, label: str) -> None:
    assert token_f1(ask(response, "p q", "r s", mode="all")) == label


@pytest.mark.parametrize(
    ("response", "reference", "label"),
    [
        ("105", "100", "Correct"),
        ("105.1", "100", "Wrong"),
        ("-105", "-100", "Correct"),
        ("52%", "0.5", "Correct"),
        ("0", "0.0", "Correct"),
        ("0.01", "0", "Wrong"),
        ("Paris", "paris.", "Correct"),
        ("100 dollars", "100", "Wrong"),
    ],
)
def test_relaxed_accuracy(response: str, reference: str, label: str) -> None:
    assert relaxed_accuracy(ask(response, reference)) == label


def test_containment() -> None:
    assert containment(ask("It was the Seine, I think", "Loire", "Seine")) == "Correct"
    assert containment(ask("No idea", "Loire", "Seine")) == "Wrong"
    both = ("red", "green")
    assert containment(ask("Green first, then red", *both, mode="all")) == "Correct"
    assert containment(ask("Green first, then blue", *both, mode="all")) == "Partial"
    assert containment(ask("Blue", *both, mode="all")) == "Wrong"
    assert containment(ask("It sank in 1912", "12")) == "Wrong"
    assert containment(ask("12 and 30", "1", "12", mode="all")) == "Partial"


@pytest.mark.parametrize("name", QUICK_RULES)
@pytest.mark.parametrize("mode", ["any", "all"])
def test_nothing_said_or_nothing_to_compare_with_is_wrong(name: str, mode: str) -> None:
    for response, references in ((" ", ("Seine", "Loire")), ("Seine", ()), ("Seine", ("",))):
        assert QUICK_RULES[name](ask(response, *references, mode=mode)) == "Wrong"


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


def pair(first: str, second: str, label: str = "A", **fields: object) -> LabelledExample:
    given = {"task": "truthful-pair", "references": ("the red fox",), **fields}
    return example(label, responses=(first, second), **given)


@pytest.mark.parametrize(
    ("first", "second", "longer", "nearer"),
    [
        ("It is the red fox.", "A wolf, which hunts at night.", "B", "A"),
        ("red fox", "the  red fox ", "B", "None"),
        ("", "   ", "None", "None"),
    ],
)
def test_rules(first: str, second: str, longer: str, nearer: str) -> None:
    request = pair(first, second)
    assert longer_response(request) == longer
    assert nearer_reference(request) == nearer
    swapped = pair(second, first)
    other_way = {"A": "B", "B": "A", "None": "None"}
    assert longer_response(swapped) == other_way[longer]
    assert nearer_reference(swapped) == other_way[nearer]


def test_the_regression_learns_what_wins_from_other_questions() -> None:
    """Prefer the response without the reference's words, which no rule and no constant says."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(60):
        right, other = f"It is the red fox {number}.", f"I think of wolves {number}, or of owls."
        if rng.integers(2):
            rows.append(pair(other, right, "A", id=str(number), group=f"q{number}"))
        else:
            rows.append(pair(right, other, "B", id=str(number), group=f"q{number}"))
    found = baseline_verdicts(rows)
    assert list(found) == [
        "majority_label",
        "longer_response",
        "nearer_reference",
        "logistic_overlap",
    ]
    labels = {name: [verdict.label for verdict in verdicts] for name, verdicts in found.items()}
    assert labels["logistic_overlap"] == [row.label for row in rows]
    assert not set(labels["nearer_reference"]) & {"None"}
    assert all(
        told != row.label for told, row in zip(labels["nearer_reference"], rows, strict=True)
    )


def of_task(number: int, task: str, variant: str, label: str) -> LabelledExample:
    question = f"Question {number}"
    return example(label, id=str(number), task=task, variant=variant, question=question)


def labelled_as(*labels: str | None) -> list[Verdict]:
    return [
        Verdict(id=str(number), status="scored" if label else "abstain", label=label)
        for number, label in enumerate(labels)
    ]


EXAMPLES = [
    *(of_task(n, "charthal", "normal-open", "1") for n in range(3)),
    of_task(3, "charthal", "normal-open", "0"),
    *(of_task(n, "charthal", "irrelevant", "0") for n in range(4, 6)),
    of_task(6, "chartom-fact", "number", "Correct"),
    of_task(7, "chartom-fact", "number", "Incorrect"),
]


def test_counts_by_hand() -> None:
    judge = labelled_as("1", "1", "0", "0", "0", "1", "Correct", "Incorrect")
    rules = labelled_as(*(None,) * 6, None, "Incorrect")
    measured = measure_by_task(EXAMPLES, judge, {RULES_NAME: rules, "other": judge})
    assert list(measured) == ["charthal", "chartom-fact"]
    charthal, fact = measured["charthal"], measured["chartom-fact"]
    assert charthal["n"] == 6
    assert charthal["accuracy"]["value"] == pytest.approx(4 / 6)
    # Among six rows, 1 in the open rubric and 0 in the other are right five times.
    assert charthal["rivals"][VARIANT_MAJORITY]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert charthal["rivals"][VARIANT_MAJORITY]["gain"]["value"] == pytest.approx(-1 / 6)
    assert RULES_NAME not in charthal["rivals"]  # They decide nothing there.
    assert fact["accuracy"]["value"] == 1
    by_rules = fact["rivals"][RULES_NAME]
    assert by_rules["accuracy"]["value"] == by_rules["decided"] == 0.5
    assert by_rules["gain"]["value"] == 0.5
    assert set(fact["rivals"]) == {RULES_NAME, VARIANT_MAJORITY}


def accuracy(rows: list[LabelledExample]) -> float:
    verdicts = overlap_verdicts(rows)
    assert verdicts is not None
    assert [verdict.id for verdict in verdicts] == [row.id for row in rows]
    assert all(abs(sum(verdict.probabilities.values()) - 1) < 1e-9 for verdict in verdicts)
    return float(np.mean([v.label == r.label for v, r in zip(verdicts, rows, strict=True)]))


WORDS = ("lion", "tiger", "oak", "birch", "iron", "zinc")


def embed(texts: list[str]) -> Floats:
    """Unit vectors in which words of a pair (lion and tiger) are near, and all else is far."""
    vectors = np.full((len(texts), 4), 0.01)
    for row, text in enumerate(texts):
        for place, word in enumerate(WORDS):
            if word in text:
                vectors[row, place // 2] += 1 + place % 2 / 10
    norms: Floats = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / norms


def near_rows() -> list[LabelledExample]:
    """Right where the response is near one of two references, whatever its words."""
    rows = []
    for number in range(60):
        question, is_wrong = divmod(number, 2)
        said, references = WORDS[(question + 2 * is_wrong) % 6], (WORDS[question % 6], "granite")
        fields = {"references": references, "responses": (said,), "reference_mode": "any"}
        fields |= {"id": str(number), "question": f"Question {question}?"}
        rows.append(example("Wrong" if is_wrong else "Correct", **fields))
    return rows


def test_nearness_to_a_reference_decides() -> None:
    verdicts = sentence_verdicts(near_rows(), embed)
    assert verdicts is not None
    assert [verdict.label for verdict in verdicts] == [row.label for row in near_rows()]
    assert {verdict.judge for verdict in verdicts} == {"sentence_embeddings"}
    assert all(abs(sum(verdict.probabilities.values()) - 1) < 1e-9 for verdict in verdicts)
