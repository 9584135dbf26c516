"""Items of a user, what families of attacks make of them, and that training shares no wording."""

import random
import re
import time
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.hard import kinds
from data_prep.made.words.wordings import words_of
from evaluation.attacks.items import (
    AttackFamily,
    AttackItem,
    attack_words,
    change_number,
    families,
    kind_of,
    may_mean,
    read_items,
)
from evaluation.attacks.rows import AttackRow, attack_rows, largest_pool, suffix_pool
from judging import CustosError, JudgeRequest
from judging.tasks import get_task
from judging.types import LabelledExample, ReferenceMode
from tests.evaluation.attacks.made_up import example, examples


def item_of(*references: str, **fields: str) -> AttackItem:
    return read_items([example("What is it?", list(references), **fields)])[0]


def test_rows_on_one_question_are_one_item() -> None:
    rows = [*examples(), *examples(responses=("another",), label="Wrong")]
    assert [item.request.question for item in read_items(rows)] == [
        row.question for row in examples()
    ]


def test_wrong_answers_are_of_the_same_kind_and_cannot_be_right() -> None:
    for item in read_items(examples()):
        kind = kind_of(item.references[0])
        assert {kind_of(answer) for answer in item.wrong_answers} <= {kind}
        assert not any(may_mean(answer, item) for answer in item.wrong_answers)
    by_question = {item.request.question: item for item in read_items(examples())}
    assert by_question["Is glass a liquid?"].wrong_answers == ()
    assert set(by_question["How many bones has an adult?"].wrong_answers) == {"1945", "27 May 1937"}


def test_answers_that_share_a_word_or_initials_may_mean_the_same() -> None:
    for answer, reference, may in (
        ("Eliot", "George Eliot", True),
        ("UN", "United Nations", True),
        ("United Nations", "UN", True),
        ("three", "3", True),
        ("war of the roses", "king of spades", False),
        ("1944", "1945", False),
    ):
        assert may_mean(answer, item_of(reference)) is may, answer


def test_long_lists_of_numbers_are_compared_in_time() -> None:
    odd, even = (";".join(map(str, range(first, 20_000, 2))) for first in (1, 2))
    item = item_of(even)
    started = time.process_time()
    assert not may_mean(odd, item)
    assert may_mean(odd + ";2000", item)
    assert time.process_time() - started < 2


def test_a_reference_is_found_word_for_word() -> None:
    item = item_of("Nile", "3", "罗")
    assert all(map(item.holds_reference, ("It was the Nile.", "Three of them", "3", "尼罗河")))
    assert not any(map(item.holds_reference, ("juvenile", "nothing")))


NUMBERS = st.one_of(
    st.integers(0, 3_000).map(str),
    st.integers(1_000, 10**9).map("{:,}".format),
    st.floats(0.1, 1e4).map("{:.2f}".format),
)


@given(NUMBERS, st.booleans(), st.randoms(use_true_random=False))
def test_a_changed_number_keeps_its_notation_and_leaves_the_tolerance(
    number: str, is_tolerant: bool, draw: random.Random
) -> None:
    changed = change_number(number, is_tolerant, draw)
    value, other = (float(text.replace(",", "")) for text in (number, changed))
    assert other != value and other >= 0
    assert ("," in changed) <= ("," in number)
    assert len(changed.partition(".")[2]) == len(number.partition(".")[2])
    if is_tolerant and value:
        assert abs(other - value) / value > 0.05


def test_a_number_that_is_infinite_as_a_float_is_not_changed() -> None:
    rows = attack_rows([item_of("1" * 400)])
    assert rows and not any(re.search(r"\binf\b", row.request.response) for row in rows)


MOST = 99
WHO = "Neil Gaiman and Terry Pratchett"
BOTH = example("Which two wrote Good Omens?", [WHO])
texts = st.text(min_size=1, max_size=40).filter(str.strip)
users_rows = st.builds(
    example,
    texts,
    st.lists(texts, min_size=1, max_size=3),
    reference_mode=st.sampled_from(["any", "all"]),
    variant=st.sampled_from(["plain", "tolerance"]),
)


def rows_of(name: str, wordings: int = MOST) -> list[AttackRow]:
    return attack_rows(read_items([*examples(), BOTH]), [name], wordings)


@pytest.mark.parametrize("family", families().values(), ids=lambda family: family.name)
def test_every_wording_can_be_filled(family: AttackFamily) -> None:
    assert {row.wording for row in rows_of(family.name)} == set(family.wordings)


@settings(max_examples=15)
@given(st.lists(users_rows, min_size=1, max_size=4), st.integers(0, 3))
def test_rows_are_valid_requests_and_depend_on_seed_and_items_alone(
    rows: list[LabelledExample], seed: int
) -> None:
    made, again = (attack_rows(read_items(rows, seed=seed), (), 2, seed) for _ in range(2))
    assert made == again
    for row in made:
        get_task(row.request.task).check(JudgeRequest.model_validate(row.request.model_dump()))
        assert row.request.responses[0].strip()


@pytest.mark.parametrize("name", ["wrong_option", "right_option"])
def test_families_of_options_name_one_listed_option(name: str) -> None:
    """The right one is listed once, wherever the options stand, and the references name it."""
    for row in rows_of(name):
        request = row.request
        listed = "|".join(request.choices) or request.question
        item = next(
            each for each in (*examples(), BOTH) if row.request.id.startswith(f"{each.id}/")
        )
        assert sum(reference in listed for reference in item.references) >= 1
        assert request.question.startswith(item.question)
        ruling = get_task(request.task).rule(request)
        assert ruling is None or ruling.label == ("Correct" if "right" in name else "Wrong")


@pytest.mark.parametrize(
    ("references", "mode", "parts"),
    [
        ([WHO], "any", {"Neil Gaiman", "Terry Pratchett"}),
        ([WHO], "all", {"Neil Gaiman", "Terry Pratchett"}),
        (["Ann Lee, Bo Ray and Cy Fox"], "any", {"Ann Lee, Bo Ray", "Cy Fox"}),
        (["12 Meter und 5 Stunden"], "any", {"12 Meter", "5 Stunden"}),
        (["red", "blue"], "all", {"red", "blue"}),
        (["Trinidad and Tobago"], "any", set()),
        ([WHO, "Neil Gaiman", "Terry Pratchett"], "any", set()),
        (["Jane Austen"], "all", set()),
        (["red", "blue"], "any", set()),
    ],
)
def test_what_is_left_out_is_certainly_missing(
    references: list[str], mode: ReferenceMode, parts: set[str]
) -> None:
    item, *_ = read_items([example("Who?", references, reference_mode=mode)])
    drawn = [item.parts(random.Random(seed)) for seed in range(40)]
    assert {each["part"] for each in drawn if each} == parts
    for each in drawn:
        assert not each or all(part in each["reordered"] for part in parts)


def test_a_response_that_happens_to_hold_a_reference_is_no_attack() -> None:
    yes = example("Is water wet?", ["yes"])
    capital = example("Is Paris the capital of France?", ["Paris"])
    items = read_items([yes, capital, *examples()])[:2]
    keys = {row.request.response for row in attack_rows(items[:1], ["master_keys"], MOST)}
    assert "True" in keys and "Yes." not in keys
    with pytest.raises(CustosError, match="give no row for restated_question"):
        attack_rows(items[1:], ["restated_question"], MOST)


SIZE = 5
SLOT = re.compile(r"\{\w+\}")
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
"""A character of a script without spaces, or a word of another script."""

PARTS = words_of("hard")["parts"]
TRAINING = [
    *(frame.template for kind in kinds().values() for frame in kind.frames),
    *(word for name in ("openings", "closings", "fillers") for word in PARTS[name]),
]
ATTACKS = [
    *(wording for family in families().values() for wording in family.wordings.values()),
    *attack_words()["padding"].splitlines(),
    *suffix_pool(largest_pool()),
]


def words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def ngrams(wordings: Iterable[str]) -> Iterator[str]:
    """Runs of fixed words; a slot ends a run."""
    for wording in wordings:
        for segment in SLOT.split(wording.replace("{{", " ").replace("}}", " ")):
            fixed = words(segment)
            for start in range(len(fixed) - SIZE + 1):
                yield " ".join(fixed[start : start + SIZE])


def whole(wordings: Iterable[str]) -> set[str]:
    """Wordings of two fixed words or more, whatever their slots are called."""
    return {
        " ".join(SLOT.sub(" \N{WHITE SQUARE} ", wording).casefold().split())
        for wording in wordings
        if len(words(SLOT.sub(" ", wording))) >= 2
    }


def test_no_run_of_five_words_is_shared() -> None:
    assert set(ngrams(TRAINING)) & set(ngrams(ATTACKS)) == set()


def test_no_wording_is_shared() -> None:
    assert whole(TRAINING) & whole(ATTACKS) == set()


def test_the_comparison_would_see_a_shared_wording() -> None:
    copied = next(text for text in TRAINING if len(words(SLOT.split(text)[0])) >= SIZE)
    assert set(ngrams([copied])) & set(ngrams(TRAINING))
    assert len(set(ngrams(TRAINING))) > 500 and len(set(ngrams(ATTACKS))) > 200
    assert whole(["X is {a}, not {b}"]) == whole(["x is {yes}, not {no}"])
    assert list(ngrams(["一二三四五{x}六"])) == ["一 二 三 四 五"]
