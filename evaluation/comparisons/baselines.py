"""Judges that need no model, to compare trained judges with.

Each rule takes a request and returns ``Correct``, ``Partial`` or ``Wrong``. With ``reference_mode``
``any`` one matching reference is enough. With ``all`` the references are the elements of the answer
set A, and the response R is split into its own elements: R = A is Correct, a non-empty proper
subset Partial, and anything outside A, or nothing, Wrong.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from evaluation.outcomes import full_label
from judging.rules.whole_words import normalise
from judging.types import JudgeRequest, LabelledExample, Verdict

Label = Literal["Correct", "Partial", "Wrong"]
Rule = Callable[[JudgeRequest], Label]

RELATIVE_TOLERANCE = 0.05
TOKEN_F1_THRESHOLD = 0.5
"""Half of the tokens shared; a convention, not fitted to any data."""

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
_BETWEEN_ELEMENTS = re.compile(r"[;\n，；、]|,(?!\d{3}(?!\d))|\band\b", re.IGNORECASE)


def exact_match(request: JudgeRequest) -> Label:
    """Compare elements for equality, normalised."""
    return _compare_elements(request, _equal)


def relaxed_accuracy(request: JudgeRequest) -> Label:
    """Compare numbers within 5 % of the reference, and other text for equality, normalised.

    This is ChartQA's measure (Masry et al. 2022): ``5%`` reads as 0.05. Thousands separators are
    accepted, and only zero equals a reference of zero.
    """
    return _compare_elements(request, _close)


def token_f1(request: JudgeRequest) -> Label:
    """Compare elements by the F1 of their tokens (SQuAD), which must be at least 0.5.

    White space separates tokens, so that a text in a script without it is a single token.
    """
    return _compare_elements(request, _shares_tokens)


def containment(request: JudgeRequest) -> Label:
    """Look for the references in the response, both normalised.

    In mode ``any`` a single one is enough. In mode ``all``, all are Correct, some Partial and none
    Wrong. The rest of the response cannot be told apart from reasoning and is ignored.
    """
    response = normalise(request.response)
    references = [normalise(reference) for reference in request.references if reference.strip()]
    occurs = [reference in response for reference in references]
    if not any(occurs):
        return "Wrong"
    return "Correct" if request.reference_mode == "any" or all(occurs) else "Partial"


RULES: Mapping[str, Rule] = {
    "exact_match": exact_match,
    "relaxed_accuracy": relaxed_accuracy,
    "token_f1": token_f1,
    "containment": containment,
}


def rule_verdicts(rule: Rule, examples: Sequence[LabelledExample]) -> list[Verdict]:
    """Judge examples by a rule, which scores all of them and gives no posteriors."""
    return [
        Verdict(id=example.id, status="scored", label=rule(example), judge="rule")
        for example in examples
    ]


def majority_verdicts(examples: Sequence[LabelledExample]) -> list[Verdict]:
    """Give every example the most frequent human label, which no other constant beats."""
    label = Counter(map(full_label, examples)).most_common(1)[0][0]
    return [
        Verdict(id=example.id, status="scored", label=label, judge="majority")
        for example in examples
    ]


def parse_number(text: str) -> float | None:
    """Read a whole text as one number, a percentage as a fraction; else return ``None``."""
    text = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").strip().casefold()
    text = _THOUSANDS.sub("", text)
    is_percentage = text.endswith("%")
    text = text.removesuffix("%").strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text) / (100 if is_percentage else 1)
    return value if math.isfinite(value) else None


def shared_token_f1(text: str, reference: str) -> float:
    """Return the harmonic mean of token precision and recall.

    It is 1 for the same bag of tokens, or two empty texts, and 0 for no shared token.
    """
    tokens, expected = normalise(text).split(), normalise(reference).split()
    if not tokens or not expected:
        return float(tokens == expected)
    shared = (Counter(tokens) & Counter(expected)).total()
    return 2 * shared / (len(tokens) + len(expected))


def _compare_elements(request: JudgeRequest, same: Callable[[str, str], bool]) -> Label:
    """Compare the elements of the response with the references, as the module describes."""
    response = request.response.strip()
    references = [reference for reference in request.references if reference.strip()]
    if not response or not references:
        return "Wrong"
    if request.reference_mode == "any" or len(references) == 1:
        return "Correct" if any(same(response, reference) for reference in references) else "Wrong"
    elements = [element for element in _BETWEEN_ELEMENTS.split(response) if element.strip()]
    if any(not any(same(element, reference) for reference in references) for element in elements):
        return "Wrong"
    given = [any(same(element, reference) for element in elements) for reference in references]
    if not any(given):
        return "Wrong"
    return "Correct" if all(given) else "Partial"


def _equal(text: str, reference: str) -> bool:
    return normalise(text) == normalise(reference)


def _close(text: str, reference: str) -> bool:
    value, expected = parse_number(text), parse_number(reference)
    if value is None or expected is None:
        return _equal(text, reference)
    return abs(value - expected) <= RELATIVE_TOLERANCE * abs(expected)


def _shares_tokens(text: str, reference: str) -> bool:
    return shared_token_f1(text, reference) >= TOKEN_F1_THRESHOLD
