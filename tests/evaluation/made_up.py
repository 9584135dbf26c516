"""Small made-up evaluations for the tests of this folder."""

from typing import Any

import numpy as np

from evaluation.report.report import build_report
from judging.judge.card import SHIPPED, read_card
from judging.judge.notes import mode_note
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Verdict

ANSWERERS = ("ant", "bee", "cat")
TYPED_LABELS = (
    "Correct",
    "Partial; Reasoning Error",
    "Partial; Other",
    "Wrong; Reasoning Error",
    "Wrong; Other",
)
PEOPLE_AND_JUDGE = [
    ("Correct", "Correct"),
    ("Correct", "Wrong; Reasoning Error"),
    ("Partial; Reasoning Error", "Wrong; Reasoning Error"),  # the type is right, the score is not
    ("Partial; Reasoning Error", "Partial; Reasoning Error"),
    ("Wrong; Reasoning Error", "Correct"),
    ("Wrong; Reasoning Error", "Wrong; Other"),
    ("Wrong; Other", "Wrong; Other"),
    ("Partial; Other", "Wrong; Other"),
]


def example(label: str = "Correct", **fields: Any) -> LabelledExample:
    given: dict[str, Any] = {
        "id": "1",
        "question": "What is six times seven?",
        "references": ("42",),
        "responses": ("42",),
        "label": label,
    }
    return LabelledExample.model_validate(given | fields)


def scored(label: str, probability: float | None = None, other: str = "Wrong", id: str = "1",
           **fields: Any) -> Verdict:  # fmt: skip
    """A verdict with ``probability`` on ``label`` and the rest on ``other``."""
    posterior = {} if probability is None else {label: probability, other: 1 - probability}
    given = {"id": id, "status": "scored", "label": label, "probabilities": posterior}
    return Verdict.model_validate(given | fields)


def untrained_mode_note() -> str | None:
    """Return the message of the shipped judge of pairs where it decides without its critique."""
    request = JudgeRequest(task="truthful-pair", question="?", responses=("1", "2"), mode="score")
    card = read_card(SHIPPED / "embedded-pair")
    return mode_note(card, get_task(request.task), request, is_calibrated=False)


def unscored(id: str = "1") -> Verdict:
    return Verdict(id=id, status="unparsed", message="no label in the text")


def evaluation(
    questions: int = 60, accuracy: float = 0.8, seed: int = 0, unscored_every: int = 0
) -> tuple[list[LabelledExample], list[Verdict]]:
    """Three systems' answers per question, human labels, and a judge of a given accuracy.

    Questions and labels depend on the number of questions alone, so two calls share their items.
    """
    people, judge = np.random.default_rng(99), np.random.default_rng(seed)
    examples, verdicts = [], []
    for number in range(questions * len(ANSWERERS)):
        question, answerer = divmod(number, len(ANSWERERS))
        human = "Correct" if people.random() < 0.45 + 0.2 * answerer else "Wrong"
        other = "Wrong" if human == "Correct" else "Correct"
        label, rest = (human, other) if judge.random() < accuracy else (other, human)
        response = "yes indeed" if human == "Correct" else "no" * (1 + number % 7)
        fields = {"references": ("yes",), "responses": (response,), "reference_mode": "any"}
        fields |= {"id": str(number), "question": f"Question {question}?"}
        examples.append(example(human, metadata={"answerer": ANSWERERS[answerer]}, **fields))
        verdict = scored(label, 0.5 + judge.random() / 2, rest, str(number), judge="made-up")
        missing = unscored_every and number % unscored_every == 0
        verdicts.append(unscored(str(number)) if missing else verdict)
    return examples, verdicts


def typed_records() -> tuple[list[LabelledExample], list[Verdict]]:
    """One example for each of ``PEOPLE_AND_JUDGE``."""
    examples, verdicts = [], []
    for i, (people, judge) in enumerate(PEOPLE_AND_JUDGE):
        examples.append(example(people, id=str(i), task="hieval-ea", question=f"Which {i}?"))
        score, _, kind = judge.partition("; ")
        verdicts.append(scored(score, id=str(i), error_type=kind or None))
    return examples, verdicts


def report(**options: Any) -> dict[str, Any]:
    examples, verdicts = evaluation(unscored_every=9)
    given: dict[str, Any] = {"seconds": 9.0, "command": "custos eval x"}
    return build_report(examples, verdicts, **(given | options))
