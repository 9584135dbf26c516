"""What the streams of all makers promise; wordings, claims and objective answers."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, islice
from random import Random
from typing import Any

import pytest
import sympy

from data_prep.made.benchmark_answers import generate_benchmark_answers
from data_prep.made.charts.rows import plan_rows, plan_twins
from data_prep.made.claims import LABELS, Facet, generate_claims, topics
from data_prep.made.criterion import generate_criteria
from data_prep.made.elements import chinese, english
from data_prep.made.mathematics import make_problem
from data_prep.made.objective import KIND_SHARES, generate_objective
from data_prep.made.pairs import generate_pairs
from data_prep.made.parts import LANGUAGES, generate_languages, generate_omissions
from data_prep.made.parts import MAKERS as LANGUAGE_TASKS
from data_prep.made.quick_scores import generate_examples
from data_prep.made.words.wordings import (
    Wording,
    WordingSplit,
    question_wordings_of,
    seeded_rng,
    wordings_of,
    words_of,
)
from data_prep.made.yes_no import generate_yes_no
from judging.tasks import get_task
from judging.types import LabelledExample

MAKERS: dict[str, Callable[[int, int], Iterator[LabelledExample]]] = {
    "quick": lambda count, seed: generate_examples(count, seed, "all"),
    "open": lambda count, seed: generate_examples(count, seed, "train", "open"),
    "claims": lambda count, seed: generate_claims(count, seed, "train"),
    "tested claims": lambda count, seed: generate_claims(count, seed, "test"),
    "criterion": lambda count, seed: generate_criteria(count, seed, "train"),
    "omissions": lambda count, seed: generate_omissions(count, seed, "train"),
    "tested omissions": lambda count, seed: generate_omissions(count, seed, "test"),
    "yes or no": lambda count, seed: generate_yes_no(count, seed, "train"),
    "tested yes or no": lambda count, seed: generate_yes_no(count, seed, "test"),
    "languages": lambda count, seed: generate_languages(count, seed, "hieval-qs"),
    "objective": lambda count, seed: generate_objective(count, seed, "train"),
    "answers": lambda count, seed: generate_benchmark_answers(count, seed, "train"),
    "tested answers": lambda count, seed: generate_benchmark_answers(count, seed, "test"),
    "charts": lambda count, seed: (row.example for row in plan_rows(count, seed, "train")),
    "twins": lambda count, seed: (row.example for row in plan_twins(count, seed, "all")),
    "pairs": lambda count, seed: (row.pair for row in generate_pairs(count, seed, "test", 0.0)),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_rows_depend_on_the_seed_and_their_number_alone(maker: str) -> None:
    make = MAKERS[maker]
    rows = list(make(61, 7))
    assert list(make(61, 7)) == rows
    assert list(make(18, 7)) == rows[:18]
    assert not {row.question for row in make(61, 8)} >= {row.question for row in rows}
    assert len(list(islice(make(10**12, 0), 5))) == 5, "rows are drawn one by one"
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        task = get_task(row.task)
        task.check(row)
        task.target(row)


WORDINGS = (Wording("a", "{x}"), Wording("b", "{x}!", held_out=True))


@pytest.mark.parametrize(
    ("split", "responses", "questions"),
    [("train", "a", "a"), ("test", "b", "ab"), ("all", "ab", "ab")],
)
def test_wordings_of_a_split(split: WordingSplit, responses: str, questions: str) -> None:
    assert [wording.id for wording in wordings_of(WORDINGS, split)] == list(responses)
    assert [wording.id for wording in question_wordings_of(WORDINGS, split)] == list(questions)


def written(table: Any, split: str, inside: bool = False) -> Iterator[str]:
    """Yield the texts of a split in a table of words, without their punctuation."""
    if isinstance(table, dict):
        for name, part in table.items():
            if name not in ("joints", "joins", "unit", "low", "high", "statements"):
                is_other = name in ("train", "test") and name != split
                yield from () if is_other else written(part, split, inside or name == split)
    elif isinstance(table, list):
        for part in table:
            yield from written(part, split, inside)
    elif inside:
        for line in str(table).splitlines():
            yield re.sub(r"\W|\{\w+\}", "", line).casefold()


@pytest.mark.parametrize("maker", ["benchmark_answers", "claims", "criterion", "parts", "yes_no"])
def test_words_of_test_data_are_in_no_other_split(maker: str) -> None:
    trained, tested = (set(written(words_of(maker), split)) for split in ("train", "test"))
    assert min(len(trained), len(tested)) > 10
    assert {text for text in trained & tested if len(text) > 6} == set()


def test_draws_depend_on_the_parts_of_the_key_alone_as_in_data_made_earlier() -> None:
    digest = hashlib.sha256(b"charts\x1f1\x1ftrain\x1funit\x1f0").digest()
    expected = Random(int.from_bytes(digest[:8], "big")).random()
    assert seeded_rng("charts", 1, "train", "unit", 0).random() == expected
    assert seeded_rng("a", "bc").random() != seeded_rng("ab", "c").random()


@pytest.mark.parametrize(
    ("number", "in_english", "in_chinese"),
    [
        (0, "zero", "零"),
        (10, "ten", "十"),
        (15, "fifteen", "十五"),
        (42, "forty-two", "四十二"),
        (105, "one hundred five", "一百零五"),
        (117, "one hundred seventeen", "一百一十七"),
        (930, "nine hundred thirty", "九百三十"),
    ],
)
def test_numbers_are_spelled(number: int, in_english: str, in_chinese: str) -> None:
    assert (english(number), chinese(number)) == (in_english, in_chinese)
    british = in_english.replace("hundred ", "hundred and ")
    assert english(number, " and ") == british


FACETS = [facet for topic in topics() for facet in topic.facets]


@pytest.fixture(scope="module")
def rows() -> list[LabelledExample]:
    return list(generate_claims(2_000, 1, "train"))


def values_of(text: str, facet: Facet) -> set[int]:
    """Return which values of a facet a text names."""
    folded = re.sub(r"\s+", " ", text.lower())
    return {
        number
        for number, phrases in enumerate(facet.values)
        if any(phrase.lower() in folded for phrase in phrases)
    }


def test_the_label_follows_from_the_values_that_are_named(rows: list[LabelledExample]) -> None:
    for row in rows:
        reference = " ".join(row.references)
        topic = next(t for t in topics() if t.name.split()[-1] in row.question)
        wanted = {(f.asked, v) for f in topic.facets for v in values_of(reference, f)}
        named = {(f.asked, v) for f in topic.facets for v in values_of(row.response, f)}
        assert len(wanted) == row.metadata["claims"]
        if not named or named - wanted:
            assert row.label == "Wrong"
        else:
            assert row.label == ("Correct" if named == wanted else "Partial")


def test_all_labels_and_kinds_are_drawn_and_no_reference_is_copied(
    rows: list[LabelledExample],
) -> None:
    counts = Counter(row.label for row in rows)
    assert min(counts.values()) > 0.2 * len(rows)
    assert {row.metadata["kind"] for row in rows} == {f"claims_{name}" for name in LABELS}
    copies = [row for row in rows if row.label == "Correct" and row.response in row.references]
    assert len(copies) < 0.05 * len(rows)


def test_test_responses_use_sentences_of_their_own() -> None:
    heads = [
        head
        for facet in FACETS
        for sentence in facet.sentences["train"]
        if len(head := sentence.partition("{v}")[0].replace("{s}", "").strip()) > 12
    ]
    for row in generate_claims(400, 1, "test"):
        assert not [head for head in heads if head in row.response]


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.asked)
def test_phrases_of_two_values_cannot_be_mistaken(facet: Facet) -> None:
    assert len(facet.sentences["train"]) >= 6
    assert len(facet.values) >= 5
    assert all(
        "{v}" in sentence for sentence in (*facet.sentences["train"], *facet.sentences["test"])
    )
    for one, other in combinations(facet.values, 2):
        for a in one:
            assert all(a not in b and b not in a for b in other)


TRAIN = list(generate_objective(1200, 3, "train"))
TEST = list(generate_objective(1200, 3, "test"))


def test_every_kind_and_both_languages_have_both_labels() -> None:
    counts = Counter((row.metadata["kind"], row.label) for row in TRAIN + TEST)
    assert set(counts) == {(kind, label) for kind in KIND_SHARES for label in ("Correct", "Wrong")}
    languages = Counter(row.metadata["language"] for row in TEST)
    assert 0.2 < languages["zh"] / len(TEST) < 0.4


def test_forms_and_layouts_of_test_are_in_no_other_split() -> None:
    for field in ("layout", "form"):
        seen, tested = (
            {(*map(row.metadata.get, ("kind", "language", field)),) for row in rows}
            for rows in (TRAIN, TEST)
        )
        assert {key for key in seen & tested if key[-1] not in ("cut", "@a")} == set()


def test_right_final_answers_are_correct_and_others_wrong() -> None:
    cuts = words_of("objective")["cut"].values()
    ends = tuple(text for by_split in cuts for each in by_split.values() for text in each)
    for row in TRAIN + TEST:
        assert (row.label == "Correct") == (row.metadata["ending"] == "right")
        assert (row.metadata["ending"] == "cut") == row.responses[0].endswith(ends)


def _radical(text: str) -> sympy.Expr:
    return sympy.sympify(re.sub(r"√(\d+)", r"*sqrt(\1)", re.sub("^(-?)√", r"\1 1√", text)))


def _polynomial(text: str) -> sympy.Expr:
    plain = text.replace("²", "^2").replace("^", "**")
    return sympy.expand(sympy.sympify(re.sub(r"(\d)x", r"\1*x", plain)))


_PLAIN: dict[str, Callable[[str], sympy.Expr]] = {
    "number": lambda text: sympy.Rational(text.removesuffix("%")) / (100 if "%" in text else 1),
    "radical": _radical,
    "polynomial": _polynomial,
    "angle": lambda text: sympy.sympify(re.sub(r"(\d)π", r"\1*pi", text).replace("π", "pi")),
}
"""How sympy reads the forms in plain text."""


@pytest.mark.parametrize("kind", list(_PLAIN))
def test_sympy_agrees_on_what_is_equal(kind: str) -> None:
    for seed in range(30):
        problem = make_problem(Random(seed), kind, "en")
        [right], *wrong = (
            {_PLAIN[kind](form.text) for form in forms if not form.is_latex}
            for forms in (problem.right, *problem.wrong)
        )
        assert all(len(values) == 1 and right not in values for values in wrong)


def given_parts(row: LabelledExample) -> list[str]:
    """List the parts of a row's answer that its response holds, from the first reference's text."""
    [joined, *_] = row.references if row.reference_mode != "all" else [" / ".join(row.references)]
    between = r" / |, | und | and | y |、|和"
    parts = re.split(between, joined) if row.metadata["kind"] != "weight" else joined.split()
    return [part for part in parts if part.casefold() in row.responses[0].casefold()]


def test_what_a_response_leaves_out_decides_its_label() -> None:
    """Complete and incomplete answers have the same sentences; languages are equally frequent."""
    rows = list(generate_omissions(1600, 3, "train"))
    counts = Counter((row.metadata["behaviour"], row.reference_mode, row.label) for row in rows)
    assert {key[1:] for key in counts if key[0] == "omission"} == {
        ("all", "Partial"),
        ("any", "Wrong"),
        ("any-partial", "Partial"),
    }
    assert {label for behaviour, _, label in counts if behaviour == "complete"} == {"Correct"}
    assert {label for behaviour, _, label in counts if behaviour in ("replaced", "added")} == {
        "Wrong"
    }
    assert not any(mode != "all" for behaviour, mode, _ in counts if behaviour == "added")
    assert set(Counter(row.metadata["language"] for row in rows).values()) == {400}
    for row in rows:
        if row.metadata["language"] == "zh" and row.metadata["kind"] == "weight":
            continue  # written without a space
        number = len(given_parts(row))
        joined = max(1, len(row.references)) if row.reference_mode == "all" else 1
        assert number >= 1 or row.metadata["behaviour"] == "replaced", row
        if row.metadata["behaviour"] == "complete" and joined > 1:
            assert number == len(row.references), row
        if row.metadata["behaviour"] == "omission" and joined > 1:
            assert 0 < number < len(row.references), row


@pytest.mark.parametrize("task", LANGUAGE_TASKS)
def test_every_task_of_the_languages_takes_their_rows(task: str) -> None:
    rows = list(generate_languages(160, 1, task))
    assert Counter(row.metadata["language"] for row in rows) == dict.fromkeys(LANGUAGES, 40)
    for row in rows:
        get_task(task).check(row)
        assert row.label in get_task(task).labels(get_task(task).rubric(row))
    assert len({row.label for row in rows}) > 1
