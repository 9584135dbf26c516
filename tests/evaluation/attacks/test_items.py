import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.attacks.items import AttackItem, change_number, kind_of, may_mean, read_items
from judging.rules.whole_words import normalise
from tests.evaluation.attacks.made_up import example, examples


def item_of(*references: str, **fields: str) -> AttackItem:
    return read_items([example("What is it?", list(references), **fields)])[0]


def test_rows_on_one_question_are_one_item() -> None:
    rows = [*examples(), *examples(responses=("another",), label="Wrong")]
    assert [item.request.question for item in read_items(rows)] == [
        row.question for row in examples()
    ]


def test_a_limit_draws_items_but_takes_wrong_answers_from_all() -> None:
    whole = {item.request.question: item for item in read_items(examples(), seed=3)}
    drawn = read_items(examples(), limit=2, seed=3)
    assert len(drawn) == 2
    assert all(item == whole[item.request.question] for item in drawn)
    assert read_items(examples(), limit=2, seed=3) == drawn
    assert {tuple(i.id for i in read_items(examples(), limit=2, seed=s)) for s in range(9)} > {
        tuple(i.id for i in drawn)
    }


def test_wrong_answers_are_of_the_same_kind_and_cannot_be_right() -> None:
    for item in read_items(examples()):
        kind = kind_of(item.references[0])
        assert {kind_of(answer) for answer in item.wrong_answers} <= {kind}
        assert not any(may_mean(answer, item) for answer in item.wrong_answers)
    by_question = {item.request.question: item for item in read_items(examples())}
    assert by_question["Is glass a liquid?"].wrong_answers == ()
    assert set(by_question["How many bones has an adult?"].wrong_answers) == {"1945", "27 May 1937"}


@pytest.mark.parametrize(
    ("answer", "references", "may"),
    [
        ("Eliot", ("George Eliot",), True),
        ("UN", ("United Nations",), True),
        ("United Nations", ("UN",), True),
        ("three", ("3",), True),
        ("the Nile", ("the Danube",), False),
        ("war of the roses", ("king of spades",), False),
        ("1944", ("1945",), False),
    ],
)
def test_answers_that_share_a_word_or_initials_may_mean_the_same(
    answer: str, references: tuple[str, ...], may: bool
) -> None:
    assert may_mean(answer, item_of(*references)) is may


@pytest.mark.parametrize(("variant", "may"), [("plain", False), ("tolerance", True)])
def test_numbers_near_the_right_one_are_no_wrong_answers_of_a_tolerant_judge(
    variant: str, may: bool
) -> None:
    assert may_mean("1,040", item_of("1000", variant=variant)) is may
    assert not may_mean("1,100", item_of("1000", variant=variant))
    assert may_mean("1,000", item_of("1000.0", variant=variant))


def test_another_item_with_the_same_question_gives_no_wrong_answers() -> None:
    rows = [example("Who?", ["Ann"]), example("who", ["Bea"]), example("What?", ["Cob"])]
    assert read_items(rows)[0].wrong_answers == ("Cob",)


@pytest.mark.parametrize(
    ("response", "holds"),
    [
        ("It was the Nile.", True),
        ("juvenile", False),
        ("Three of them", True),
        ("3", True),
        ("尼罗河", True),
        ("nothing", False),
    ],
)
def test_a_reference_is_found_word_for_word(response: str, holds: bool) -> None:
    assert item_of("Nile", "3", "罗").holds_reference(response) is holds


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


@pytest.mark.parametrize("seed", range(10))
def test_a_near_miss_changes_the_number_alone(seed: int) -> None:
    slots = item_of("27 May 1937").slots(random.Random(seed))
    day, rest = slots["near_miss"].split(" ", 1)
    assert (day != "27", rest) == (True, "May 1937")
    year = item_of("in 1937").slots(random.Random(seed))["near_miss"]
    assert 1 <= abs(int(year.split()[1]) - 1937) <= 9


@pytest.mark.parametrize("reference", ["the 21st century", "Paris", "iPhone4"])
def test_an_answer_without_a_plain_number_has_no_near_miss(reference: str) -> None:
    assert "near_miss" not in item_of(reference).slots(random.Random(0))


def test_a_near_miss_is_no_other_reference() -> None:
    item = item_of(*map(str, range(1936, 1950)))
    for seed in range(50):
        near_miss = item.slots(random.Random(seed)).get("near_miss")
        assert near_miss not in item.references


def test_kinds() -> None:
    kinds = {"No.": "polar", "12 May": "number", "twelve": "number", "Ann": "words"}
    assert {answer: kind_of(answer) for answer in kinds} == kinds
    assert normalise("No.") == "no"
