"""Four ways to judge a pair, before and after training, and what makes a good judge of pairs.

python -m experiments paradigms --data data/pairs/test.jsonl --out runs/paradigms \
    --judge critique-label=runs/pair/critique_label --judge pure-label=runs/pair/pure_label \
    --judge critique-score=runs/pair/critique_score --judge bradley-terry=runs/pair/bradley_terry

Beside the published figures of TruthfulJudge (its Tables 1 and 2). Every cell is a folder with the
pairs and the verdicts; a cell is judged again only if its pairs, judge or settings changed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from evaluation.estimate import without_nan
from evaluation.folder import load_evaluation, save_evaluation
from evaluation.pairs.agreement import measure_pairs, self_consistency
from evaluation.pairs.order_effects import order_effects
from experiments.findings.paradigm_tables import render_paradigms
from judging import CustosError, Judge, JudgeRequest, Verdict
from judging.files.atomic import write_text
from judging.files.kept_work import KeptFile, KeptLine, KeptResult, Origin, locked
from judging.files.records import read_records, write_json
from judging.fingerprint import digest, file_sha256, picture_sha256
from judging.types import LabelledExample

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling

CELL, PARTIAL, SAMPLED = "cell.json", "partial.jsonl", "sampled.json"
PAIRS_AT_ONCE = 100
"""Pairs judged between two writes; a run that is stopped loses at most these."""
SAMPLED_RUNS, SAMPLED_TEMPERATURE, SAMPLED_TOP_P = 5, 0.7, 0.95
"""Self-consistency as the paper measures it."""


@dataclass(frozen=True)
class Paradigm:
    """A way to judge a pair."""

    task: str
    mode: Literal["score", "critique"]
    order: Callable[[Verdict, Verdict], dict[str, float]] | None = None
    """Function from the verdicts on both responses to a posterior over A, B and None; ``None`` if
    the judge sees both responses at once."""


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
    "pure-label": Paradigm("truthful-pure-label", "score"),
    "critique-label": Paradigm("truthful-pair", "critique"),
}
"""In the order of the paper's Table 2."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="labelled pairs")
    parser.add_argument("--out", type=Path, required=True, help="folder of cells and tables")
    parser.add_argument("--original", default="embedded", help="untrained backbone")
    parser.add_argument(
        "--judge", action="append", default=[], metavar="PARADIGM=RUN", help="a trained judge"
    )
    parser.add_argument(
        "--pairs", type=int, default=1000, help="how many pairs to judge, from the first"
    )
    parser.add_argument("--sampled-pairs", type=int, default=200, help="for self-consistency")
    parser.add_argument("--critique-tokens", type=int, default=64, help="budget of a critique")
    arguments = parser.parse_args(argv)
    judges = trained_judges(arguments.judge)
    examples = [row for _, row in read_records(arguments.data, LabelledExample)]
    result = compare_paradigms(
        examples[: arguments.pairs],
        # Trained judges come first: a run that cannot be loaded stops the program at once.
        {"trained": judges, "original": dict.fromkeys(PARADIGMS, arguments.original)},
        arguments.out,
        critique_tokens=arguments.critique_tokens,
        sampled_pairs=arguments.sampled_pairs,
    )
    result["data_sha256"] = file_sha256(arguments.data)
    write_json(arguments.out / "paradigms.json", result)
    write_text(arguments.out / "paradigms.md", render_paradigms(result))
    Console().print(render_paradigms(result), markup=False, soft_wrap=True, highlight=False)


def trained_judges(arguments: Sequence[str]) -> dict[str, str]:
    """Read ``PARADIGM=RUN`` arguments.

    Raises:
        CustosError: If one names no paradigm or no run.
    """
    judges = {}
    for text in arguments:
        name, _, run = text.partition("=")
        if name not in PARADIGMS or not run:
            raise CustosError(f"--judge '{text}': expected one of {', '.join(PARADIGMS)}, =, a run")
        judges[name] = run
    return judges


def compare_paradigms(
    examples: Sequence[LabelledExample],
    judges: Mapping[str, Mapping[str, str]],
    out: Path,
    *,
    critique_tokens: int,
    sampled_pairs: int,
) -> dict[str, Any]:
    """Judge the pairs under every paradigm with every judge and measure the verdicts.

    Args:
        examples: Pairs with people's labels, whatever task they name.
        judges: Stage (``original``, ``trained``) to paradigm to what ``Judge.load`` takes.
        out: Folder of the cells, ``PARADIGM/STAGE``.
        critique_tokens: Budget of a critique; one that hits it is closed and its label read.
        sampled_pairs: So many pairs, the first, are judged five times over for self-consistency.

    Returns:
        ``n``, ``critique_tokens`` and ``cells``: paradigm to stage to the measures of
        ``measure_pairs``, ``by_evidence`` (accuracy, where the pairs say what decides them),
        ``order`` (``order_effects``; paradigms that see both responses), ``self_consistency`` (the
        same ones), ``seconds_per_pair`` and ``judge``.
    """
    cells: dict[str, dict[str, Any]] = {}
    for stage, named in judges.items():
        for name, source in named.items():
            cell = out / name / stage
            Console(stderr=True).print(f"{name}, {stage}", markup=False)
            judge = Judge.load(source)
            measured = measure_cell(judge, examples, PARADIGMS[name], cell, critique_tokens)
            if PARADIGMS[name].order is None:
                measured["self_consistency"] = _consistency(
                    judge, examples[:sampled_pairs], PARADIGMS[name], cell, critique_tokens
                )
            cells.setdefault(name, {})[stage] = measured
    in_order = {name: cells[name] for name in PARADIGMS if name in cells}
    return {"n": len(examples), "critique_tokens": critique_tokens, "cells": without_nan(in_order)}


def judge_pairs(
    judge: Judge,
    examples: Sequence[LabelledExample],
    paradigm: Paradigm,
    sampling: Sampling,
) -> list[Verdict]:
    """Judge every pair; in paradigms of single responses the scores decide."""
    if paradigm.order is None:
        requests = [_request(example, paradigm) for example in examples]
        return list(judge.grade(requests, progress=True, sampling=sampling))
    singles = [single for example in examples for single in _requests(example, paradigm)]
    graded = iter(list(judge.grade(singles, progress=True, sampling=sampling)))
    pairs = zip(examples, zip(graded, graded, strict=True), strict=True)
    return [ordered(example.id, *both, paradigm.order) for example, both in pairs]


def ordered(
    pair_id: str,
    first: Verdict,
    second: Verdict,
    order: Callable[[Verdict, Verdict], dict[str, float]],
) -> Verdict:
    """Merge the verdicts on both responses: the higher score wins, equal scores tie."""
    for verdict in (first, second):
        if verdict.score is None:
            return Verdict(
                id=pair_id,
                status=verdict.status,
                message=verdict.message,
                judge_name=verdict.judge_name,
                rubric=verdict.rubric,
                judge=verdict.judge,
            )
    assert first.score is not None and second.score is not None
    label = "A" if first.score > second.score else "B" if second.score > first.score else "None"
    posterior = order(first, second)
    return Verdict(
        id=pair_id,
        status="scored",
        label=label,
        probabilities=posterior,
        confidence=posterior[label],
        judge_name=first.judge_name,
        rubric=first.rubric,
        judge=first.judge,
    )


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


def _request(example: LabelledExample, paradigm: Paradigm, **more: Any) -> JudgeRequest:
    changed = {"task": paradigm.task, "mode": paradigm.mode, **more}
    return example.request().model_copy(update=changed)


def _requests(example: LabelledExample, paradigm: Paradigm) -> list[JudgeRequest]:
    """Return what the judge is asked of a pair: the pair, or each response by itself."""
    request = _request(example, paradigm)
    if paradigm.order is None:
        return [request]
    return [request.model_copy(update={"responses": (response,)}) for response in example.responses]


class JudgedPairs(KeptLine):
    """A line of the partial file of a cell: the verdicts on ``PAIRS_AT_ONCE`` pairs or fewer."""

    start: int
    """Number of the first pair, from 0."""
    seconds: float
    verdicts: list[Verdict]

    @property
    def origin(self) -> Origin:
        """Return the number of the first pair and the key of the cell."""
        return self.start, self.key


def cell_key(
    judge: Judge, examples: Sequence[LabelledExample], paradigm: Paradigm, **settings: Any
) -> str:
    """Return a digest of everything that the verdicts of a cell depend on."""
    return digest(
        {
            "pairs": [example.model_dump(mode="json") for example in examples],
            "pictures": [picture_sha256(image) for row in examples for image in row.images],
            "mode": paradigm.mode,
            "judge": sorted(
                {judge.fingerprint(each) for row in examples for each in _requests(row, paradigm)}
            ),
            **settings,
        }
    )


def measure_cell(
    judge: Judge,
    examples: Sequence[LabelledExample],
    paradigm: Paradigm,
    cell: Path,
    critique_tokens: int,
) -> dict[str, Any]:
    """Judge the pairs of a cell, unless an earlier run did, and measure the verdicts.

    Args:
        judge: The judge.
        examples: Pairs with people's labels.
        paradigm: How the judge sees the pairs.
        cell: Folder of the cell.
        critique_tokens: Budget of a critique.

    Returns:
        Measures of the verdicts, as in :func:`compare_paradigms`.

    Raises:
        CustosError: If another process is judging this cell.
    """
    key = cell_key(judge, examples, paradigm, critique_tokens=critique_tokens)
    finished = KeptResult(cell / CELL, key)
    partial = KeptFile(cell / PARTIAL, JudgedPairs)
    with locked(partial.path):
        times = finished.read()
        if times is None:
            seconds, verdicts = _fill(partial, key, judge, examples, paradigm, critique_tokens)
            finished.path.unlink(missing_ok=True)  # Never beside verdicts of something else.
            save_evaluation(cell, examples, verdicts)
            times = finished.write({"seconds_per_pair": seconds / len(examples)})
            partial.path.unlink()
    _, verdicts = load_evaluation(cell)
    measured: dict[str, Any] = {
        "judge": judge.name,
        "seconds_per_pair": times["seconds_per_pair"],
        **measure_pairs(examples, verdicts),
        "by_evidence": _by_evidence(examples, verdicts),
    }
    if paradigm.order is None:
        measured["order"] = order_effects(examples, verdicts)
    return measured


def _fill(
    partial: KeptFile[JudgedPairs],
    key: str,
    judge: Judge,
    examples: Sequence[LabelledExample],
    paradigm: Paradigm,
    critique_tokens: int,
) -> tuple[float, list[Verdict]]:
    """Judge the pairs that no earlier run judged; return seconds and verdicts of all pairs."""
    from judging.scoring.engine import Sampling

    def judge_blocks(starts: Sequence[int]) -> Iterator[JudgedPairs]:
        for start in starts:
            started = time.perf_counter()
            block = examples[start : start + PAIRS_AT_ONCE]
            verdicts = judge_pairs(judge, block, paradigm, Sampling(critique_tokens))
            seconds = time.perf_counter() - started
            yield JudgedPairs(key=key, start=start, seconds=seconds, verdicts=verdicts)

    starts = range(0, len(examples), PAIRS_AT_ONCE)
    filling = partial.fill(lambda: starts, lambda start: (start, key), judge_blocks, batch=1)
    for num_blocks in filling:
        num_pairs = min(num_blocks * PAIRS_AT_ONCE, len(examples))
        Console(stderr=True).print(f"{num_pairs} of {len(examples)} pairs judged")
    blocks = list(partial.lines())
    verdicts = [verdict for block in blocks for verdict in block.verdicts]
    return sum(block.seconds for block in blocks), verdicts


def _by_evidence(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> dict[str, dict[str, Any]]:
    kinds = sorted({str(e.metadata["evidence"]) for e in examples if "evidence" in e.metadata})
    measured = {}
    for kind in kinds:
        chosen = [i for i, e in enumerate(examples) if e.metadata.get("evidence") == kind]
        parts = [examples[i] for i in chosen], [verdicts[i] for i in chosen]
        measured[kind] = measure_pairs(*parts)["accuracy_ties_counted"]
    return measured


def _consistency(
    judge: Judge,
    examples: Sequence[LabelledExample],
    paradigm: Paradigm,
    cell: Path,
    critique_tokens: int,
) -> dict[str, Any]:
    """Measure the entropy of labels over repeated runs that sample critique and label anew."""
    from judging.scoring.engine import Sampling

    key = cell_key(judge, examples, paradigm, critique_tokens=critique_tokens, runs=SAMPLED_RUNS)
    sampled = KeptResult(cell / SAMPLED, key)
    done = sampled.read()
    if done is None:
        sampling = Sampling(critique_tokens, SAMPLED_TEMPERATURE, SAMPLED_TOP_P)
        seeds = [
            [run * len(examples) + pair for run in range(SAMPLED_RUNS)]
            for pair in range(len(examples))
        ]
        requests = [
            _request(example, paradigm, order="given", seed=seed)
            for example, pair_seeds in zip(examples, seeds, strict=True)
            for seed in pair_seeds
        ]
        graded = judge.grade(requests, progress=True, calibrated=False, sampling=sampling)
        labels = [
            draw_label(
                verdict.probabilities, SAMPLED_TEMPERATURE, SAMPLED_TOP_P, Random(f"label/{seed}")
            )
            if verdict.probabilities
            else None
            for verdict, seed in zip(graded, chain.from_iterable(seeds), strict=True)
        ]
        runs = [labels[i : i + SAMPLED_RUNS] for i in range(0, len(labels), SAMPLED_RUNS)]
        done = sampled.write({"seeds": seeds, "labels": runs})
    groups = [example.group or example.question for example in examples]
    return self_consistency(done["labels"], groups)
