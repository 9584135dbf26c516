"""Shares of the best label among verdicts, raw and corrected by the errors of their judges."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judging.judge import Judge
from judging.log_lines import one_line
from judging.types import Verdict, score_of

if TYPE_CHECKING:
    from clients.kept_verdicts import Grader


@dataclass
class _Verdicts:
    """Verdicts of one judge under one rubric."""

    best: str
    hits: array[int] = field(default_factory=lambda: array("b"))
    questions: array[int] = field(default_factory=lambda: array("q"))


class JudgedRates:
    """Verdicts by judge and rubric, and the questions that they are on."""

    def __init__(self) -> None:
        self._by_judge: dict[tuple[str, str], _Verdicts | None] = {}
        """``None`` where no label is the best one."""

    def add(self, verdict: Verdict, question: int) -> None:
        """Count a verdict; one without a label does not count.

        Args:
            verdict: Verdict on a row.
            question: Number that rows on the same question have in common.
        """
        if verdict.label is None:
            return
        key = verdict.judge_name, verdict.rubric
        if key not in self._by_judge:
            from evaluation.correction.judged import best_label

            best = best_label(verdict.rubric)
            self._by_judge[key] = None if best is None else _Verdicts(best)
        if (verdicts := self._by_judge[key]) is not None:
            verdicts.hits.append(score_of(verdict.label) == verdicts.best)
            verdicts.questions.append(question)

    def lines(self, grader: Grader | None = None) -> Iterator[str]:
        """Yield a sentence for each judge and rubric.

        Args:
            grader: Judge that is at hand; what its folder says of it counts.
        """
        import numpy as np

        from evaluation.correction.judged import errors_in_folder, errors_of_judge, judged_rate
        from evaluation.report.markdown import judged_text

        name, folder = (grader.name, grader.folder) if isinstance(grader, Judge) else ("", None)
        by_folder = errors_in_folder(folder)
        for (judge, rubric), verdicts in self._by_judge.items():
            if verdicts is None:
                continue
            errors = (by_folder if judge == name else {}) or errors_of_judge(judge)
            hits = np.array(verdicts.hits, np.float64)
            rubrics = [rubric] * len(hits)
            rate = judged_rate(hits, np.array(verdicts.questions), rubrics, errors)
            text = f"share of {verdicts.best}, {rubric}: {judged_text(rate.as_json())}"
            yield one_line(text)  # a service may name its rubrics as it likes
