"""inspect_ai's ``model_graded_qa`` and ``model_graded_fact``, and a plain form for one's own."""

from serve.chat.contract import Contract, Layout

QA = (
    "[BEGIN DATA]\n***\n[Task]: {question}\n***\n[Submission]: {response}\n***\n"
    "[Criterion]: {reference}\n***\n[END DATA]"
)
FACT = (
    "[BEGIN DATA]\n************\n[Question]: {question}\n************\n[Expert]: {reference}\n"
    "************\n[Submission]: {response}\n************\n[END DATA]"
)
PLAIN = "\nQuestion: {question}\nReference: {reference}\nResponse: {response}"
PARTIAL_CREDIT = "one of cpi"

CONTRACT = Contract(
    name="qa",
    harness="inspect_ai",
    task="hieval-qs",
    layouts=tuple(Layout(template, absent=(PARTIAL_CREDIT,)) for template in (QA, FACT, PLAIN)),
    words={"Correct": "C", "Wrong": "I"},
    reply="GRADE: {label}",
    json_key="grade",
)
