"""Labels drawn anew in several runs, for self-consistency (TruthfulJudge, section 5.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

from judging.fingerprint import digest
from judging.judge import Judge
from judging.scoring.engine import Sampling
from judging.types import JudgeRequest, Verdict, score_of, type_of

RUNS, TEMPERATURE, TOP_P = 5, 0.7, 0.95
"""Self-consistency as the paper measures it."""


def sampled_requests(requests: Sequence[JudgeRequest], runs: int) -> list[JudgeRequest]:
    """Return every request ``runs`` times, one reading each, with another seed every time."""
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
        """Return a digest of everything but the request that could change its verdict."""
        return digest({"judge": self.judge.fingerprint(request), "drawn": [TEMPERATURE, TOP_P]})

    def grade(self, requests: Iterable[JudgeRequest]) -> Iterator[Verdict]:
        """Yield one verdict per request, in order, with a label drawn before any calibration."""
        asked = list(requests)
        by_limit = defaultdict(list)
        for index, request in enumerate(asked):
            by_limit[request.critique_tokens].append(index)
        verdicts: dict[int, Verdict] = {}
        for limit, indices in by_limit.items():
            graded = self.judge.grade(
                [asked[index] for index in indices],
                calibrated=False,
                sampling=Sampling(limit, TEMPERATURE, TOP_P),
            )
            verdicts.update(zip(indices, graded, strict=True))
        for index, request in enumerate(asked):
            yield _with_drawn_label(verdicts[index], request.seed)


def _with_drawn_label(verdict: Verdict, seed: int) -> Verdict:
    if not verdict.probabilities:  # A rule's label is the same in every run; others have none.
        return verdict
    label = draw_label(verdict.probabilities, TEMPERATURE, TOP_P, Random(f"label/{seed}"))
    drawn = {"label": score_of(label), "error_type": type_of(label) or None}
    return verdict.model_copy(update=drawn)


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
