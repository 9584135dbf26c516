"""Rules that conclude on SimpleVQA's answers without a model: ours, the paper has none.

They see whether the reference occurs in the answer, as whole words and whole numbers, and know
phrases of people who do not know. They do not read denials, other names or rounded numbers.
"""

from __future__ import annotations

import re

from judging.rules.whole_words import holds, normalise
from judging.types import JudgeRequest

_NO_ATTEMPT = re.compile(
    r"\b(?:do not|don['’]t|cannot|can['’]t|unable|not (?:sure|certain|possible)|unclear|unknown"
    r"|sorry|no (?:idea|clue|answer|information|way (?:of|to))|more (?:context|information))\b"
    r"|不(?:知道|确定|清楚)|无法|抱歉|看不出",
    re.IGNORECASE,
)


def is_right_by_rule(request: JudgeRequest) -> bool | None:
    """Return whether a reference occurs in the response; ``None`` if its words attempt no answer.

    A reference without any text does not count, nor one within a phrase of not knowing: ``No`` in
    ``No idea``.
    """
    response = request.response
    claimed = _NO_ATTEMPT.sub(" | ", response)
    for reference in request.references:
        text = response if _NO_ATTEMPT.search(reference) else claimed
        if holds(text, reference) or normalise(reference) == normalise(response) != "":
            return True
    return None if _NO_ATTEMPT.search(response) else False
