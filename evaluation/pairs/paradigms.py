"""Ways to judge a pair (TruthfulJudge, Table 2), and labels drawn anew for self-consistency."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from judging.fingerprint import digest
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.scoring.engine import Sampling
from judging.types import JudgeRequest, Verdict, score_of, type_of

RUNS, TEMPERATURE, TOP_P = 5, 0.7, 0.95
"""Self-consistency as the paper measures it."""


@dataclass(frozen=True)
class Paradigm:
    """A way to judge a pair by each response alone."""

    task: str
    mode: Literal["score", "critique"]
    order: Callable[[Verdict, Verdict], dict[str, float]]
    """Function from the verdicts on both responses to a posterior over A, B and None."""


def order_by_reward(first: Verdict, second: Verdict) -> dict[str, float]:
    """Turn rewards into a posterior (Bradley & Terry): the log-odds of A are their difference."""
    assert first.score is not None and second.score is not None
    won = 1 / (1 + math.exp(max(-700.0, min(700.0, second.score - first.score))))
    return {"A": won, "B": 1 - won, "None": 0.0}


def order_by_score(first: Verdict, second: Verdict) -> dict[str, float]:
    """Compute which score is higher if both are drawn independently from their posteriors."""
    won = lost = 0.0
    for a, p in first.probabilities.items():
        for b, q in second.probabilities.items():
            won += p * q * (int(a) > int(b))
            lost += p * q * (int(a) < int(b))
    return {"A": won, "B": lost, "None": max(0.0, 1 - won - lost)}


PARADIGMS = {
    "bradley-terry": Paradigm("truthful-reward", "score", order_by_reward),
    "critique-score": Paradigm("truthful-critique-score", "critique", order_by_score),
}
OF_PAIRS = {"truthful-pure-label", "truthful-pair"}
"""Tasks of the paradigms in which a judge sees both responses at once."""


def scoring_paradigm(card: JudgeCard | None) -> Paradigm | None:
    """Choose how a judge that was trained on single responses alone judges a pair.

    A zero-shot judge, which has no card, takes pairs as they are: ``None``, as for any other judge.
    """
    tasks = set(card.tasks) if card else set()
    found = [each for each in PARADIGMS.values() if each.task in tasks]
    return found[0] if len(found) == 1 and not tasks & OF_PAIRS else None


class PairsByScores:
    """Grader of pairs that asks a judge about each response alone; the higher score wins."""

    def __init__(self, judge: Judge, paradigm: Paradigm) -> None:
        self.judge = judge
        self.name = judge.name
        self.paradigm = paradigm

    def fingerprint(self, request: JudgeRequest) -> str:
        """Digest everything but the request that could change its verdict."""
        return self.judge.fingerprint(self._singles(request)[0])

    def grade(self, requests: Iterable[JudgeRequest]) -> Iterator[Verdict]:
        """Yield one verdict per pair, in order; none of its responses has one of its own."""
        pairs = list(requests)
        singles = [each for pair in pairs for each in self._singles(pair)]
        graded = iter(list(self.judge.grade(singles)))
        for pair, (first, second) in zip(pairs, zip(graded, graded, strict=True), strict=True):
            yield ordered(pair.id, first, second, self.paradigm.order)

    def _singles(self, pair: JudgeRequest) -> list[JudgeRequest]:
        """Make what the judge is asked of each response."""
        asked = {"task": self.paradigm.task, "mode": self.paradigm.mode}
        return [pair.model_copy(update={**asked, "responses": (text,)}) for text in pair.responses]


def ordered(
    pair_id: str,
    first: Verdict,
    second: Verdict,
    order: Callable[[Verdict, Verdict], dict[str, float]],
) -> Verdict:
    """Merge the verdicts on both responses: the higher score wins, equal scores tie."""

    def verdict(given: Verdict, **fields: Any) -> Verdict:
        fields |= {"judge_name": given.judge_name, "rubric": given.rubric, "judge": given.judge}
        return Verdict(id=pair_id, **fields)

    for each in (first, second):
        if each.score is None:
            return verdict(each, status=each.status, message=each.message)
    assert first.score is not None and second.score is not None
    label = "A" if first.score > second.score else "B" if second.score > first.score else "None"
    posterior = order(first, second)
    sure = posterior[label]
    return verdict(first, status="scored", label=label, probabilities=posterior, confidence=sure)


def sampled_requests(requests: Sequence[JudgeRequest], runs: int) -> list[JudgeRequest]:
    """Repeat every request ``runs`` times, one reading each, with another seed every time."""
    return [
        request.model_copy(update={"order": "given", "seed": run * len(requests) + index})
        for index, request in enumerate(requests)
        for run in range(runs)
    ]


class SampledJudge:
    """Grader that draws a judge's critiques and labels, by the seeds of the requests."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.name = judge.name

    def fingerprint(self, request: JudgeRequest) -> str:
        """Digest everything but the request that could change its verdict."""
        return digest({"judge": self.judge.fingerprint(request), "drawn": [TEMPERATURE, TOP_P]})

    def grade(self, requests: Iterable[JudgeRequest]) -> Iterator[Verdict]:
        """Yield one verdict per request, in order, with a label drawn before any calibration."""
        asked = list(requests)
        by_limit = defaultdict(list)
        for index, request in enumerate(asked):
            by_limit[request.critique_tokens].append(index)
        verdicts: dict[int, Verdict] = {}
        for limit, indices in by_limit.items():
            alike, sampling = [asked[i] for i in indices], Sampling(limit, TEMPERATURE, TOP_P)
            graded = self.judge.grade(alike, calibrated=False, sampling=sampling)
            verdicts.update(zip(indices, graded, strict=True))
        for index, request in enumerate(asked):
            verdict = verdicts[index]
            if verdict.probabilities:  # A rule's label is the same in every run; others have none.
                rng = Random(f"label/{request.seed}")
                label = draw_label(verdict.probabilities, TEMPERATURE, TOP_P, rng)
                drawn = {"label": score_of(label), "error_type": type_of(label) or None}
                verdict = verdict.model_copy(update=drawn)
            yield verdict


def draw_label(
    posterior: Mapping[str, float], temperature: float, top_p: float, rng: Random
) -> str:
    """Sample a label with temperature and nucleus, as tokens are sampled."""
    sharpened = {label: p ** (1 / temperature) for label, p in posterior.items()}
    total = sum(sharpened.values())
    nucleus: dict[str, float] = {}
    for label in sorted(sharpened, key=sharpened.__getitem__, reverse=True):
        if sum(nucleus.values()) >= top_p * total:
            break
        nucleus[label] = sharpened[label]
    return rng.choices(list(nucleus), list(nucleus.values()))[0]
