"""Hard responses: labels by construction, frames that do not tell them, numbers and options."""

import re
import time
import unicodedata
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from data_prep.made.hard import alternatives, generate_hard, kinds
from data_prep.made.hard_answers import (
    OTHER_UNITS,
    AnswerPool,
    is_entity,
    look_alike,
    may_mean,
    may_name,
    misspell,
    name_forms,
    quantity_slots,
    read_quantity,
)
from data_prep.made.hard_options import generate_options
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


SLOT = re.compile(r"\{(?:yes|no|other|same|low|high|question)\}")
SOURCES = [source(number) for number in range(60)]
NUMBERS = [
    example.model_copy(update={"references": (f"{number * 37 + 21} km",)})
    for number, example in enumerate(SOURCES)
]
SHORT_NAMES = [
    example.model_copy(update={"references": (f"{chr(65 + number)}{letter}x Qana",)})
    for letter in "ab"
    for number, example in enumerate(SOURCES[:26])
]
SETS = [source(number, "all", 3) for number in range(60)]


@pytest.fixture(scope="module")
def rows() -> list[LabelledExample]:
    return list(generate_hard(SOURCES, 20, 1))


def test_the_task_accepts_every_row_and_ids_are_unique(rows: list[LabelledExample]) -> None:
    for row in (*rows, *generate_hard(SETS, 10, 1)):
        task = get_task(row.task)
        task.check(row)
        task.target(row)
        assert task.rule(row) is None
        assert not SLOT.search(row.response)
    assert len({row.id for row in rows}) == len(rows)
    assert {row.metadata["kind"] for row in rows} == set(kinds()) - {
        "quantities",
        "misspelt",
        "name_forms",
    }


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
    sources = {"quantities": NUMBERS, "misspelt": SHORT_NAMES, "name_forms": SHORT_NAMES}.get(
        name, SOURCES
    )
    rows = [row for row in generate_hard(sources, 12, 3, [name]) if row.metadata["claims"]]
    answers = re.compile(r"\w*Right\S* Qaname|[\d.,]+( k?m)?|(?i:[a-z]{3} qana)")
    masked = [answers.sub("X", row.response) for row in rows]
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


def test_the_splits_draw_different_rows() -> None:
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


def value_of(text: str) -> float:
    [number] = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return float(number.replace(",", ""))


@given(
    st.integers(1, 10**7),
    st.integers(0, 3),
    st.sampled_from(["", *sorted(OTHER_UNITS), "members"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_a_number_earns_its_label(
    digits: int, decimals: int, unit: str, tolerance: bool, seed: int
) -> None:
    gap = "" if unit == "%" else " "
    reference = f"{digits / 10**decimals:.{decimals}f}{gap}{unit}".strip()
    quantity = read_quantity((reference,))
    if quantity is None:
        return
    for label in ("Correct", "Wrong"):
        slots = quantity_slots(Random(seed), quantity, label, tolerance=tolerance)
        off = abs(value_of(slots["yes"]) - quantity.value) / quantity.value
        ending = f"{gap}{unit}".replace("percent", "%") if unit else ""
        same_unit = slots["yes"].replace("percent", "%").endswith(ending)
        allowed = 0.0501 if tolerance else 1e-9
        if label == "Correct":
            assert same_unit
            assert off < allowed
        elif same_unit:
            assert off > allowed or not tolerance
            assert off > 0
        assert value_of(slots["low"]) < quantity.value < value_of(slots["high"])


@pytest.mark.parametrize(
    ("references", "value"),
    [
        (("1,234 km",), 1234),
        (("$84.3 million",), 84.3),
        (("100", "100 members"), 100),
        (("12.5 %",), 12.5),
        (("about 300 miles",), 300),
        (("24 hours a day",), 24),
    ],
)
def test_a_quantity_is_read(references: tuple[str, ...], value: float) -> None:
    quantity = read_quantity(references)
    assert quantity is not None
    assert quantity.value == value


@pytest.mark.parametrize(
    "references",
    [
        ("1998",),
        ("3",),
        ("12 Monkeys",),
        ("May 2018",),
        ("100", "200"),
        ("47th",),
        ("1988年",),
        ("7-9",),
        ("x",),
        ("1" * 400,),  # infinite as a float
        ("1" * 308,),  # ten times as much is
    ],
)
def test_years_names_and_small_counts_are_no_quantities(references: tuple[str, ...]) -> None:
    assert read_quantity(references) is None


def test_a_number_that_is_infinite_as_a_float_has_no_look_alike() -> None:
    pool = AnswerPool.of([])
    for seed in range(20):
        assert look_alike(Random(seed), "1" * 400, pool) is None
        assert (made := look_alike(Random(seed), f"7 of {'1' * 400}", pool)) is not None
        assert "inf" not in made


def test_a_long_word_behind_a_number_is_read_once() -> None:
    started = time.process_time()
    assert read_quantity((f"25 {'a' * 30_000}!",)) is None
    assert time.process_time() - started < 1


FIRST = ("Paris", "Anna", "Louis", "Marta", "Jan", "Eva")
LAST = ("Dupont", "Berg", "Klein", "Silva", "Novak", "Lind", "Rossi", "Weber", "Costa", "Haas")
NAMES = [f"{first} {last}" for last in LAST for first in FIRST]


def option_rows(mode: str = "any", size: int = 1) -> list[LabelledExample]:
    return [
        LabelledExample(
            id=f"q{number}",
            question=f"Who won the race in {1950 + number}?",
            references=tuple(NAMES[(number + 7 * k) % 60] for k in range(size)),
            reference_mode=mode,
            responses=("someone",),
            label="Wrong",
        )
        for number in range(60)
    ]


@pytest.fixture(scope="module")
def options() -> list[LabelledExample]:
    return list(generate_options(option_rows(), 4, seed=1))


def test_labels_follow_from_the_option_that_is_claimed(options: list[LabelledExample]) -> None:
    """Bare answers are read here anew: by letter or by text, against the option of the source."""
    right_of = {row.question: row.references[0] for row in option_rows()}
    checked = Counter[str]()
    for row in (*options, *generate_options(option_rows(), 12, seed=3)):
        if row.choices and re.fullmatch(
            r"It is .*\.|I'd say .*\.|The answer is .{3,}\.", row.response
        ):
            claim = re.sub(r"^(It is|I'd say|The answer is) |\.$", "", row.response)
            assert (row.label == "Correct") == (claim == right_of[row.question])
            checked[row.label] += 1
    assert min(checked["Correct"], checked["Wrong"]) >= 3


def test_the_right_option_is_listed_once_and_every_row_can_be_judged(
    options: list[LabelledExample],
) -> None:
    right_of = {row.question: row.references[0] for row in option_rows()}
    for row in options:
        get_task(row.task).check(row)
        source = next(question for question in right_of if question in row.question)
        right = right_of[source]
        listed_once = row.choices.count(right) if row.choices else row.question.count(right)
        assert listed_once == 1
        assert "{" not in row.question + row.response
        assert not row.choices or get_task(row.task).rule(row) is None
    assert {bool(row.choices) for row in options} == {True, False}
    assert len({row.id for row in options}) == len(options)


def test_wordings_of_training_and_of_other_splits_are_apart() -> None:
    def wordings(split: str) -> set[str]:
        texts = (row.response for row in generate_options(option_rows(), 8, 2, split))  # type: ignore[arg-type]
        return {re.sub("|".join(NAMES) + r"|\b[A-Fa-f]\b", "_", text) for text in texts}

    assert not {text for text in wordings("train") & wordings("test") if len(text) > 8}


def test_sets_have_a_part_of_the_options() -> None:
    labels = Counter(row.label for row in generate_options(option_rows("all", 2), 3, seed=1))
    assert min(labels["Correct"], labels["Partial"], labels["Wrong"]) > 20


def test_a_response_breaks_off_after_its_claim_or_without_one() -> None:
    rows = list(generate_hard(SOURCES, 10, 1, ["cut_off"]))
    for row in rows:
        right = f"Right{row.group[2:]}x0 Qaname"
        if row.label == "Correct":
            assert right in row.response
        elif row.metadata["claims"]:
            assert re.search(r"Right\d+x\d+ Qaname", row.response.replace(right, ""))
        assert "¦" not in row.response
    assert sum(row.response.endswith(".") for row in rows) < 0.1 * len(rows)


@given(st.text("abcdefghiklmnoprstuvxyzé", min_size=6, max_size=12), st.integers(0, 2**32))
def test_a_misspelt_word_is_one_mistake_away(word: str, seed: int) -> None:
    written = misspell(Random(seed), word)
    assert written[0] == unicodedata.normalize("NFKD", word)[0] or written[0] == word[0]
    # An accent that is left out, and one letter or one sound in the place of another.
    assert SequenceMatcher(None, word.replace("é", "e"), written.replace("é", "e")).ratio() >= 0.6
    assert misspell(Random(seed), "Rome 1984") in ("Rome 1984", "rome 1984")


def test_only_names_of_people_have_other_forms() -> None:
    forms = ["Watson", "Watson, John B.", "J. Watson", "John Watson", "J.B. Watson"]
    assert name_forms("John B. Watson") == forms
    others = ("James I", "Sir Edward Henry", "West Indies", "World Bank", "Robert Downey Jr.")
    for name in (*others, "Portugal. The Man", "Frank Zappa's", "MGM Grand", "Watson"):
        assert name_forms(name) == []


@pytest.mark.parametrize(
    ("form", "name", "expected"),
    [
        ("Haggerty", '"Dan" Haggerty', True),
        ("D. Haggerty", '"Dan" Haggerty', True),
        ("James", "Jesse Frederick James Conaway", True),
        ("H. Haggerty", "Dan Haggerty", True),  # no other than the surname's: passed over
        ("M. Haggerty", "Dan Haggerty", False),
        ("Haggerty, Max", "Dan Haggerty", False),
    ],
)
def test_a_form_may_be_of_a_name(form: str, name: str, expected: bool) -> None:
    assert may_name(form, ("Bo Derek", name)) == expected
