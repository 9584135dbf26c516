"""Clusters of similar sets, exact: every pair at or above a Jaccard similarity is found.

Two sets of similarity ``t`` share an element among their rarest ``size - ceil(t * size) + 1``
(their prefixes), so only sets that meet in an index of prefixes are compared. This is the join of
Bayardo, Ma and Srikant, "Scaling up all pairs similarity search" (WWW 2007), with the bound on the
remaining overlap of Xiao et al., "Efficient similarity joins for near duplicate detection" (WWW
2008); the index is a sparse matrix product.

Elements of many sets, such as the words of a template that thousands of questions follow, would
make that index quadratic. Similar sets that share no rare element are told by their common elements
and their sizes alone. So sets with the same common elements are compared through one of them, the
smallest, whose rare elements count as elements that no other set has. The sets that stand for
others are joined in the same way, until no element is common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ROUNDING = 1e-9
"""Slack of comparisons, so that a similarity of exactly the threshold counts."""
RARE_IN = 256
"""Most sets that share an element for it to be rare; more, the fewer sets are left."""
PAIRS_AT_ONCE = 2_000_000
"""Pairs that the index is searched for at once; bounds memory."""
CHECKS_AT_ONCE = 50_000
"""Pairs whose similarity is computed at once; bounds memory."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sets:
    """Sets of elements, of which only those that several sets have are listed.

    Attributes:
        matrix: Set-by-element 0/1 matrix (CSR), elements from rarest to commonest.
        sizes: Number of elements of each set, those that are not listed included.
    """

    matrix: Any
    sizes: Ints

    @classmethod
    def of(cls, matrix: Any, sizes: Ints) -> Sets:
        """Return the sets with their elements in order and the elements of one set dropped."""
        frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
        order = np.argsort(frequency, kind="stable")
        listed = matrix[:, order[np.searchsorted(frequency[order], 2) :]]
        listed.sort_indices()
        return cls(listed, sizes)


def similar_sets(matrix: Any, threshold: float) -> Ints:
    """Return the clusters that similar sets form; being in one cluster is transitive.

    Args:
        matrix: Set-by-element 0/1 matrix (CSR, int32).
        threshold: Jaccard similarity in (0, 1] from which two sets are similar.

    Returns:
        Cluster number of every set, int64 ``[sets]``.
    """
    join = _Join(threshold, matrix.shape[0])
    sizes = np.diff(matrix.indptr).astype(np.int64)
    everything = np.arange(matrix.shape[0])
    join.link(Sets.of(matrix, sizes), everything, np.zeros_like(sizes), RARE_IN)
    return join.clusters


class _Join:
    """Clusters of sets that grow while similar sets are found."""

    def __init__(self, threshold: float, count: int) -> None:
        self.threshold = threshold
        self.clusters: Ints = np.arange(count)

    def link(self, sets: Sets, numbers: Ints, waiting: Ints, rare_in: int) -> Ints:
        """Join the clusters of similar sets.

        Args:
            sets: Sets that may each stand for larger ones with the same common elements.
            numbers: Number of each set among all.
            waiting: Size of the largest set that each stands for; 0 if there is none.
            rare_in: Most sets that share a rare element.

        Returns:
            For each set the largest size that a set with its elements may have to be similar to one
            of the others.
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
            room = self._largest_union_and_overlap(shared)
            similar = sets.sizes[i] + sets.sizes[j] <= room
            i, j, room = i[similar], j[similar], room[similar]
            self._merge(numbers[i], numbers[j])
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
        room = self._largest_union_and_overlap(counts)
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
        self._merge(numbers[linked], numbers[smallest[kind[linked]]])
        reach[able] = reach_here
        return reach

    def _sharing_rare(self, sets: Sets, num_rare: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield index arrays of pairs that share a rare element and may be similar.

        No similar pair that shares a rare element of both prefixes is left out.
        """
        from scipy.sparse import csr_array

        matrix, sizes = sets.matrix, sets.sizes
        lengths = np.diff(matrix.indptr).astype(np.int64)
        prefix_sizes = sizes - np.ceil(self.threshold * sizes - ROUNDING).astype(np.int64) + 1
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
            possible = sizes[i] + sizes[j] <= self._largest_union_and_overlap(shared + beyond)
            i, j = i[possible], j[possible]
            for begin in range(0, len(i), CHECKS_AT_ONCE):
                yield i[begin : begin + CHECKS_AT_ONCE], j[begin : begin + CHECKS_AT_ONCE]

    def _largest_union_and_overlap(self, shared: Ints) -> Ints:
        """Return how many elements two similar sets may have together that share so many."""
        return np.floor(shared + (shared + ROUNDING) / self.threshold).astype(np.int64)

    def _merge(self, left: Ints, right: Ints) -> None:
        """Join the clusters of ``left[k]`` and ``right[k]`` for every k."""
        self.clusters = merge_clusters(self.clusters, left, right)


def merge_clusters(clusters: Ints, left: Ints, right: Ints) -> Ints:
    """Renumber clusters after joining the clusters of ``left[k]`` and ``right[k]`` for every k."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = (np.ones(len(left), dtype=np.int8), (clusters[left], clusters[right]))
    joined = connected_components(coo_array(edges, shape=(len(clusters),) * 2), directed=False)[1]
    return np.asarray(joined[clusters], dtype=np.int64)


def _number_rows(matrix: Any) -> Ints:
    """Return a number for each row of a sorted CSR matrix, the same for equal rows."""
    numbers: dict[bytes, int] = {}
    rows = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
    return np.array(
        [
            numbers.setdefault(matrix.indices[start:stop].tobytes(), len(numbers))
            for start, stop in rows
        ],
        dtype=np.int64,
    )
