"""Labels, critiques, confidences and scores that follow from what is known of two responses."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from data_prep.synthetic.preference_pairs.responses import PairedResponse
from data_prep.synthetic.sentences import join_list
from data_prep.synthetic.words import words_of
from data_prep.truthfulness_tags import MADE_UP, MISREAD, MISREASONED, OFF_TOPIC, PADDED
from judging.tasks.truthful import TIE, A, B

Evidence = Literal["reference", "description", "picture"]
"""The source that a judge can take the right answer from."""

_ADDITIONS = {PADDED: "adds what nobody asked for", MADE_UP: "adds a guess"}
_FAULTS = {
    MISREAD: "misreads a value",
    MISREASONED: "reasons wrongly",
    OFF_TOPIC: "does not answer",
    MADE_UP: "makes things up",
}
_CONFIDENCE = {"truth": 0.95, "truth, padded": 0.88, "padding": 0.78, "tie": 0.6}
"""Confidence by what decides the pair."""
_PICTURE_DISCOUNT = 0.1
"""Loss of confidence where only a picture shows the right answer."""
RIGHT, RIGHT_PADDED, WRONG, WRONG_PADDED, NO_ANSWER = 9, 7, 3, 2, 1
"""Scores from 0 to 10 of single responses."""


def preference(first: PairedResponse, second: PairedResponse) -> str:
    """Return the label of a pair: truth decides; between equals, the response that adds nothing."""
    a, b = ((response.right, response.addition is None) for response in (first, second))
    return TIE if a == b else A if a > b else B


def pair_critique(
    responses: Sequence[PairedResponse], truth: Sequence[str], evidence: Evidence
) -> str:
    """Write in a few short sentences what decides between two responses."""
    first, second = (
        f"Response {name} "
        + (f"says {join_list(response.answers)}" if response.answers else "gives no answer")
        for name, response in zip((A, B), responses, strict=True)
    )
    source = _source(truth, evidence)
    return f"{source} {first}; {second}. {_conclusion(responses, evidence)}"


def single_critique(response: PairedResponse, truth: Sequence[str], evidence: Evidence) -> str:
    """Write in a short sentence what decides about one response."""
    source = _source(truth, evidence)
    answers = join_list(response.answers)
    subject = f"The response says {answers}" if answers else "The response"
    if response.right:
        addition = _addition(response) if response.addition else "nothing else"
        return f"{source} {subject} and {addition}."
    fault = _fault(response, evidence)
    addition = f" and {_addition(response)}" if response.addition else ""
    return f"{source} {subject}{' and' if answers else ''} {fault}{addition}."


def score_response(response: PairedResponse) -> int:
    """Score a response from 0 to 10: false below 5, true above; an addition costs something."""
    if response.right:
        return RIGHT_PADDED if response.addition else RIGHT
    if response.fault in (OFF_TOPIC, MADE_UP):
        return NO_ANSWER
    return WRONG_PADDED if response.addition else WRONG


def confidence(rng: Random, responses: Sequence[PairedResponse], evidence: Evidence) -> float:
    """Draw how clear the difference is, as a judge would state it without knowing the label."""
    first, second = responses
    if first.right != second.right:
        decided_by = "truth, padded" if first.addition or second.addition else "truth"
    else:
        decided_by = "padding" if preference(first, second) != TIE else "tie"
    discount = _PICTURE_DISCOUNT if evidence == "picture" else 0
    return round(_CONFIDENCE[decided_by] - discount + rng.uniform(-0.04, 0.04), 2)


def _source(truth: Sequence[str], evidence: Evidence) -> str:
    """State the right answer by the evidence for it."""
    sources: dict[str, str] = words_of("preference_pairs")["sources"]
    return sources[evidence].format(truth=join_list(truth))


def _conclusion(responses: Sequence[PairedResponse], evidence: Evidence) -> str:
    first, second = responses
    if first.right != second.right:
        won, lost = (0, 1) if first.right else (1, 0)
        winner = responses[won]
        padded = f", though it {_addition(winner)}" if winner.addition else ""
        right = f"Response {(A, B)[won]} is right{padded}"
        return f"{right}; Response {(A, B)[lost]} {_fault(responses[lost], evidence)}."
    both = "Both are right" if first.right else "Both are wrong"
    if preference(first, second) == TIE:
        return f"{both} and alike."
    lost = 0 if first.addition else 1
    return f"{both}, but Response {(A, B)[lost]} {_addition(responses[lost])}."


def _addition(response: PairedResponse) -> str:
    assert response.addition
    return _ADDITIONS[response.addition]


def _fault(response: PairedResponse, evidence: Evidence) -> str:
    """Say why a response is wrong, as far as a judge can see it.

    A reference alone does not show how a wrong answer came about.
    """
    fault = response.fault
    if fault is None or (evidence == "reference" and fault in (MISREAD, MISREASONED)):
        return "is wrong"
    return _FAULTS[fault]
