"""Hard responses: labels by construction, and frames that do not tell them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from data_prep.made.hard import alternatives, generate_hard, kinds
from data_prep.made.hard_answers import AnswerPool, is_entity, may_mean
from judging.tasks import get_task
from judging.types import LabelledExample, ReferenceMode, Split


def source(number: int, mode: ReferenceMode = "any", size: int = 1) -> LabelledExample:
    return LabelledExample(
        id=f"row-{number}",
        question=f"Who lives in house {number} of the street?",
        references=tuple(f"Right{number}x{i} Qaname" for i in range(size)),
        reference_mode=mode,
        responses=(f"It is Right{number}x0 Qaname.",),
        label="Correct",
        group=f"g-{number}",
    )


def measured(number: int) -> LabelledExample:
    references = (f"{number * 37 + 21} km",)
    return source(number).model_copy(update={"references": references})


SLOT = re.compile(r"\{(?:yes|no|other|same|low|high|question)\}")
SOURCES = [source(number) for number in range(60)]
NUMBERS = [measured(number) for number in range(60)]
SETS = [source(number, "all", 3) for number in range(60)]


@pytest.fixture(scope="module")
def rows() -> list[LabelledExample]:
    return list(generate_hard(SOURCES, 40, 1))


def test_the_task_accepts_every_row_and_ids_are_unique(rows: list[LabelledExample]) -> None:
    for row in (*rows, *generate_hard(SETS, 10, 1)):
        task = get_task(row.task)
        task.check(row)
        task.target(row)
        assert task.rule(row) is None
        assert not SLOT.search(row.response)
    assert len({row.id for row in rows}) == len(rows)
    assert {row.metadata["kind"] for row in rows} == set(kinds()) - {"quantities"}


def test_a_frame_that_claims_is_written_right_and_wrong(rows: list[LabelledExample]) -> None:
    by_draw = defaultdict(list)
    for row in rows:
        by_draw[row.id.rpartition("-")[0]].append(row)
    for drawn in by_draw.values():
        labels = ["Correct", "Wrong"] if drawn[0].metadata["claims"] else ["Wrong"]
        assert [row.label for row in drawn] == labels


def test_a_claim_of_a_set_may_be_partial() -> None:
    labels = Counter(row.label for row in generate_hard(SETS, 20, 1))
    assert labels["Partial"] > 0.15 * labels.total()
    for row in generate_hard(SETS, 20, 1, ["near_miss"]):
        held = [reference in row.response for reference in row.references]
        if row.label == "Wrong":
            assert not all(held)
        else:
            assert (all(held), any(held)) == (row.label == "Correct", True)


@pytest.mark.parametrize("name", kinds())
def test_words_of_a_frame_do_not_tell_the_label(name: str) -> None:
    sources = NUMBERS if name == "quantities" else SOURCES
    rows = [row for row in generate_hard(sources, 12, 3, [name]) if row.metadata["claims"]]
    masked = [re.sub(r"\w*Right\S* Qaname|[\d.,]+( k?m)?", "X", row.response) for row in rows]
    labels = np.array([row.label == "Correct" for row in rows])
    words = CountVectorizer(ngram_range=(1, 2)).fit_transform(masked)
    guessed = cross_val_predict(LogisticRegression(max_iter=500), words, labels, cv=5)
    assert len(rows) > 200
    assert np.mean(guessed == labels) < 0.6


def test_rows_that_hold_no_short_answer_are_passed_over() -> None:
    plain = SOURCES[0]
    unusable = [
        plain.model_copy(update=update)
        for update in (
            {"references": ("yes",)},
            {"references": ("a sentence that goes on for more than eight words here",)},
            {"choices": ("a", "b")},
            {"images": ("a.png",)},
            {"task": "truthful-pair"},
        )
    ]
    assert list(generate_hard(unusable, 5, 0)) == []


names = st.text(alphabet="ABCab 0123456789.,-", min_size=1, max_size=20).filter(is_entity)


@settings(max_examples=60, deadline=None)
@given(st.lists(names, min_size=2, max_size=12, unique=True), st.booleans(), st.randoms())
def test_a_drawn_wrong_answer_never_resembles_a_reference(
    answers: list[str], near: bool, rng: object
) -> None:
    pool = AnswerPool.of(("who", answer) for answer in answers)
    wrong = pool.draw_wrong(rng, answers[0], answers[:1], "who is it", near=near)  # type: ignore[arg-type]
    assert wrong is None or not may_mean(wrong, answers[:1])


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=40), st.text(max_size=40))
def test_hostile_text_goes_through_unchanged(reference: str, question: str) -> None:
    hostile = SOURCES[0].model_copy(
        update={"references": (reference,), "question": question, "responses": ("{yes}{",)}
    )
    for row in generate_hard([hostile, *SOURCES[1:8]], 6, 0):
        assert row.label in ("Correct", "Wrong")


COMPOSED = ("refusal", "affirmation", "revision", "indecision", "statement")
ANSWER = re.compile(r"\b(?:Right\w+|\w+) Qaname\b|\bRight\d+x0(?: \w+)?")
"""The sources' answers and their look-alikes; those of two words that share one with them."""
REJECTED = (
    re.compile(r"(?:\b(?:not|never|neither|nor)|n't|by no means|[❌✗👎]|~~) ?$", re.IGNORECASE),
    re.compile(r"~~|:? (?:is |was )?(?:false|wrong|incorrect|untrue|no)\b| \((?:no|wrong|false)\)"),
)
"""Words right before an answer, and right after it, that reject it."""


def draws(split: Split, per_question: int = 4) -> list[LabelledExample]:
    return list(generate_hard(SOURCES, per_question, 5, COMPOSED, split))


def test_alternatives_are_spelt_out() -> None:
    assert list(alternatives("a[/ b] {no} [c/d]|e")) == [
        "a {no} c\ne",
        "a {no} d\ne",
        "a b {no} c\ne",
        "a b {no} d\ne",
    ]
    assert list(alternatives("[x] {yes}")) == ["[x] {yes}"]


def test_the_splits_draw_different_rows_and_a_seed_the_same() -> None:
    assert draws("train") == draws("train")
    responses = {split: {row.response for row in draws(split)} for split in ("train", "val")}
    assert not responses["train"] & responses["val"]
    assert len(responses["train"]) > 250


def rejected_answers(response: str) -> dict[str, bool]:
    """Return every answer of a response, and whether the words next to it reject it each time."""
    rejections: dict[str, bool] = {}
    before, after = REJECTED
    for match in ANSWER.finditer(response):
        is_rejected = bool(
            before.search(response[: match.start()]) or after.match(response[match.end() :])
        )
        rejections[match[0]] = rejections.get(match[0], True) and is_rejected
    return rejections


def test_the_words_next_to_an_answer_confirm_the_label() -> None:
    decided = 0
    for row in generate_hard(SOURCES, 20, 6, ["refusal"]):
        rejections = rejected_answers(row.response)
        if not any(rejections.values()):
            continue
        decided += 1
        standing = [answer for answer, rejected in rejections.items() if not rejected]
        expected = "Correct" if standing == list(row.references) else "Wrong"
        assert row.label == expected, row.response
    assert decided > 200


def row(response: str, label: str, mode: ReferenceMode) -> LabelledExample:
    return LabelledExample(
        question="Who lives there?",
        references=("Anna Qa", "Bert Qb"),
        reference_mode=mode,
        responses=(response,),
        label=label,
    )
