"""Stream labelled responses to made questions, in the tasks of three benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from data_prep.splits.near_duplicates import question_key
from data_prep.synthetic.benchmark_answers.charthal import make_charthal
from data_prep.synthetic.benchmark_answers.chartom import make_chartom
from data_prep.synthetic.benchmark_answers.rows import MakeQuestion
from data_prep.synthetic.benchmark_answers.simplevqa import make_simplevqa
from data_prep.synthetic.benchmark_answers.wordings import Side, wordings_for
from data_prep.synthetic.seeds import seeded_rng
from judging.types import LabelledExample

MAKERS: dict[str, MakeQuestion] = {
    "charthal": make_charthal,
    "simplevqa": make_simplevqa,
    "chartom-fact": make_chartom,
}
"""By task."""


def generate_benchmark_answers(
    num_rows: int,
    seed: int,
    wordings: Literal["train", "test"],
    tasks: Sequence[str] = tuple(MAKERS),
) -> Iterator[LabelledExample]:
    """Stream examples of the tasks in turn; all rows of a question come one after the other.

    Questions depend on the other arguments and their own number alone, so that a longer stream
    begins with the shorter one.

    Args:
        num_rows: How many examples to make.
        seed: Any integer.
        wordings: Wordings of questions and responses; ``test`` has none of those of ``train``.
        tasks: Names of :data:`MAKERS`.
    """
    side: Side = "training" if wordings == "train" else "held_out"
    made, number = 0, 0
    while True:
        task = tasks[number % len(tasks)]
        name = f"benchmark-answers-{wordings}-{seed}-{number}"
        rng = seeded_rng(name, task)
        question, answers = MAKERS[task](rng, wordings_for(side))
        for position, answer in enumerate(dict.fromkeys(answers)):
            if made == num_rows:
                return
            made += 1
            yield LabelledExample(
                id=f"{name}-{position}",
                task=task,
                variant=question.variant,
                question=question.question,
                choices=question.choices,
                references=question.references,
                responses=(answer.response,),
                label=answer.label,
                metadata={"kind": answer.kind},
                group=question_key(question.question),
                source="benchmark-answers",
            )
        number += 1
