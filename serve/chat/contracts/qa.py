"""inspect_ai's ``model_graded_qa`` and ``model_graded_fact``, and a plain form for one's own."""

from dataclasses import replace

from serve.chat.contract import Contract, Layout

QA = Layout(
    "[BEGIN DATA]\n***\n[Task]: {question}\n***\n[Submission]: {response}\n***\n"
    "[Criterion]: {reference}\n***\n[END DATA]",
    absent=("one of cpi",),
)
FACT = replace(
    QA,
    template=(
        "[BEGIN DATA]\n************\n[Question]: {question}\n************\n[Expert]: {reference}\n"
        "************\n[Submission]: {response}\n************\n[END DATA]"
    ),
)
PLAIN = Layout("\nQuestion: {question}\nReference: {reference}\nResponse: {response}")
THREE_GRADES = {"Correct": "C", "Partial": "P", "Wrong": "I"}


def with_partial_credit(layout: Layout) -> Layout:
    """The same delimiters where the instructions after them offer a third grade."""
    return replace(
        layout, cues=("one of cpi",), absent=(), reference_mode="all", words=THREE_GRADES
    )


CONTRACT = Contract(
    name="qa",
    harness="inspect_ai",
    task="hieval-qs",
    layouts=(QA, FACT, PLAIN, with_partial_credit(QA), with_partial_credit(FACT)),
    words={"Correct": "C", "Wrong": "I"},
    reply="GRADE: {label}",
    json_key="grade",
)
