from __future__ import annotations

import math
from collections import Counter
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.synthetic.text.behaviours import BEHAVIOURS, Behaviour, Situation
from data_prep.synthetic.text.elements import Element, chinese, english, quantity
from data_prep.synthetic.text.generate import draw_world, generate_examples
from data_prep.synthetic.text.names import Language
from data_prep.synthetic.text.open_worlds import OPEN_WORLDS
from data_prep.synthetic.text.questions import QUESTIONS
from data_prep.synthetic.text.wordings import WORDINGS
from data_prep.synthetic.text.worlds import SET_WORLDS
from data_prep.synthetic.wording import WordingSplit
from judging.types import LabelledExample

WORDING_SPLITS: tuple[WordingSplit, ...] = ("train", "test", "all")
HELD_OUT = {form.id for form in WORDINGS if form.held_out}
HELD_OUT_QUESTIONS = {form.id for form in QUESTIONS if form.held_out}

seeds = st.integers(min_value=-(2**63), max_value=2**63)
splits = st.sampled_from(WORDING_SPLITS)


@pytest.fixture(scope="module")
def train_rows() -> list[LabelledExample]:
    return list(generate_examples(4000, seed=1, wordings="train"))


@pytest.fixture(scope="module")
def test_rows() -> list[LabelledExample]:
    return list(generate_examples(4000, seed=1, wordings="test"))


def _seen(rows: list[LabelledExample], key: str) -> set[str]:
    return {row.metadata[key] for row in rows}


# Reproducible and streaming.


def test_same_seed_gives_the_same_rows() -> None:
    assert list(generate_examples(40, 7, "all")) == list(generate_examples(40, 7, "all"))


def test_a_longer_run_starts_with_the_shorter_one() -> None:
    assert list(generate_examples(100, 7, "train"))[:30] == list(generate_examples(30, 7, "train"))


def test_other_seeds_give_other_worlds() -> None:
    first, second = (
        {row.question for row in generate_examples(80, seed, "all")} for seed in (1, 2)
    )
    assert not first & second


def test_rows_are_drawn_one_by_one() -> None:
    assert len(list(islice(generate_examples(10**12, 0, "train"), 5))) == 5


def test_rows_of_a_group_share_their_question(train_rows: list[LabelledExample]) -> None:
    questions: dict[str, set[str]] = {}
    for row in train_rows:
        questions.setdefault(row.group, set()).add(row.question)
    assert all(len(asked) == 1 for asked in questions.values())
    assert len({row.id for row in train_rows}) == len(train_rows)


# The tables of forms.


def test_there_are_at_least_sixty_forms_and_fifteen_are_held_out() -> None:
    assert len({form.id for form in WORDINGS}) == len(WORDINGS) >= 60
    assert len({form.id for form in QUESTIONS}) == len(QUESTIONS)
    assert len(HELD_OUT) >= 15


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("held_out", [False, True])
def test_every_family_is_worded_in_each_language_on_both_sides(
    language: str, held_out: bool
) -> None:
    used = {family for behaviour in BEHAVIOURS for family in behaviour.families}
    worded = {f.family for f in WORDINGS if f.language == language and f.held_out == held_out}
    assert worded == used


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_world_has_a_question_for_training(language: str) -> None:
    worlds = {world.__name__ for world, _ in (*SET_WORLDS, *OPEN_WORLDS)}
    assert worlds == {
        form.world for form in QUESTIONS if form.language == language and not form.held_out
    }


def test_held_out_forms_never_occur_in_train(train_rows: list[LabelledExample]) -> None:
    assert not _seen(train_rows, "form") & HELD_OUT
    assert not _seen(train_rows, "question_form") & HELD_OUT_QUESTIONS


def test_test_is_worded_in_held_out_forms_only(test_rows: list[LabelledExample]) -> None:
    assert _seen(test_rows, "form") == HELD_OUT
    assert _seen(test_rows, "question_form") >= HELD_OUT_QUESTIONS


@pytest.mark.parametrize("side", ["train_rows", "test_rows"])
def test_everything_occurs_on_both_sides(side: str, request: pytest.FixtureRequest) -> None:
    rows: list[LabelledExample] = request.getfixturevalue(side)
    assert _seen(rows, "behaviour") == {behaviour.name for behaviour in BEHAVIOURS}
    assert _seen(rows, "language") == {"en", "zh"}
    assert {row.variant for row in rows} == {"plain", "tolerance"}
    assert {row.reference_mode for row in rows} == {"all", "any"}
    assert {len(row.references) for row in rows if row.reference_mode == "all"} == {1, 2, 3, 4, 5}


def test_all_forms_occur_in_all() -> None:
    assert _seen(list(generate_examples(8000, 3, "all")), "form") == {form.id for form in WORDINGS}


def test_labels_come_in_their_shares(train_rows: list[LabelledExample]) -> None:
    sets = Counter(row.label for row in train_rows if row.reference_mode == "all")
    shares = {label: count / sets.total() for label, count in sets.items()}
    assert shares == pytest.approx({"Correct": 0.45, "Partial": 0.20, "Wrong": 0.35}, abs=0.04)


def test_form_alone_does_not_give_the_label_away(train_rows: list[LabelledExample]) -> None:
    labels: dict[str, set[str]] = {}
    for row in train_rows:
        labels.setdefault(row.metadata["form"], set()).add(row.label)
    one_sided = {form.split(".")[1] for form, seen in labels.items() if len(seen) == 1}
    assert one_sided <= {"refusal", "cut", "empty", "guesses"}


# Labels hold.


@settings(deadline=None)
@given(seeds, splits)
def test_rows_are_consistent(seed: int, wordings: WordingSplit) -> None:
    for row in generate_examples(8, seed, wordings):
        assert (row.task, row.source) == ("hieval-qs", "synthetic")
        assert row.references
        assert "{" not in row.response.replace("\\boxed{", "")
        if row.label == "Partial":
            assert row.reference_mode == "all"
            assert len(row.references) > 1
        if not row.response.strip():
            assert row.label == "Wrong"
        if row.variant == "tolerance":
            assert all(reference[0].isdigit() for reference in row.references)
        if row.response in row.references and row.metadata["form"].endswith("bare.and"):
            alone = row.reference_mode == "any" or len(row.references) == 1
            assert row.label == ("Correct" if alone else "Partial")


@settings(max_examples=200, deadline=None)
@given(seeds, st.integers(0, 10**6), st.sampled_from(BEHAVIOURS))
def test_label_follows_from_the_elements_claimed(
    seed: int, number: int, behaviour: Behaviour
) -> None:
    situation = draw_world(seed, "all", number).situation
    content = behaviour.choose(Random(seed), situation)
    if content is None:
        return
    claimed = () if behaviour.families in {("cut",), ("refusal",), ("empty",)} else content.items
    if behaviour.families == ("guesses",):
        claimed = (*content.items, *content.foil)
    assert behaviour.label == _label_of(claimed, situation)


def _label_of(claimed: tuple[str, ...], situation: Situation) -> str:
    hits = [_meant(item, situation) for item in claimed]
    if not claimed or None in hits:
        return "Wrong"
    return "Correct" if len(set(hits)) == len(situation.facts.answers) else "Partial"


def _meant(item: str, situation: Situation) -> int | None:
    """Index of the answer that ``item`` spells, or is a number near enough to."""
    for index, answer in enumerate(situation.facts.answers):
        if item in {answer.text, *answer.aliases}:
            return index
        if answer.letter and _bare(item) in (answer.letter, f"{answer.letter} {answer.choice}"):
            return index
        if situation.tolerance and item in _spellings_near(answer, situation.language):
            return index
    return None


def _bare(item: str) -> str:
    return " ".join(item.translate(str.maketrans("().", "   ")).split())


def _spellings_near(answer: Element, language: Language) -> set[str]:
    """All spellings of numbers with up to two decimals within 5 % of an answer."""
    value = answer.value or 0.0
    lowest, highest = math.ceil(95 * value), math.floor(105 * value)
    near = (
        quantity(hundredths / 100, language, answer.unit) for hundredths in range(lowest, highest)
    )
    return {spelling for number in near for spelling in (number.text, *number.aliases)}


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


def test_open_worlds_are_english_questions_with_alternatives() -> None:
    rows = list(generate_examples(200, 5, "train", "open"))
    assert {row.metadata["language"] for row in rows} == {"en"}
    assert {row.reference_mode for row in rows} == {"any"}
    assert {row.label for row in rows} == {"Correct", "Wrong"}
