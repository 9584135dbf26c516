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

The search for near-duplicates is exact, not sampled.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judging.files.questions import normalise_question
from judging.types import LabelledExample

THRESHOLD = 0.6
"""Jaccard similarity of character 5-grams from which two questions count as one."""
SHINGLE_CHARS = 5

SHORTEST_FILL = "\U0010ffff"
"""What texts of less than one 5-gram are filled up with; no character, so that no text has it."""

ROUNDING = 1e-9
"""Slack of comparisons, so that a similarity of exactly the threshold counts."""
RARE_IN = 256
"""Most sets that share an element for it to be rare; more, the fewer sets are left."""
PAIRS_AT_ONCE = 2_000_000
"""Pairs that the index is searched for at once; bounds memory."""
CHECKS_AT_ONCE = 50_000
"""Pairs whose similarity is computed at once; bounds memory."""

Ints = npt.NDArray[np.int64]

_NUMBER = re.compile(r"\d+")
_QUESTION_KEY = re.compile(r"q-[0-9a-f]{12}")


def question_key(question: str) -> str:
    """Digest a question into a short key, equal for those that differ only in spelling habits."""
    return _key(normalise_question(question))


def is_question_key(group: str) -> bool:
    """Tell whether a group's name was made from a question, as :func:`question_key` makes it."""
    return _QUESTION_KEY.fullmatch(group) is not None


def cluster_examples(examples: Sequence[LabelledExample]) -> list[str]:
    """Name every example's cluster; examples that belong together share it.

    A name depends on the members of its cluster alone, not on their order.
    """
    questions = [normalise_question(example.asked) for example in examples]
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


def near_duplicate_clusters(texts: Sequence[str]) -> Ints:
    """Number the clusters that near-duplicates form among distinct, normalised questions.

    Being in one cluster is transitive. The numbers are int64 ``[len(texts)]``.
    """
    join = _Join(len(texts))
    if len(texts) > 1:
        matrix = _shingles(texts)
        sizes = np.diff(matrix.indptr).astype(np.int64)
        join.link(Sets.of(matrix, sizes), join.clusters, np.zeros_like(sizes), RARE_IN)
    return join.clusters


def most_alike(text: str, others: Sequence[str]) -> int:
    """Find the index of the text whose set of 5-grams is most like that of a given text."""
    matrix = _shingles([text, *others])
    shared = matrix[1:] @ matrix[[0]].toarray()[0]
    sizes = np.diff(matrix.indptr)
    return int(np.argmax(shared / (sizes[0] + sizes[1:] - shared)))


def _shingles(texts: Sequence[str]) -> Any:
    """Mark the shingles of each text in a text-by-shingle 0/1 matrix (CSR, int32).

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

    def renumber(values: Ints) -> Ints:  # from 0 on, equal for equal values
        return np.unique(values, return_inverse=True)[1]

    code = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32)
    code = code.astype(np.int64)
    trigram = renumber((code[:-2] << 42) | (code[1:-1] << 21) | code[2:])
    five = renumber((trigram[starts] << 32) | trigram[starts + 2])
    shingle = renumber((five << 32) | np.array(number)[row])
    width = int(shingle.max()) + 1
    cells = np.sort(row * width + shingle)  # np.unique hashes, which takes longer
    cells = cells[np.append(True, np.diff(cells) > 0)]
    row_starts = np.searchsorted(cells, np.arange(len(texts) + 1) * width)
    ones = np.ones(len(cells), dtype=np.int32)
    return csr_array((ones, cells % width, row_starts), shape=(len(texts), width))


def _key(text: str) -> str:
    return "q-" + hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Sets:
    """Sets of elements, of which only those that several sets have are listed."""

    matrix: Any
    """Set-by-element 0/1 matrix (CSR), elements from rarest to commonest."""
    sizes: Ints
    """Number of elements of each set, those that are not listed included."""

    @classmethod
    def of(cls, matrix: Any, sizes: Ints) -> Sets:
        """Put the elements of sets in order, and drop those of one set alone."""
        frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
        order = np.argsort(frequency, kind="stable")
        listed = matrix[:, order[np.searchsorted(frequency[order], 2) :]]
        listed.sort_indices()
        return cls(listed, sizes)


class _Join:
    """Clusters of sets that grow while similar sets are found.

    Two sets of similarity ``t``, the threshold, share an element among their rarest
    ``size - ceil(t * size) + 1`` (their prefixes), so only sets that meet in an index of prefixes
    are compared. This is the join of Bayardo, Ma and Srikant, "Scaling up all pairs similarity
    search" (WWW 2007), with the bound on the remaining overlap of Xiao et al., "Efficient
    similarity joins for near duplicate detection" (WWW 2008); the index is a sparse matrix product.

    Elements of many sets, such as the words of a template that thousands of questions follow, would
    make that index quadratic. Similar sets that share no rare element are told by their common
    elements and their sizes alone. So sets with the same common elements are compared through one
    of them, the smallest, whose rare elements count as elements that no other set has. The sets
    that stand for others are joined in the same way, until no element is common.
    """

    def __init__(self, count: int) -> None:
        self.clusters: Ints = np.arange(count)

    def link(self, sets: Sets, numbers: Ints, waiting: Ints, rare_in: int) -> Ints:
        """Join the clusters of similar sets, each of which may stand for larger ones.

        Those have the same common elements. ``numbers`` are the sets' own among all, ``waiting``
        the size of the largest set that each stands for (0 if there is none), and ``rare_in`` the
        most sets that share a rare element. For each set, give the largest size that a set with its
        elements may have to be similar to one of the others.
        """
        frequency = np.bincount(sets.matrix.indices, minlength=sets.matrix.shape[1])
        num_rare = int(np.searchsorted(frequency, rare_in, side="right"))
        if num_rare < len(frequency):
            reach = self._link_by_common(sets, num_rare, numbers, waiting, rare_in)
        else:
            reach = np.zeros_like(numbers)
        for i, j in self._sharing_rare(sets, num_rare):
            unknown = (self.clusters[numbers[i]] != self.clusters[numbers[j]]) | (
                (reach[i] < waiting[i]) | (reach[j] < waiting[j])
            )
            if not unknown.any():
                continue
            i, j = i[unknown], j[unknown]
            shared = np.asarray(sets.matrix[i].multiply(sets.matrix[j]).sum(axis=1)).ravel()
            room = _largest_union_and_overlap(shared)
            similar = sets.sizes[i] + sets.sizes[j] <= room
            i, j, room = i[similar], j[similar], room[similar]
            self.clusters = merge_clusters(self.clusters, numbers[i], numbers[j])
            np.maximum.at(reach, i, room - sets.sizes[j])
            np.maximum.at(reach, j, room - sets.sizes[i])
        return reach

    def _link_by_common(
        self, sets: Sets, num_rare: int, numbers: Ints, waiting: Ints, rare_in: int
    ) -> Ints:
        """Join the clusters of similar sets that share no rare element, and those they imply."""
        reach = np.zeros_like(numbers)
        common = sets.matrix[:, num_rare:]
        counts = np.diff(common.indptr).astype(np.int64)
        room = _largest_union_and_overlap(counts)
        able = np.flatnonzero(sets.sizes + counts <= room)
        if len(able) < 2:
            return reach
        common, counts, room = common[able], counts[able], room[able]
        sizes, numbers, waiting = sets.sizes[able], numbers[able], waiting[able]

        kind = _number_rows(common)
        by_size = np.lexsort((sizes, kind))
        first = np.append(0, np.flatnonzero(np.diff(kind[by_size])) + 1)
        smallest = by_size[first]
        stands_for = waiting.copy()
        others = np.ones(len(able), dtype=bool)
        others[smallest] = False
        stands_for[others] = np.maximum(stands_for[others], sizes[others])
        largest = np.maximum.reduceat(stands_for[by_size], first)
        is_several = np.diff(np.append(first, len(able))) > 1
        within = np.where(is_several, room[smallest] - sizes[smallest], 0)

        reach_of_kind = self.link(
            Sets.of(common[smallest], sizes[smallest]),
            numbers[smallest],
            np.where(largest <= within, 0, largest),
            4 * rare_in,
        )
        reach_here = np.maximum(reach_of_kind, within)[kind]
        linked = sizes <= reach_here
        near = numbers[smallest[kind[linked]]]
        self.clusters = merge_clusters(self.clusters, numbers[linked], near)
        reach[able] = reach_here
        return reach

    def _sharing_rare(self, sets: Sets, num_rare: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield index arrays of pairs that share a rare element and may be similar.

        No similar pair that shares a rare element of both prefixes is left out.
        """
        from scipy.sparse import csr_array

        matrix, sizes = sets.matrix, sets.sizes
        lengths = np.diff(matrix.indptr).astype(np.int64)
        prefix_sizes = sizes - np.ceil(THRESHOLD * sizes - ROUNDING).astype(np.int64) + 1
        in_row = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], lengths)
        listed_prefix = prefix_sizes - (sizes - lengths)
        is_met = (in_row < np.repeat(listed_prefix, lengths)) & (matrix.indices < num_rare)
        columns = matrix.indices[is_met]
        met = np.bincount(np.repeat(np.arange(len(sizes)), lengths)[is_met], minlength=len(sizes))
        starts = np.append(0, np.cumsum(met))
        prefixes = csr_array(
            (np.ones(len(columns), dtype=np.int32), columns, starts),
            shape=(len(sizes), matrix.shape[1]),
        )
        index = prefixes.T.tocsr()
        rest = lengths - met
        last = np.full(len(sizes), num_rare)
        is_cut = (met > 0) & (met == listed_prefix)
        last[is_cut] = columns[starts[1:][is_cut] - 1]
        met_by_cell = np.bincount(columns, minlength=1)[columns]
        meetings = np.append(0, np.cumsum(met_by_cell))[starts[1:]]
        block_of_row = meetings // PAIRS_AT_ONCE
        blocks = np.append(0, np.flatnonzero(np.diff(block_of_row)) + 1)
        for start, stop in zip(blocks, np.append(blocks[1:], len(sizes)), strict=True):
            meeting = (prefixes[start:stop] @ index).tocoo()
            i, j = meeting.row.astype(np.int64) + start, meeting.col.astype(np.int64)
            ordered = i < j
            i, j, shared = i[ordered], j[ordered], meeting.data[ordered]
            # Elements beyond the shorter prefix are all that can still be shared.
            beyond = np.where(last[i] < last[j], rest[i], rest[j])
            beyond = np.where(last[i] == last[j], np.minimum(rest[i], rest[j]), beyond)
            possible = sizes[i] + sizes[j] <= _largest_union_and_overlap(shared + beyond)
            i, j = i[possible], j[possible]
            for begin in range(0, len(i), CHECKS_AT_ONCE):
                yield i[begin : begin + CHECKS_AT_ONCE], j[begin : begin + CHECKS_AT_ONCE]


def _largest_union_and_overlap(shared: Ints) -> Ints:
    """Compute how many elements two similar sets may have together that share this number."""
    return np.floor(shared + (shared + ROUNDING) / THRESHOLD).astype(np.int64)


def merge_clusters(clusters: Ints, left: Ints, right: Ints) -> Ints:
    """Renumber clusters after joining the clusters of ``left[k]`` and ``right[k]`` for every k."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = (np.ones(len(left), dtype=np.int8), (clusters[left], clusters[right]))
    joined = connected_components(coo_array(edges, shape=(len(clusters),) * 2), directed=False)[1]
    return np.asarray(joined[clusters], dtype=np.int64)


def _number_rows(matrix: Any) -> Ints:
    """Number each row of a sorted CSR matrix, the same for equal rows."""
    numbers: dict[bytes, int] = {}
    rows = (row.tobytes() for row in np.split(matrix.indices, matrix.indptr[1:-1]))
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)
