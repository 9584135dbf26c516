"""Rewards of critiques of pairs, for training scripts of TRL, verl, OpenRLHF and others.

A critique is worth the log-probability that a judge gives the right label after it: the mean over
both orders of the pair, less a penalty if the two orders lead to different labels.

    from custos.rewards import CritiqueReward

    GRPOTrainer(..., reward_funcs=CritiqueReward.load("embedded-pair"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clients.judge_client import SENT, JudgeClient
from judging.errors import FieldError, errors_at
from judging.files.records import decode_json
from judging.files.values import as_text
from judging.tasks import get_task
from judging.types import RESPONSE_NAMES, AnyJudge, LabelledExample, parse_record
from judging.verdicts.critiques import CritiqueScore, CritiqueScorer, critique_in

__all__ = ["CritiqueReward", "CritiqueScore"]

DEFAULT_TASK = "truthful-pair"
"""Task of rows that name none."""

Row = Mapping[str, Any] | str
"""A row of a data set with its right label, or its JSON."""
Completion = str | Sequence[Mapping[str, Any]]
"""A text, or the messages that TRL makes of one."""


class CritiqueReward:
    """A reward function for critiques.

    An instance is a reward function of TRL: called with completions and the columns of the data
    set, it returns a reward for each completion. Other programs call :meth:`rewards`.

    Args:
        judge: Gives the labels: a :class:`~judging.judge.Judge`, or a
            :class:`~clients.judge_client.JudgeClient`.
        flip_penalty: How much less a critique is worth after which the two orders of its pair lead
            to different labels.
    """

    def __init__(self, judge: AnyJudge, flip_penalty: float = 1.0) -> None:
        self._scorer = CritiqueScorer(judge, flip_penalty)

    @classmethod
    def load(cls, source: str, *, flip_penalty: float = 1.0, **options: Any) -> CritiqueReward:
        """Make a reward function with a judge in this process: a run folder or a shipped judge.

        Options are those of :meth:`judging.judge.Judge.load`.
        """
        from judging.judge import Judge

        return cls(Judge.load(source, **options), flip_penalty)

    @classmethod
    def connect(cls, url: str, *, flip_penalty: float = 1.0, **options: Any) -> CritiqueReward:
        """Make a reward function with a judge of a running service (``POST /judge``).

        Options are those of :class:`~clients.judge_client.JudgeClient`, such as ``judge``.

        Raises:
            ServerRefusal: If the service does not answer, or refuses the key.
        """
        return cls(JudgeClient.connect(url, **options), flip_penalty)

    def __call__(self, completions: Sequence[Completion], **columns: Any) -> list[float | None]:
        """Return a reward for each completion, as TRL asks for it.

        Columns have a value for each completion. Those of a labelled pair count (``question``,
        ``response_a``, ``response_b``, ``label``, ``references`` and so on); others are ignored.
        """
        names = {*SENT, *RESPONSE_NAMES, "label"} & columns.keys()
        rows = [{name: columns[name][i] for name in names} for i in range(len(completions))]
        return self.rewards(rows, completions)

    def rewards(self, rows: Sequence[Row], completions: Sequence[Completion]) -> list[float | None]:
        """Return a reward for each completion; ``None`` where no critique is asked for.

        Arguments and errors are those of :meth:`scores`.
        """
        scores = self.scores(rows, completions)
        return [None if score is None else score.reward for score in scores]

    def scores(
        self, rows: Sequence[Row], completions: Sequence[Completion]
    ) -> list[CritiqueScore | None]:
        """Return, for each completion, its reward with the parts that it is made of.

        ``None`` stands for a pair that a rule decides, such as one with an empty response.

        Args:
            rows: A labelled pair for each completion, as an object or as its JSON.
            completions: Critiques, in their tags or without.

        Raises:
            CustosError: If a row is no labelled request, or the judge cannot judge it.
        """
        examples = [_example(row, number) for number, row in enumerate(rows)]
        critiques = [
            _critique(example, completion)
            for example, completion in zip(examples, completions, strict=True)
        ]
        return self._scorer.score(examples, critiques)


def _example(row: Row, number: int) -> LabelledExample:
    location = f"row {number}"
    with errors_at(location):
        values = decode_json(row) if isinstance(row, str) else row
    if isinstance(values, Mapping):
        # Data sets fill the columns that a row lacks with None.
        given = {name: value for name, value in values.items() if value is not None}
        values = {"task": DEFAULT_TASK, **given, "id": as_text(given.get("id", number))}
    return parse_record(LabelledExample, values, location)


def _critique(example: LabelledExample, completion: Completion) -> str:
    if not isinstance(completion, str):
        completion = str(completion[-1]["content"])
    form = get_task(example.task).critique
    if form is None:
        raise FieldError("task", f"task '{example.task}' takes no critiques")
    return critique_in(completion, form)
