"""Questions that ask the same, told from those that only look alike.

Splits keep all together that looks alike (``near_duplicates``): that costs nothing. To say that two
questions ask the same is a claim, and takes more. Two near-duplicates ask the same if

1. the content words of one, without endings, are all among those of the other, and
2. no number word or negation is in one alone, and they do not hold two opposites, such as first and
   last.

A sentence model finds questions that ask the same in other words. It takes opposites, negations and
numbers for alike, so these are checked there as well, and so are names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from data_prep.splits.near_duplicates import near_duplicate_clusters
from data_prep.splits.similarity_join import Ints, merge_clusters
from judging.files.questions import Embed, normalise_question

MOST_EMBEDDED = 10_000
"""Most questions that the sentence model reads: it takes about 5 ms for each."""
SAME_MEANING = 0.92
"""Cosine from which two questions ask the same in other words."""
COMPARED_AT_ONCE = 1024

_EMPTY = frozenset(
    "is are was were be been being do does did has have had will would can could may might shall "
    "of in on at to for by with from and as it its that this these those there s please tell me "
    "you which what 的 了 吗 呢 是 在 请 问".split()
)
"""Words that two questions that ask the same may differ in."""
_STATED = frozenset(
    "not no never none nobody nothing neither nor cannot without isn aren wasn weren don doesn "
    "didn hasn haven hadn wouldn couldn except "
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion half twice double second third fourth fifth sixth seventh eighth "
    "ninth tenth 不 没 非 未 无 一 二 三 四 五 六 七 八 九 十 百 千 万 两".split()
)
"""Words of which both questions must hold the same."""
_AXES = (
    "first|last",
    "before|after|during",
    "begin began begins start started starts|end ended ends finish finished",
    "left|right",
    "north northern|south southern|east eastern|west western",
    "most|least fewest",
    "more|less fewer",
    "minimum|maximum",
    "largest biggest greatest|smallest",
    "highest tallest|lowest|longest|shortest|oldest|youngest|newest",
    "closest nearest|farthest furthest",
    "even|odd",
    "with|without",
    "won win wins|lost lose loses",
    "over above|under below",
    "increase increases|decrease decreases",
    "mother|father|brother|sister|son|daughter",
    "male man|female woman",
    "when|where",
    "true|false",
    "old|new",
)
"""Words that exclude each other; those between two bars mean the same."""
_SIDE = {
    word: (axis, number)
    for axis, sides in enumerate(_AXES)
    for number, words in enumerate(sides.split("|"))
    for word in words.split()
}
_WORD = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+")
_NUMBER = re.compile(r"\d+")
_ENDING = re.compile(r"(?<=\w{3})(?:ies|es|s|ed|ing|e|y)$")
_CAPITALISED = re.compile(r"(?<!^)(?<![.!?] )\b[^\W\d_]\w*")


class _Question:
    """A question with what it is compared by."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> frozenset[str]:
        """Return its words, in small letters."""
        return frozenset(_WORD.findall(normalise_question(self.text)))

    @cached_property
    def content(self) -> frozenset[str]:
        """Return its words but those that say nothing, without endings and in one spelling."""
        return frozenset(_ENDING.sub("", word).replace("our", "or") for word in self.words - _EMPTY)

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the words inside it that begin with a capital, in small letters."""
        inside = _CAPITALISED.findall(self.text)
        return frozenset(word.casefold() for word in inside if word[0].isupper())

    @cached_property
    def stated(self) -> tuple[object, ...]:
        """Return its numbers and negations."""
        numbers = sorted(_NUMBER.findall(normalise_question(self.text)))
        return *numbers, self.words & _STATED

    def contradicts(self, other: _Question) -> bool:
        """Return whether the two differ in a number or negation, or hold two opposites."""
        if self.stated != other.stated:
            return True
        mine = {_SIDE[word] for word in self.words - other.words if word in _SIDE}
        others = {_SIDE[word] for word in other.words - self.words if word in _SIDE}
        return any(
            axis == other_axis and side != other_side
            for axis, side in mine
            for other_axis, other_side in others
        )

    def is_within(self, other: _Question) -> bool:
        """Return whether all its content words are the other's, too."""
        return self.content <= other.content and not self.contradicts(other)


def same_question_clusters(questions: Sequence[str]) -> Ints:
    """Return the clusters, as numbers, of distinct questions that ask the same.

    Args:
        questions: Distinct in the spelling of ``normalise_question``, as people wrote them.

    Returns:
        Cluster number of every question, int64 ``[len(questions)]``.
    """
    alike = near_duplicate_clusters([normalise_question(text) for text in questions])
    members: dict[int, list[int]] = {}
    for number, cluster in enumerate(alike.tolist()):
        members.setdefault(cluster, []).append(number)
    kept = [_Question(text) for text in questions]
    links = [link for rows in members.values() if len(rows) > 1 for link in _within(rows, kept)]
    return merge_clusters(np.arange(len(questions)), *_columns(links))


def with_paraphrases(questions: Sequence[str], clusters: Ints, embed: Embed) -> Ints:
    """Join the clusters of questions that a sentence model takes for the same.

    Args:
        questions: As :func:`same_question_clusters`; more than :data:`MOST_EMBEDDED` are left as
            they are.
        clusters: Clusters of these questions.
        embed: The sentence model.
    """
    if not 1 < len(questions) <= MOST_EMBEDDED:
        return clusters
    vectors = embed(list(questions)).astype(np.float32)
    kept = [_Question(text) for text in questions]
    links = []
    for start in range(0, len(vectors), COMPARED_AT_ONCE):
        near = vectors[start : start + COMPARED_AT_ONCE] @ vectors.T >= SAME_MEANING
        for row, other in np.argwhere(near).tolist():
            i = start + row
            if (
                i < other
                and not kept[i].contradicts(kept[other])
                and not (kept[i].names - kept[other].words and kept[other].names - kept[i].words)
            ):
                links.append((i, other))
    return merge_clusters(clusters, *_columns(links))


def _within(rows: Sequence[int], questions: Sequence[_Question]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of which one question's content is within the other's."""
    by_content: dict[frozenset[str], list[int]] = {}
    for row in rows:
        by_content.setdefault(questions[row].content, []).append(row)
    for alike in by_content.values():
        for i, j in combinations(alike, 2):
            if questions[i].is_within(questions[j]):
                yield i, j
    holding: dict[str, set[frozenset[str]]] = {}
    for content in by_content:
        for word in content:
            holding.setdefault(word, set()).add(content)
    for content, inner in by_content.items():
        if not content:
            continue
        for wider in holding[min(content, key=lambda word: len(holding[word]))]:
            if content < wider:
                yield from (
                    (i, j)
                    for i in inner
                    for j in by_content[wider]
                    if questions[i].is_within(questions[j])
                )


def _columns(links: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    left, right = np.array(links, dtype=np.int64).reshape(-1, 2).T
    return left, right
