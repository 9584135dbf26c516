"""TruthfulQA: answers of models to questions with popular wrong answers, judged by people.

Lin, Hilton and Evans, "TruthfulQA: Measuring How Models Mimic Human Falsehoods" (ACL 2022), the
answers of ``finetune_truth.jsonl`` with the right answers of ``TruthfulQA.csv``, Apache-2.0.

People said of each answer whether it is true. We ask whether it means the same as a right answer.
Where these differ a row is left out: an answer that says nothing ("I have no comment"), or only
what the question says ("rainbows" to "What do rainbows taste like?"), is true, but answers no
question. For the same reason such sentences are no references. Answers that are true but beside the
point remain.

About half of the true answers kept repeat a reference word for word. They stay, and so does the
reference: models repeat references in use too, the other answers are judged beside them, and the
remaining references often do not support the answer that was given.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from data_prep.splits.near_duplicates import question_key
from judging.errors import CustosError
from judging.files.questions import normalise_question
from judging.files.records import read_records
from judging.types import LabelledExample

_SAYS_NOTHING = re.compile(
    r"(?:i (?:have|ve got) no (?:comment|idea|opinion)"
    r"|i(?: m| am)? (?:really )?not sure"
    r"|i (?:do not|don t|really don t) (?:know|understand)"
    r"|i (?:cannot|can not|can t) (?:say|tell|answer)"
    r"|(?:nobody|no one) knows"
    r"|no (?:comment|answer))\b"
)
"""Beginning of an answer that says nothing, as ``normalise_question`` spells it."""

_ASKING = frozenset("what which who whom whose where when why how".split())
_EMPTY = _ASKING | set(
    "is are was were be been being am do does did has have had will would can could may might"
    " should of in on at to for from by with during about into and as than it its they their he his"
    " she her you your i we there that this these those if so some yes".split()
)
"""Words that say nothing beyond a question that asks for something, as "yes" does there."""
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|e|s)$")


class TruthfulQARow(BaseModel):
    """One answer with the question's right and wrong answers and people's judgement."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str = ""
    question: str = Field(min_length=1)
    response: str
    label: Annotated[Literal["True", "False"], BeforeValidator(lambda label: str(label).title())]
    correct_answers: tuple[str, ...] = Field(min_length=1)
    group: str = ""

    def references(self) -> tuple[str, ...]:
        """List the right answers that say something, each once, in the order of the file."""
        answers = (answer.strip() for answer in self.correct_answers)
        return tuple(dict.fromkeys(a for a in answers if a and not says_nothing(a)))

    def is_judged_as_an_answer(self) -> bool:
        """Tell whether people's judgement also says whether the response is a right answer."""
        references = self.references()
        if says_nothing(self.response) or not references:
            return False
        if self.label == "False" or not repeats_question(self.response, self.question):
            return True
        return any(repeats_question(reference, self.question) for reference in references)


def says_nothing(answer: str) -> bool:
    """Tell whether a text gives no answer: it is empty, or begins by saying so."""
    folded = normalise_question(answer.replace("\u2019", "'"))
    return not any(map(str.isalnum, folded)) or _SAYS_NOTHING.match(folded) is not None


def repeats_question(answer: str, question: str) -> bool:
    """Tell whether an answer only says what the question says, which is no answer.

    After a question for yes or no, or one with "or", only the question itself counts as that:
    "Bats see" answers "Do bats see?".
    """
    answer, question = normalise_question(answer), normalise_question(question)
    asked = question.split()
    if not _ASKING.intersection(asked) or "or" in asked:
        return answer == question
    return _telling_words(answer) <= _telling_words(question)


def _telling_words(text: str) -> set[str]:
    """Return the words that say something, without their endings."""
    return {_ENDING.sub("", word) for word in text.split() if word not in _EMPTY}


def load_truthfulqa(
    path: Path | str, bad_rows: list[str] | None = None
) -> tuple[list[LabelledExample], dict[str, int]]:
    """Read answers that people judged true or false, with right answers as references.

    The file is JSONL, JSON or Parquet, with the fields of :class:`TruthfulQARow`. Examples are of
    task ``hieval-qs``, reference mode ``any``, labelled ``Correct`` or ``Wrong``; their group is
    their question. The counts say, by reason, how many rows were left out: answers or references
    that say nothing, true answers that only repeat the question where no reference does, and
    repetitions of an answer to the same question. An answer that people judged both ways is left
    out whole. Errors are those of :func:`read_records`; ``CustosError`` is also raised if no row
    remains.
    """
    rows = list(read_records(Path(path), TruthfulQARow, bad_rows))
    answers = [(question_key(row.question), normalise_question(row.response)) for _, row in rows]
    judged: dict[tuple[str, str], set[str]] = {}
    for answer, (_, row) in zip(answers, rows, strict=True):
        judged.setdefault(answer, set()).add(row.label)
    left_out = {"without_an_answer": 0, "judged_both_ways": 0, "repeated": 0}
    kept: dict[tuple[str, str], LabelledExample] = {}
    for answer, (number, row) in zip(answers, rows, strict=True):
        if not row.is_judged_as_an_answer():
            left_out["without_an_answer"] += 1
        elif len(judged[answer]) > 1:
            left_out["judged_both_ways"] += 1
        elif answer in kept:
            left_out["repeated"] += 1
        else:
            kept[answer] = LabelledExample(
                id=row.id or f"{Path(path).stem}-{number}",
                task="hieval-qs",
                variant="plain",
                question=row.question,
                references=row.references(),
                reference_mode="any",
                responses=(row.response,),
                label="Correct" if row.label == "True" else "Wrong",
                group=row.group or question_key(row.question),
                source="truthfulqa",
            )
    if rows and not kept:
        raise CustosError(f"{path}: no row holds an answer and a reference that say something")
    return list(kept.values()), left_out
