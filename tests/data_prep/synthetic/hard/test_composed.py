"""Composed wordings: many, unique, apart between splits; a second rule confirms labels."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from data_prep.made.hard import Frame, alternatives, generate_hard, kinds
from judging.types import LabelledExample, Split
from tests.data_prep.synthetic.hard.test_generate import SOURCES

COMPOSED = ("refusal", "affirmation", "revision", "indecision", "statement")
HELD_OUT: tuple[Split, ...] = ("val", "cal", "test")
ANSWER = re.compile(r"\b(?:Right\w+|\w+) Qaname\b|\bRight\d+x0(?: \w+)?")
"""The sources' answers and their look-alikes; those of two words that share one with them."""
REJECTED = (
    re.compile(r"(?:\b(?:not|never|neither|nor)|n't|by no means|[❌✗👎]|~~) ?$", re.IGNORECASE),
    re.compile(r"~~|:? (?:is |was )?(?:false|wrong|incorrect|untrue|no)\b| \((?:no|wrong|false)\)"),
)
"""Words right before an answer, and right after it, that reject it."""


def lines(kind: str, *, claims: bool) -> dict[str, Split | None]:
    frames = [frame for frame in kinds()[kind].frames if frame.claims == claims]
    return {frame.stem: frame.split for frame in frames}


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


@pytest.mark.parametrize(
    ("kind", "claiming", "empty"),
    [
        ("refusal", 90, 100),
        ("affirmation", 60, 0),
        ("revision", 90, 40),
        ("indecision", 80, 80),
        ("statement", 90, 0),
    ],
)
def test_every_kind_has_many_lines_and_some_for_each_split(
    kind: str, claiming: int, empty: int
) -> None:
    for claims, wanted in ((True, claiming), (False, empty)):
        counts = Counter(lines(kind, claims=claims).values())
        assert counts.total() >= wanted
        if wanted:
            assert counts["train"] > 0.7 * counts.total()
            assert all(counts[split] >= 2 for split in HELD_OUT)


def test_no_wording_stands_twice_or_in_two_splits() -> None:
    wordings = [frame for name in COMPOSED for frame in kinds()[name].frames]
    uses = Counter((frame.template, frame.subject, frame.asked) for frame in wordings)
    assert [use for use, count in uses.items() if count > 1] == []
    splits = defaultdict(set)
    for frame in wordings:
        splits[frame.template].add(frame.split)
    assert all(len(members) == 1 for members in splits.values())


def pattern(frame: Frame) -> re.Pattern[str]:
    parts = re.split(r"\{\w+\}", frame.template)
    literal = (part.replace("{{", "{").replace("}}", "}") for part in parts)
    return re.compile(".+".join(map(re.escape, literal)), re.DOTALL)


def test_rows_of_a_split_have_its_wordings_alone() -> None:
    patterns = {
        split: [
            pattern(frame)
            for name in COMPOSED
            for frame in kinds()[name].frames
            if frame.split == split
        ]
        for split in HELD_OUT
    }
    for split in HELD_OUT:
        for row in draws(split, 1):
            assert any(wording.search(row.response) for wording in patterns[split]), row.response


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
