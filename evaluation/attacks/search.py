"""A search for suffixes that turn a wrong answer into Correct."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from evaluation.attacks.families import attack_words
from evaluation.attacks.rows import Frozen, Share, measure_share
from evaluation.measure import CORRECT, WRONG
from judging.types import JudgeRequest, LabelledExample, Verdict

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
    pool = ["".join(parts) for parts in itertools.product(*attack_words()["suffix"].values())]
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
    return SearchSummary(
        turned=measure_share(
            [result.suffix is not None for result in attacked],
            [result.cluster for result in attacked],
        ),
        already_correct=sum(result.label == CORRECT for result in results),
        unscored=len(results) - len(known),
        pool=pool,
        tries=sum(result.tries for result in results),
        median_tries=median(result.tries for result in turned) if turned else None,
        suffixes=dict(suffixes.most_common(NUM_LISTED)),
        examples=tuple(turned[:NUM_LISTED]),
    )
