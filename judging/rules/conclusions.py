"""Rules that conclude on SimpleVQA's answers without a model: ours, the paper has none.

They see whether the reference occurs in the answer, and know phrases of people who do not know.
They do not read denials, other names or rounded numbers.
"""

from __future__ import annotations

import re

from judging.rules.whole_words import normalise
from judging.types import JudgeRequest

_NO_ATTEMPT = re.compile(
    r"\b(?:do not|don['’]t|cannot|can['’]t|unable|not sure|no idea|unclear|unknown|sorry"
    r"|more (?:context|information))\b|不知道|无法|不确定|不清楚|抱歉|看不出",
    re.IGNORECASE,
)


def is_right_by_rule(request: JudgeRequest) -> bool | None:
    """Return whether a reference occurs in the response; ``None`` if its words attempt no answer.

    A reference without any text does not count: it would occur in every response.
    """
    response = normalise(request.response)
    references = [reference for reference in request.references if reference.strip()]
    if any(normalise(reference) in response for reference in references):
        return True
    return None if _NO_ATTEMPT.search(request.response) else False
