"""Critiques, confidences and scores that follow from what is known of two responses."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from data_prep.synthetic.preference_pairs.responses import Side, joined
from data_prep.synthetic.preference_pairs.wordings import (
    MADE_UP,
    MISREAD,
    MISREASONED,
    OFF_TOPIC,
    PADDED,
    SOURCES,
)
from judging.tasks.truthful import TIE, A, B

Evidence = Literal["reference", "description", "picture"]
"""What shows the right answer."""

_ADDS = {PADDED: "adds what nobody asked for", MADE_UP: "adds a guess"}
_FAULTS = {
    MISREAD: "misreads a value",
    MISREASONED: "reasons wrongly",
    OFF_TOPIC: "does not answer",
    MADE_UP: "makes things up",
}
_CONFIDENCE = {"truth": 0.95, "truth, padded": 0.88, "padding": 0.78, "tie": 0.6}
_UNSEEN = 0.1
"""How much less sure of what only a picture shows."""
RIGHT, RIGHT_PADDED, WRONG, WRONG_PADDED, NO_ANSWER = 9, 7, 3, 2, 1


def preference(first: Side, second: Side) -> str:
    """The label: truth decides; between equals, who adds less."""
    a, b = ((side.right, side.addition is None) for side in (first, second))
    return TIE if a == b else A if a > b else B


def pair_critique(sides: Sequence[Side], truth: Sequence[str], evidence: Evidence) -> str:
    """What decides between two responses, in a few short sentences."""
    told = [
        f"Response {name} {f'says {joined(side.answers)}' if side.answers else 'gives no answer'}"
        for name, side in zip((A, B), sides, strict=True)
    ]
    source = SOURCES[evidence].format(truth=joined(truth))
    return f"{source} {told[0]}; {told[1]}. {_conclusion(sides, evidence)}"


def single_critique(side: Side, truth: Sequence[str], evidence: Evidence) -> str:
    """What decides about one response."""
    source = SOURCES[evidence].format(truth=joined(truth))
    said = f"The response says {joined(side.answers)}" if side.answers else "The response"
    if side.right:
        return f"{source} {said} and {_adds(side) if side.addition else 'nothing else'}."
    fault = _fault(side, evidence)
    and_more = f" and {_adds(side)}" if side.addition else ""
    return f"{source} {said}{' and' if side.answers else ''} {fault}{and_more}."


def score_of_side(side: Side) -> int:
    """0 to 10: false below 5, true above; what stands beside the answer costs something."""
    if side.right:
        return RIGHT_PADDED if side.addition else RIGHT
    if side.fault in (OFF_TOPIC, MADE_UP):
        return NO_ANSWER
    return WRONG_PADDED if side.addition else WRONG


def confidence(rng: Random, sides: Sequence[Side], evidence: Evidence) -> float:
    """How clear the difference is, as one would state it without knowing the label."""
    first, second = sides
    if first.right != second.right:
        kind = "truth, padded" if first.addition or second.addition else "truth"
    else:
        kind = "padding" if preference(first, second) != TIE else "tie"
    sure = _CONFIDENCE[kind] - (_UNSEEN if evidence == "picture" else 0) + rng.uniform(-0.04, 0.04)
    return round(sure, 2)


def _conclusion(sides: Sequence[Side], evidence: Evidence) -> str:
    first, second = sides
    if first.right != second.right:
        won, lost = (0, 1) if first.right else (1, 0)
        padded = f", though it {_adds(sides[won])}" if sides[won].addition else ""
        right = f"Response {(A, B)[won]} is right{padded}"
        return f"{right}; Response {(A, B)[lost]} {_fault(sides[lost], evidence)}."
    both = "Both are right" if first.right else "Both are wrong"
    if preference(first, second) == TIE:
        return f"{both} and alike."
    lost = 0 if first.addition else 1
    return f"{both}, but Response {(A, B)[lost]} {_adds(sides[lost])}."


def _adds(side: Side) -> str:
    assert side.addition
    return _ADDS[side.addition]


def _fault(side: Side, evidence: Evidence) -> str:
    """Why it is wrong, as far as the judge can see: a reference alone does not show how."""
    if side.fault is None or (evidence == "reference" and side.fault in (MISREAD, MISREASONED)):
        return "is wrong"
    return _FAULTS[side.fault]
