"""Items of HiEval's kind with responses, made by us: what ``custos bench example`` writes."""

from benchmarks.framework.files import Row

EXAMPLE: tuple[Row, ...] = (
    {
        "id": "1",
        "task": "hieval-qs",
        "question": "Who wrote Middlemarch?",
        "references": ["George Eliot", "Mary Ann Evans"],
        "reference_mode": "any",
        "response": "Mary Ann Evans wrote it.",
        "label": "Correct",
    },
    {
        "id": "2",
        "task": "hieval-qs",
        "question": "How many legs does a spider have?",
        "references": ["eight"],
        "reference_mode": "any",
        "response": "It has six legs.",
        "label": "Wrong",
    },
)
