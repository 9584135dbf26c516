"""inspect_ai's ``model_graded_qa`` and ``model_graded_fact``, and a plain form for anybody.

With ``partial_credit=True`` the reference is a set of elements.
"""

from serve.chat.contract import Contract, PromptLayout, chat_contract

QA = (
    "[BEGIN DATA]\n***\n[Task]: {question}\n***\n[Submission]: {response}\n***\n"
    "[Criterion]: {reference}\n***\n[END DATA]"
)
FACT = (
    "[BEGIN DATA]\n************\n[Question]: {question}\n************\n[Expert]: {reference}\n"
    "************\n[Submission]: {response}\n************\n[END DATA]"
)
PLAIN = "\nQuestion: {question}\nReference: {reference}\nResponse: {response}"
PARTIAL_CREDIT = ("one of cpi",)


@chat_contract
def qa() -> Contract:
    """Define inspect_ai's contract."""
    return Contract(
        name="qa",
        harness="inspect_ai",
        task="hieval-qs",
        layouts=tuple(PromptLayout(form, absent=PARTIAL_CREDIT) for form in (QA, FACT, PLAIN)),
        words={"Correct": "C", "Wrong": "I"},
        reply="GRADE: {label}",
    )


@chat_contract
def qa_partial() -> Contract:
    """Define inspect_ai's contract for partial credit."""
    return Contract(
        name="qa-partial",
        harness="inspect_ai, partial credit",
        task="hieval-qs",
        layouts=tuple(
            PromptLayout(form, cues=PARTIAL_CREDIT, reference_mode="all") for form in (QA, FACT)
        ),
        words={"Correct": "C", "Partial": "P", "Wrong": "I"},
        reply="GRADE: {label}",
    )
