"""Wordings that keep a rule from deciding: what they leave open is for a judge to read."""

from __future__ import annotations

import re

_NEGATIONS = (
    "not no never neither nor none without cannot cant dont wrong incorrect false untrue mistaken "
    "unlikely hardly barely scarcely fail fails failed doubt doubts doubtful opposite ignore "
    "ignoring refuse avoid exclude excludes excluded excluding eliminate eliminates eliminated "
    "eliminating reject rejects rejected dismiss disagree refute "
    "refutes refuted deny denies denied disprove disproved discard discarded retract retracted"
)
_HEDGES = (
    "may might could maybe perhaps possibly unless if unsure unclear unknown idea clue whether or "
    "either both guess"
)
_APPEARANCES = (
    "seem seems seemed appear appears appeared look looks looked mislead misleading misleads "
    "misled trick tricks trap decoy distractor kidding joke glance careless naive people reader "
    "readers someone others think thinks thought would initially originally supposedly claims says "
    "suggests"
)
_TURNS = (
    "actually however although though but wait sorry oops correction rather instead except swap "
    "swapped reverse reversed tie ties tied equal same"
)
_DOUBT = re.compile(
    rf"\b(?:{'|'.join(f'{_NEGATIONS} {_HEDGES} {_APPEARANCES} {_TURNS}'.split())})\b"
    r"|n['’]t\b|\b(?:rul(?:e|es|ed|ing)\s+out|far\s+from|other\s+than|less\s+of|too\s+\w+)\b"
    r"|\?|~~|不|没",
    re.IGNORECASE,
)

_BOUNDS = "over under above below between most least minimum maximum exceed exceeds than beyond"
_CHANGES = (
    "negative minus loss lost decrease decreased decreases decline declined drop dropped fell fall "
    "down increase increased increases rose rise up gain gained grew growth climbed jumped surged "
    "soared shrank reduced reduction cut discount improvement plus"
)
_COMPARATIVES = (
    "more less fewer higher lower greater larger smaller bigger taller shorter longer heavier "
    "lighter faster slower older younger wider stronger weaker better worse cheaper extra "
    "additional another ahead behind difference surplus beat beats outsold"
)
"""A difference, not the number itself: "20% more"."""
_MULTIPLES = (
    "double twice triple quadruple times third thirds quarter quarters fourth fifth dozen dozens "
    "score couple pair pairs gross lakh crore hundreds thousands per square cubic sq squared cubed "
    "root log each apiece ago bc bce"
)
_OPEN_NUMBER = re.compile(
    rf"\b(?:{'|'.join(f'{_BOUNDS} {_CHANGES} {_COMPARATIVES} {_MULTIPLES}'.split())})\b"
    r"|\band\s+a\b|±|√|\+/-|[<>≤≥多少高低增减]",
    re.IGNORECASE,
)


def has_doubt(text: str) -> bool:
    """Tell whether a text denies, hedges, corrects itself or reports what others see."""
    return _DOUBT.search(text) is not None


def leaves_number_open(text: str) -> bool:
    """Tell whether a text bounds, multiplies or gives a direction to the number in it."""
    return _OPEN_NUMBER.search(text) is not None
