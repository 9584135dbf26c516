"""Questions that are too alike to be divided between training and testing.

Two questions belong together when

1. their normalised texts are equal (NFKC, casefold, punctuation and articles dropped), or
2. they are near-duplicates: the same numbers in the same order, and a Jaccard similarity of at
   least ``THRESHOLD`` between their sets of character 5-grams, or
3. their examples carry the same explicit ``group``, or show the same picture (by name);

and belonging together is transitive. A changed number makes another question with another answer
("3 apples" and "5 apples" are two questions), so word problems of one template do not become one
giant cluster; to keep them together, give them one ``group``. Numbers written as words are ordinary
text.

The search for near-duplicates is exact, not sampled (``similarity_join``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from data_prep.splits.similarity_join import Ints, merge_clusters, similar_sets
from judging.files.questions import normalise_question
from judging.types import LabelledExample

THRESHOLD = 0.6
"""Jaccard similarity of character 5-grams from which two questions count as one."""
SHINGLE_CHARS = 5

SHORTEST_FILL = "\U0010ffff"
"""What texts of less than one 5-gram are filled up with; no character, so that no text has it."""

_NUMBER = re.compile(r"\d+")
_QUESTION_KEY = re.compile(r"q-[0-9a-f]{12}")


def question_key(question: str) -> str:
    """Return a short key of a question, equal for questions that differ only in spelling habits."""
    return _key(normalise_question(question))


def is_question_key(group: str) -> bool:
    """Return whether a group's name was made from a question, as :func:`question_key` makes it."""
    return _QUESTION_KEY.fullmatch(group) is not None


def cluster_examples(examples: Sequence[LabelledExample]) -> list[str]:
    """Return the name of every example's cluster; examples that belong together share it.

    A name depends on the members of its cluster alone, not on their order.

    Args:
        examples: Any number of examples; the order does not matter.

    Returns:
        A cluster name for each example, in the order given.
    """
    questions = [normalise_question(example.question) for example in examples]
    texts = sorted(set(questions))
    node = {text: number for number, text in enumerate(texts)}
    first_with: dict[tuple[str, str], str] = {}
    links = [
        (node[question], node[first_with.setdefault(shared, question)])
        for question, example in zip(questions, examples, strict=True)
        for shared in (("group", example.group), *(("image", name) for name in example.images))
        if shared[1]
    ]
    clusters = near_duplicate_clusters(texts)
    if links:
        clusters = merge_clusters(clusters, *np.array(links, dtype=np.int64).T)

    first_text: dict[int, str] = {}
    for text, cluster in zip(texts, clusters.tolist(), strict=True):
        first_text.setdefault(cluster, text)
    return [_key(first_text[int(clusters[node[question]])]) for question in questions]


def cluster_together(*lists: Sequence[LabelledExample]) -> list[list[str]]:
    """Cluster several lists of examples at once; return the cluster names of each list."""
    names = iter(cluster_examples([row for rows in lists for row in rows]))
    return [[next(names) for _ in rows] for rows in lists]


def near_duplicate_clusters(texts: Sequence[str], threshold: float = THRESHOLD) -> Ints:
    """Return the clusters, as numbers, that near-duplicates form among distinct questions.

    A slow test (``pytest -m slow tests/data_prep/splits``) clusters fifty thousand questions within
    a minute.

    Args:
        texts: Questions as ``normalise_question`` spells them.
        threshold: Jaccard similarity in (0, 1].

    Returns:
        Cluster number of every text, int64 ``[len(texts)]``.

    Raises:
        ValueError: If the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be in (0, 1], got {threshold}")
    if len(texts) < 2:
        return np.arange(len(texts))
    return similar_sets(_shingles(texts), threshold)


def most_alike(text: str, others: Sequence[str]) -> int:
    """Return the index of the first of the texts that have most 5-grams in common with a text."""
    matrix = _shingles([text, *others])
    shared = matrix[1:] @ matrix[[0]].toarray()[0]
    sizes = np.diff(matrix.indptr)
    return int(np.argmax(shared / (sizes[0] + sizes[1:] - shared)))


def _shingles(texts: Sequence[str]) -> Any:
    """Return the text-by-shingle 0/1 matrix (CSR, int32).

    Shingles are the character 5-grams of the text between two spaces. They carry the text's
    numbers: texts of unequal numbers share nothing.
    """
    from scipy.sparse import csr_array

    padded = [f" {text} ".ljust(SHINGLE_CHARS, SHORTEST_FILL) for text in texts]
    numbers: dict[str, int] = {}
    number = [numbers.setdefault(" ".join(_NUMBER.findall(t)), len(numbers)) for t in texts]
    counts = np.array([len(text) - SHINGLE_CHARS + 1 for text in padded])
    row = np.repeat(np.arange(len(texts)), counts)
    starts = np.arange(len(row)) + row * (SHINGLE_CHARS - 1)

    code = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32)
    code = code.astype(np.int64)
    trigram = _renumber((code[:-2] << 42) | (code[1:-1] << 21) | code[2:])
    five = _renumber((trigram[starts] << 32) | trigram[starts + 2])
    shingle = _renumber((five << 32) | np.array(number)[row])
    width = int(shingle.max()) + 1
    cells = np.sort(row * width + shingle)  # np.unique hashes, which takes longer
    cells = cells[np.append(True, np.diff(cells) > 0)]
    row_starts = np.searchsorted(cells, np.arange(len(texts) + 1) * width)
    ones = np.ones(len(cells), dtype=np.int32)
    return csr_array((ones, cells % width, row_starts), shape=(len(texts), width))


def _renumber(values: Ints) -> Ints:
    """Return numbers from 0 on in place of values, equal for equal values."""
    return np.unique(values, return_inverse=True)[1]


def _key(text: str) -> str:
    return "q-" + hashlib.sha256(text.encode()).hexdigest()[:12]
