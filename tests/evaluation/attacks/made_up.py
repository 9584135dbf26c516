"""Questions of a user, for the tests of this folder."""

from typing import Any

from judging.types import LabelledExample

QUESTIONS = {
    "Who wrote Middlemarch?": ["George Eliot", "Mary Ann Evans"],
    "What is the capital of France?": ["Paris"],
    "When did the war end?": ["1945"],
    "How many bones has an adult?": ["206"],
    "Who painted Guernica?": ["Pablo Picasso"],
    "Which river runs through Cairo?": ["the Nile"],
    "When was the bridge opened?": ["27 May 1937"],
    "Is glass a liquid?": ["No"],
}


def example(question: str, references: list[str], **fields: Any) -> LabelledExample:
    given: dict[str, Any] = {
        "id": question.split()[-1].strip("?"),
        "question": question,
        "references": references,
        "reference_mode": "any",
        "responses": (references[0],),
        "label": "Correct",
    }
    return LabelledExample.model_validate(given | fields)


def examples(**fields: Any) -> list[LabelledExample]:
    return [example(question, references, **fields) for question, references in QUESTIONS.items()]
