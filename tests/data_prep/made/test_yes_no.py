"""Answers to yes/no questions: labels follow from claim and reference, not from words."""

import re
from collections import defaultdict

import pytest

from data_prep.made.words.wordings import texts, words_of
from data_prep.made.yes_no import (
    ANSWERS,
    FAMILIES,
    LANGUAGES,
    ROWS_PER_QUESTION,
    generate_yes_no,
)
from judging.tasks import get_task

TRAIN = list(generate_yes_no(4_000, 1, "train"))
TEST = list(generate_yes_no(2_000, 1, "test"))
MANY = list(generate_yes_no(20_000, 2, "train"))
FIRST_WORDS = {
    "yes": {"yes", "ja", "sí", "是", "是的", "对"},
    "no": {"no", "nein", "否", "不是", "不对"},
}
CLAIMS = ("yes", "no", "undecided")


def wordings(language: str, claim: str, split: str) -> list[str]:
    """List the wordings of a claim."""
    families = words_of("yes_no")[language][claim].values()
    return [wording for family in families for wording in texts(family[split])]


def test_the_label_says_whether_the_claim_is_that_of_the_reference() -> None:
    for row in TRAIN + TEST:
        said = {re.split("[ ,.，。]", text.casefold())[0] for text in row.references}
        [answer] = [each for each in ANSWERS if said <= FIRST_WORDS[each]]
        declared = [
            claim
            for claim in CLAIMS
            for split in ("train", "test")
            if row.metadata["wording"] in wordings(row.metadata["language"], claim, split)
        ]
        assert row.metadata["claim"] in declared
        assert (row.label == "Correct") == (row.metadata["claim"] == answer)
        assert row.reference_mode == "any" or len(row.references) == 1


def test_every_response_stands_beside_both_answers() -> None:
    answers = defaultdict(list)
    for row in TRAIN + TEST:
        answers[row.id.rsplit("-", 1)[0], row.responses].append(row.metadata["answer"])
    for given in answers.values():
        assert given.count("yes") == given.count("no")
    labels = defaultdict(set)
    for row in TRAIN:
        if row.metadata["claim"] != "undecided":
            labels[row.metadata["wording"]].add(row.label)
    assert set(map(frozenset, labels.values())) == {frozenset(("Correct", "Wrong"))}


@pytest.mark.parametrize("language", sorted(set(LANGUAGES)))
def test_held_out_words_are_for_the_test_alone(language: str) -> None:
    words = words_of("yes_no")[language]
    assert {*words["yes"]} == {*words["no"]} == {*FAMILIES}
    for split, rows in (("train", TRAIN), ("test", TEST)):
        for row in rows:
            if row.metadata["language"] != language:
                continue
            kind = words["kinds"][row.metadata["kind"]]
            claim, statement = row.metadata["claim"], row.metadata["statement"]
            assert row.metadata["wording"] in wordings(language, claim, split)
            assert not statement or statement in kind[claim][split]
            assert split in kind["questions"]


def test_responses_are_whole_texts() -> None:
    for row in TRAIN + TEST:
        for text in (row.question, *row.references, *row.responses):
            assert not re.search(r"[{}]|  |\.\.|。。| [.,]|\bNone\b|\bTrue\b(?!\.|$)", text), text


def test_groups_are_questions() -> None:
    by_question = defaultdict(set)
    for row in TRAIN:
        by_question[row.question].add(row.group)
    assert max(map(len, by_question.values())) == 1
    assert len(TRAIN) / len({row.group for row in TRAIN}) < 1.1 * ROWS_PER_QUESTION


@pytest.mark.parametrize(
    ("beginning", "label_beside_yes"),
    [
        ("No doubt about it", "Correct"),
        ("No question about that", "Correct"),
        ("It would be wrong to say no", "Correct"),
        ("Those who say no are mistaken", "Correct"),
        ("Many would say no, but", "Correct"),
        ("It would be wrong to say yes", "Wrong"),
        ("Yes, that is what people say, but", "Wrong"),
        ("It is certainly not true that", "Wrong"),
        ("Many would say yes, but", "Wrong"),
        ("I doubt that", "Wrong"),
        ("Hardly", "Wrong"),
        ("Yes and no", "Wrong"),
        ("You ask whether", "Wrong"),
        ("You bet.", "Correct"),
        ("Keine Frage", "Correct"),
        ("Ja zu sagen wäre falsch", "Wrong"),
        ("No cabe duda", "Correct"),
        ("说是的人弄错了", "Wrong"),
    ],
)
def test_labels_beside_yes(beginning: str, label_beside_yes: str) -> None:
    row = next(
        row
        for row in MANY
        if row.responses[0].startswith(beginning) and row.metadata["answer"] == "yes"
    )
    assert row.label == label_beside_yes


def test_no_rule_contradicts_a_label() -> None:
    task = get_task("hieval-qs")
    for row in TRAIN + TEST:
        ruling = task.rule_if_certain(row.request())
        assert ruling is None or ruling.label == row.label, row
