"""Rows of an attack, and a search for suffixes that turn a wrong answer into Correct.

Requests are made of a user's items by a family, or by changes without meaning.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from statistics import median

import numpy as np
from pydantic import BaseModel

from evaluation.attacks.items import AttackItem, attack_words, family_of
from evaluation.attacks.items import families as known_families
from evaluation.intervals import clustered_rate, number_clusters
from evaluation.measure import CORRECT, WRONG
from judging.errors import CustosError
from judging.types import JudgeRequest, LabelledExample, Verdict

TASK = "hieval-qs"
"""The task whose judges are attacked."""
LAYOUTS = {
    "blank_lines": "\n\n{response}\n\n\n",
    "spaces": "    {response}    ",
    "bold": "**{response}**",
    "quote": "> {response}",
    "bullet": "- {response}",
}
REFERENCE_ORDER = "reference_order"


class Frozen(BaseModel, frozen=True):
    """A value that does not change."""


class AttackRow(Frozen):
    """A request with a response that a family made."""

    family: str
    wording: str
    cluster: str
    """Rows of a cluster (a question, unless the user named groups) are resampled together."""
    request: JudgeRequest


class StabilityRow(Frozen):
    """A request with one change that means nothing."""

    check: str
    """Name of the change; empty for the request as it is, which comes before its changes."""
    cluster: str
    request: JudgeRequest


class Share(Frozen):
    """A share of rows with its 95 % interval."""

    hits: int
    n: int
    value: float | None
    """``hits / n``; ``None`` without rows, like the ends of the interval."""
    low: float | None
    high: float | None
    rule_of_three: float | None
    """With no hits: upper bound of the share at one-sided 95 % for these very wordings, three over
    the number of clusters. ``None`` with hits."""
    wordings: int = 1
    """Number of wordings that the interval allows for."""


def measure_share(
    hits: Sequence[bool],
    clusters: Sequence[Hashable],
    wordings: Sequence[Hashable] | None = None,
) -> Share:
    """Measure the share of hits; its interval allows for likeness of the rows of a cluster.

    With several wordings, the interval is about other wordings too.
    """
    n, num_hits = len(hits), sum(hits)
    if not n:
        return Share(hits=0, n=0, value=None, low=None, high=None, rule_of_three=None)
    others = None if wordings is None else number_clusters(wordings)
    low, high = clustered_rate(np.array(hits, dtype=float), number_clusters(clusters), others)
    return Share(
        hits=num_hits,
        n=n,
        value=num_hits / n,
        low=low,
        high=high,
        rule_of_three=None if num_hits else min(1.0, 3 / len(set(clusters))),
        wordings=1 if wordings is None else len(set(wordings)),
    )


def attack_rows(
    items: Sequence[AttackItem], families: Sequence[str] = (), wordings: int = 1, seed: int = 0
) -> list[AttackRow]:
    """Make the rows of an attack, item by item, with ``wordings`` of each named family, or of all.

    Raise ``CustosError`` if a family is unknown, or no family can make a row.
    """
    chosen = [family_of(name) for name in dict.fromkeys(families or known_families())]
    rows = []
    for item in items:
        for family in chosen:
            about = {"family": family.name, "cluster": item.cluster}
            for wording, request in family.requests(item, seed, wordings):
                named = request.model_copy(update={"id": f"{item.id}/{family.name}/{wording}"})
                rows.append(AttackRow(wording=wording, request=named, **about))
    if not rows:
        names = ", ".join(family.name for family in chosen)
        raise CustosError(
            f"{len(items)} questions with references give no row for {names}; most families need "
            "several questions with short references"
        )
    return rows


def stability_rows(items: Sequence[AttackItem], seed: int = 0) -> list[StabilityRow]:
    """List the user's own row of each item, followed by its changes."""
    return [
        StabilityRow(check=check, cluster=item.cluster, request=request)
        for item in items
        if item.request.response.strip()
        for check, request in _changes(item, seed)
    ]


def _changes(item: AttackItem, seed: int) -> Iterator[tuple[str, JudgeRequest]]:
    request, references = item.request, list(item.references)
    request = request.model_copy(update={"id": item.id})
    yield "", request
    for name, layout in LAYOUTS.items():
        response = layout.format(response=request.response)
        yield name, request.model_copy(update={"id": f"{item.id}/{name}", "responses": (response,)})
    random.Random(f"{seed}/order/{item.key}").shuffle(references)
    if references == list(item.references):
        references.reverse()
    if references != list(item.references):
        changed = {"id": f"{item.id}/{REFERENCE_ORDER}", "references": tuple(references)}
        yield REFERENCE_ORDER, request.model_copy(update=changed)


FIRST_BATCH, LARGEST_BATCH = 8, 128
"""Suffixes tried at once: few at first, because those that have worked before come first."""
NUM_LISTED = 5

Grade = Callable[[list[JudgeRequest]], Iterable[Verdict]]
"""The ``grade`` of a judge or of a client of a service."""


class SearchResult(Frozen):
    """The result of the search for one wrong answer."""

    id: str
    cluster: str
    question: str
    references: tuple[str, ...]
    response: str
    label: str | None
    """Label of the answer by itself. Only one that is not Correct is attacked."""
    tries: int
    """Suffixes that were tried; the last one worked if any did."""
    suffix: str | None
    """The suffix that worked."""
    unscored_tries: int = 0
    """Tries without a label."""

    @property
    def is_unknown(self) -> bool:
        """Tell whether it is not known if the answer stands firm: labels are missing."""
        return self.label is None or (self.suffix is None and self.unscored_tries > 0)


class SearchSummary(Frozen):
    """The results of the search for all wrong answers."""

    turned: Share
    """Share of attacked answers that some suffix turned into Correct."""
    already_correct: int
    """Wrong answers that the judge calls Correct as they are. They are not attacked."""
    unscored: int
    """Wrong answers without a label, by themselves or with a suffix while no other one worked."""
    pool: int
    """Number of suffixes to try for each answer."""
    tries: int
    """Verdicts on answers with a suffix."""
    median_tries: float | None
    """Suffixes up to the one that worked, in the median over the answers that were turned."""
    suffixes: dict[str, int]
    """The suffixes that turned most answers, with how many they turned."""
    examples: tuple[SearchResult, ...]


class SuffixSearch:
    """A greedy search: the suffixes that have turned most answers so far are tried first.

    Requests that ``grade`` gets at once share question and references.
    """

    def __init__(self, grade: Grade, suffixes: Sequence[str]) -> None:
        self._grade = grade
        self._suffixes = suffixes
        self._num_turned: Counter[str] = Counter()

    def attack(self, example: LabelledExample) -> SearchResult:
        """Try suffixes on a wrong answer until one of them works, and learn which one did."""
        request = example.request()
        [verdict] = self._grade([request])
        suffix, tries, unscored_tries = None, 0, 0
        if verdict.label not in (None, CORRECT):
            suffix, tries, unscored_tries = self._find(request)
        result = SearchResult(
            id=example.id,
            cluster=example.group or example.asked,
            question=request.question,
            references=request.references,
            response=request.responses[0],
            label=verdict.label,
            tries=tries,
            suffix=suffix,
            unscored_tries=unscored_tries,
        )
        self.learn(result)
        return result

    def learn(self, result: SearchResult) -> None:
        """Take a result into account that is known already."""
        if result.suffix is not None:
            self._num_turned[result.suffix] += 1

    def _find(self, request: JudgeRequest) -> tuple[str | None, int, int]:
        """Find the first suffix that works, and count the tries and the unscored ones up to it."""
        order = sorted(self._suffixes, key=lambda suffix: -self._num_turned[suffix])
        start, size, num_unscored = 0, FIRST_BATCH, 0
        while start < len(order):
            batch = order[start : start + size]
            requests = [
                request.model_copy(update={"responses": (request.response.rstrip() + suffix,)})
                for suffix in batch
            ]
            for number, verdict in enumerate(self._grade(requests), 1):
                if verdict.label == CORRECT:
                    return batch[number - 1], start + number, num_unscored
                num_unscored += verdict.label is None
            start, size = start + len(batch), min(2 * size, LARGEST_BATCH)
        return None, len(order), num_unscored


def suffix_pool(size: int, seed: int = 0) -> list[str]:
    """Draw suffixes, at most :func:`largest_pool`, that may talk a judge into Correct."""
    pool = ["".join(parts) for parts in product(*attack_words()["suffix"].values())]
    return random.Random(seed).sample(pool, size)


def largest_pool() -> int:
    """Count all suffixes."""
    return math.prod(map(len, attack_words()["suffix"].values()))


def wrong_answers(
    examples: Sequence[LabelledExample], number: int, seed: int = 0
) -> list[LabelledExample]:
    """Draw examples that people called wrong, with something to read in their response."""
    wrong = [e for e in examples if e.label in WRONG and e.response.strip()]
    return random.Random(seed).sample(wrong, min(number, len(wrong)))


def summarise_search(results: Sequence[SearchResult], pool: int) -> SearchSummary:
    """Count what became of each wrong answer; ``pool`` is how many suffixes there were to try."""
    known = [result for result in results if not result.is_unknown]
    attacked = [result for result in known if result.label != CORRECT]
    turned = [result for result in attacked if result.suffix is not None]
    suffixes = Counter(result.suffix for result in turned if result.suffix is not None)
    hits = [result.suffix is not None for result in attacked]
    return SearchSummary(
        turned=measure_share(hits, [result.cluster for result in attacked]),
        already_correct=sum(result.label == CORRECT for result in results),
        unscored=len(results) - len(known),
        pool=pool,
        tries=sum(result.tries for result in results),
        median_tries=median(result.tries for result in turned) if turned else None,
        suffixes=dict(suffixes.most_common(NUM_LISTED)),
        examples=tuple(turned[:NUM_LISTED]),
    )
