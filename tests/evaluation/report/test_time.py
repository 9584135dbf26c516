"""Time of the largest reports. No model runs."""

import time
from pathlib import Path

import numpy as np
import pytest

from evaluation.comparisons.compare import compare_evaluations, gate
from evaluation.outcomes import save_evaluation
from evaluation.report.evaluate import find_disagreements, write_disagreements
from evaluation.report.page import write_page
from evaluation.report.report import build_report, write_report
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import example

pytestmark = pytest.mark.slow
ROWS, SECONDS = 10_000, 30
LABELS = ("Correct", "Partial", "Wrong")
WORDS = "river stone amber nineteen copper valley Mercury delta 1989 spider Guernica".split()


def made_up(rng: np.random.Generator, systems: int) -> list[LabelledExample]:
    """Answers of 50 words by several systems, each labelled by about four of eight people."""
    examples = []
    for number in range(ROWS):
        question, system = divmod(number, systems)
        truth = int(rng.integers(3))
        votes = {
            f"person {person}": LABELS[truth if rng.random() < 0.88 else int(rng.integers(3))]
            for person in np.flatnonzero(rng.random(8) < 0.5).tolist() or [0]
        }
        given = list(votes.values())
        examples.append(
            example(
                max(given, key=given.count),
                id=str(number),
                question=f"{' '.join(rng.choice(WORDS, 12))} {question}?",
                references=(" ".join(rng.choice(WORDS, 2)),),
                responses=(" ".join(rng.choice(WORDS, 50)),),
                annotator_labels=votes,
                metadata={"answerer": f"system {system}", "domain": f"domain {question % 4}"},
            )
        )
    return examples


def verdicts(
    examples: list[LabelledExample], accuracy: float, rng: np.random.Generator
) -> list[Verdict]:
    found = []
    for each in examples:
        label = each.label if rng.random() < accuracy else str(rng.choice(LABELS))
        chances = rng.dirichlet((1.0, 1.0, 1.0)) * 0.4
        posterior = dict(zip(LABELS, chances.tolist(), strict=True))
        posterior[label] += 0.6
        verdict = Verdict(
            id=each.id,
            status="scored",
            label=label,
            probabilities=posterior,
            confidence=posterior[label],
            needs_review=posterior[label] < 0.8,
        )
        found.append(verdict)
    return found


@pytest.mark.parametrize("systems", [5, 100])
def test_ten_thousand_rows_take_less_than_half_a_minute(tmp_path: Path, systems: int) -> None:
    rng = np.random.default_rng(0)
    examples = made_up(rng, systems)
    judge, before, chat = (verdicts(examples, accuracy, rng) for accuracy in (0.85, 0.8, 0.75))
    save_evaluation(tmp_path / "chat", examples, chat)
    started = time.process_time()
    report = build_report(
        examples,
        judge,
        seconds=1.0,
        command="",
        references={"chat": chat},
        uncalibrated=before,
        risk=0.05,
        family="qwen",
    )
    disagreements = find_disagreements(examples, judge)
    write_report(report, tmp_path)
    write_page(report, disagreements, "rows.jsonl", tmp_path)
    write_disagreements(tmp_path, disagreements)
    save_evaluation(tmp_path, examples, judge)
    reported = time.process_time()
    compare_evaluations(tmp_path, tmp_path / "chat")
    gate(tmp_path, tmp_path / "chat")
    compared = time.process_time()
    assert max(reported - started, compared - reported) < SECONDS
