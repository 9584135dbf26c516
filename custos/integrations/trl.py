"""A reward for training with TRL: how probably an answer is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from custos.integrations._core import Grader, references_in
from judging.types import AnyJudge


class AnswerReward:
    """A reward function: P(Correct) of each completion, and half of P(Partial).

    ``question`` and ``reference`` name columns; without a column of questions the prompt is the
    question, and a reference may be a list. ``judge`` and ``fields`` are those of
    :class:`~custos.integrations._core.Grader`.
    """

    __name__ = "AnswerReward"

    def __init__(
        self,
        judge: AnyJudge | str,
        question: str = "question",
        reference: str = "reference",
        **fields: Any,
    ) -> None:
        self.grader = Grader(judge, **fields)
        self.question, self.reference = question, reference

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """Return a reward for each completion; ``None`` without a reference or a verdict.

        Raises ``CustosError`` if the judge decides nothing on all of them, or there is none.
        """
        questions = columns.get(self.question, prompts)
        rewards: list[float | None] = [None] * len(completions)
        requests = {
            index: self.grader.request(question, reference, completion)
            for index, (question, reference, completion) in enumerate(
                zip(questions, columns[self.reference], completions, strict=True)
            )
            if references_in(reference)
        }
        for index, grade in zip(requests, self.grader.grades(requests.values()), strict=True):
            rewards[index] = None if grade is None else grade.expected
        return rewards
