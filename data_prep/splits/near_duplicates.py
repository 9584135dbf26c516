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

The search for near-duplicates is exact, not sampled: it finds every pair at or above the threshold.
It is the prefix-filtered similarity join of Bayardo, Ma and Srikant, "Scaling up all pairs
similarity search" (WWW 2007), with the bound on the remaining overlap of Xiao et al., "Efficient
similarity joins for near duplicate detection" (WWW 2008); its inverted index is a sparse matrix
product.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judging.questions import normalise_question
from judging.types import LabelledExample

THRESHOLD = 0.6
"""Jaccard similarity of character 5-grams from which two questions count as one."""
SHINGLE_CHARS = 5

ROUNDING = 1e-9
"""Slack of comparisons, so that a similarity of exactly the threshold counts."""
PAIRS_AT_ONCE = 2_000_000
"""Pairs that the index is searched for at once; bounds memory."""
CHECKS_AT_ONCE = 50_000
"""Pairs whose similarity is computed at once; bounds memory."""

_NUMBER = re.compile(r"\d+")
_QUESTION_KEY = re.compile(r"q-[0-9a-f]{12}")

Ints = npt.NDArray[np.int64]


def question_key(question: str) -> str:
    """Return a short key of a question, equal for questions that differ only in spelling habits."""
    return _key(normalise_question(question))


def is_question_key(group: str) -> bool:
    """Return whether a group's name was made from a question, as :func:`question_key` makes it."""
    return _QUESTION_KEY.fullmatch(group) is not None


def cluster_examples(
    examples: Sequence[LabelledExample], threshold: float = THRESHOLD
) -> list[str]:
    """Return the name of every example's cluster; examples that belong together share it.

    A name depends on the members of its cluster alone, not on their order.

    Args:
        examples: Any number of examples; the order does not matter.
        threshold: Jaccard similarity in (0, 1] from which two questions are near-duplicates.

    Returns:
        A cluster name for each example, in the order given.

    Raises:
        ValueError: If the threshold is out of range.
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
    clusters = near_duplicate_clusters(texts, threshold)
    if links:
        clusters = _merge(clusters, *np.array(links, dtype=np.int64).T)

    first_text: dict[int, str] = {}
    for text, cluster in zip(texts, clusters.tolist(), strict=True):
        first_text.setdefault(cluster, text)
    return [_key(first_text[int(clusters[node[question]])]) for question in questions]


def cluster_together(
    *lists: Sequence[LabelledExample], threshold: float = THRESHOLD
) -> list[list[str]]:
    """Cluster several lists of examples at once; return the cluster names of each list."""
    names = iter(cluster_examples([row for rows in lists for row in rows], threshold))
    return [[next(names) for _ in rows] for rows in lists]


def near_duplicate_clusters(texts: Sequence[str], threshold: float = THRESHOLD) -> Ints:
    """Return the clusters, as numbers, that near-duplicates form among distinct questions.

    A slow test (``pytest -m slow tests/data_prep/splits``) clusters fifty thousand questions within
    a minute. The costly case is thousands of long questions that differ in one name only.

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
    clusters = np.arange(len(texts))
    if len(texts) < 2:
        return clusters
    incidence = _incidence(texts)
    sizes = np.diff(incidence.indptr).astype(np.int64)
    for i, j in _candidates(incidence, sizes, threshold):
        still_apart = clusters[i] != clusters[j]
        if not still_apart.any():
            continue  # nearly all pairs of templated questions: their template is one cluster
        i, j = i[still_apart], j[still_apart]
        shared = np.asarray(incidence[i].multiply(incidence[j]).sum(axis=1)).ravel()
        alike = shared >= threshold * (sizes[i] + sizes[j] - shared) - ROUNDING
        clusters = _merge(clusters, i[alike], j[alike])
    return clusters


def shingles(text: str) -> set[str]:
    """Return character 5-grams that carry the text's numbers: unequal numbers share nothing."""
    numbers = " ".join(_NUMBER.findall(text))
    padded = f" {text} "
    starts = range(max(1, len(padded) - SHINGLE_CHARS + 1))
    if not numbers:
        return {padded[start : start + SHINGLE_CHARS] for start in starts}
    return {f"{padded[start : start + SHINGLE_CHARS]}\n{numbers}" for start in starts}


def _incidence(texts: Sequence[str]) -> Any:
    """Return the text-by-shingle 0/1 matrix (CSR), columns from rarest to commonest shingle."""
    from scipy.sparse import csr_array

    vocabulary: dict[str, int] = {}
    cells, row_ends = array("q"), [0]
    for text in texts:
        cells.extend(vocabulary.setdefault(s, len(vocabulary)) for s in shingles(text))
        row_ends.append(len(cells))
    columns = np.frombuffer(cells, dtype=np.int64)
    rarity_rank = np.empty(len(vocabulary), dtype=np.int64)
    rarity_rank[np.argsort(np.bincount(columns), kind="stable")] = np.arange(len(vocabulary))
    matrix = csr_array(
        (np.ones(len(columns), dtype=np.int32), rarity_rank[columns], np.array(row_ends)),
        shape=(len(texts), len(vocabulary)),
    )
    matrix.sort_indices()
    return matrix


def _candidates(incidence: Any, sizes: Ints, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Yield index arrays of pairs that may reach the threshold; no pair that does is left out.

    Two sets of similarity ``t`` share an element among their rarest ``size - ceil(t * size) + 1``
    (their prefixes), so only pairs that meet in the index of prefixes are looked at.
    """
    from scipy.sparse import csr_array

    prefix_sizes = sizes - np.ceil(threshold * sizes - ROUNDING).astype(np.int64) + 1
    rank_in_row = np.arange(incidence.nnz) - np.repeat(incidence.indptr[:-1], sizes)
    in_prefix = rank_in_row < np.repeat(prefix_sizes, sizes)
    columns = incidence.indices[in_prefix]
    row_starts = np.append(0, np.cumsum(prefix_sizes))
    prefixes = csr_array(
        (np.ones(len(columns), dtype=np.int32), columns, row_starts), shape=incidence.shape
    )
    index = prefixes.T.tocsr()
    last_column = columns[row_starts[1:] - 1]

    meetings = np.cumsum(np.add.reduceat(np.bincount(columns)[columns], row_starts[:-1]))
    block_of_row = meetings // PAIRS_AT_ONCE
    blocks = np.append(0, np.flatnonzero(np.diff(block_of_row)) + 1)
    for start, stop in zip(blocks, np.append(blocks[1:], len(sizes)), strict=True):
        meeting = (prefixes[start:stop] @ index).tocoo()
        i, j = meeting.row.astype(np.int64) + start, meeting.col.astype(np.int64)
        shared = meeting.data
        ordered = i < j
        i, j, shared = i[ordered], j[ordered], shared[ordered]
        # Elements beyond the shorter prefix are all that can still be shared.
        shorter = np.where(last_column[i] <= last_column[j], i, j)
        at_most = shared + sizes[shorter] - prefix_sizes[shorter]
        needed = threshold / (1 + threshold) * (sizes[i] + sizes[j])
        possible = at_most >= needed - ROUNDING
        i, j = i[possible], j[possible]
        for first in range(0, len(i), CHECKS_AT_ONCE):
            yield i[first : first + CHECKS_AT_ONCE], j[first : first + CHECKS_AT_ONCE]


def _merge(clusters: Ints, left: Ints, right: Ints) -> Ints:
    """Renumber clusters after joining the clusters of ``left[k]`` and ``right[k]`` for every k."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = (np.ones(len(left), dtype=np.int8), (clusters[left], clusters[right]))
    joined = connected_components(coo_array(edges, shape=(len(clusters),) * 2), directed=False)[1]
    return np.asarray(joined[clusters], dtype=np.int64)


def _key(text: str) -> str:
    return "q-" + hashlib.sha256(text.encode()).hexdigest()[:12]
