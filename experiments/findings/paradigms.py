"""Four ways to judge a pair, before and after training, and what makes a good judge of pairs.

python -m experiments paradigms --data data/pairs/test.jsonl --out runs/paradigms \
    --judge critique-label=runs/pair/critique_label --judge pure-label=runs/pair/pure_label \
    --judge critique-score=runs/pair/critique_score --judge bradley-terry=runs/pair/bradley_terry

Beside the published figures of TruthfulJudge (its Tables 1 and 2). Every cell is a folder with the
pairs and the verdicts; a cell is judged again only if its pairs, judge or settings changed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evaluation.estimate import without_nan
from evaluation.folder import load_evaluation, save_evaluation
from evaluation.pairs.agreement import measure_pairs, self_consistency
from evaluation.pairs.order_effects import order_effects
from evaluation.pairs.paradigms import PARADIGMS, PairsByScores, Paradigm, paradigm_requests
from evaluation.pairs.sampled_labels import RUNS, SampledJudge, sampled_requests
from experiments.findings.paradigm_tables import render_paradigms
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.kept_work import KeptFile, KeptLine, KeptResult, Origin, locked
from judging.files.records import read_records, write_json
from judging.fingerprint import digest, file_sha256, picture_sha256
from judging.judge import Judge
from judging.types import MAX_CRITIQUE_TOKENS, LabelledExample, Verdict

CELL, PARTIAL, SAMPLED = "cell.json", "partial.jsonl", "sampled.json"
PAIRS_AT_ONCE = 100
"""Pairs judged between two writes; a run that is stopped loses at most these."""


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
        "--pairs", type=int, help="how many pairs to judge, from the first; default all"
    )
    parser.add_argument(
        "--sampled-pairs", type=int, help="so many of them for self-consistency; default all"
    )
    parser.add_argument(
        "--critique-tokens",
        type=int,
        default=MAX_CRITIQUE_TOKENS,
        help="budget of a critique; default the paper's",
    )
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
    sampled_pairs: int | None,
) -> dict[str, Any]:
    """Judge the pairs under every paradigm with every judge and measure the verdicts.

    Args:
        examples: Pairs with people's labels, whatever task they name.
        judges: Stage (``original``, ``trained``) to paradigm to what ``Judge.load`` takes.
        out: Folder of the cells, ``PARADIGM/STAGE``.
        critique_tokens: Budget of a critique; one that hits it is closed and its label read.
        sampled_pairs: So many pairs, the first, are judged five times over for self-consistency;
            ``None`` for all.

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
    judge: Judge, examples: Sequence[LabelledExample], paradigm: Paradigm
) -> list[Verdict]:
    """Judge every pair; in paradigms of single responses the scores decide."""
    requests = [example.request() for example in examples]
    if paradigm.order is not None:
        return list(PairsByScores(judge, paradigm).grade(requests))
    asked = [each for request in requests for each in paradigm_requests(request, paradigm)]
    return list(judge.grade(asked, progress=True))


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
                {
                    judge.fingerprint(each)
                    for row in examples
                    for each in paradigm_requests(row.request(), paradigm)
                }
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
    limit = {"critique_tokens": critique_tokens}

    def judge_blocks(starts: Sequence[int]) -> Iterator[JudgedPairs]:
        for start in starts:
            started = time.perf_counter()
            block = examples[start : start + PAIRS_AT_ONCE]
            limited = [example.model_copy(update=limit) for example in block]
            verdicts = judge_pairs(judge, limited, paradigm)
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
    key = cell_key(judge, examples, paradigm, critique_tokens=critique_tokens, runs=RUNS)
    sampled = KeptResult(cell / SAMPLED, key)
    done = sampled.read()
    if done is None:
        limit = {"critique_tokens": critique_tokens}
        asked = [
            request.model_copy(update=limit)
            for example in examples
            for request in paradigm_requests(example.request(), paradigm)
        ]
        requests = sampled_requests(asked, RUNS)
        drawn = [verdict.label for verdict in SampledJudge(judge).grade(requests)]
        seeds, labels = (
            [values[i : i + RUNS] for i in range(0, len(values), RUNS)]
            for values in ([request.seed for request in requests], drawn)
        )
        done = sampled.write({"seeds": seeds, "labels": labels})
    groups = [example.group or example.question for example in examples]
    return self_consistency(done["labels"], groups)
