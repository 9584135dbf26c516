"""The names A and B of a pair's responses, exchanged in a text about them.

A judge reads a pair in both orders, and in a critique of the swapped order "Response A" is the
request's second response. Only what names a response is exchanged: the article "A", the option in
"the answer is B" and "vitamin B" stay. Exchanging twice gives the text back, because no rule looks
at which of the two letters stands where.
"""

from __future__ import annotations

import re

_NOUN = r"(?:responses?|answers?|repl(?:y|ies)|assistants?|candidates?)"
_OPEN, _CLOSE = r"[\"'“‘(*\[]*", r"[\"'”’)*\]]*"
_LETTER = r"(?<![\w.'’+-])[AB](?![\w+]|-\w)"
_JOINT = r"(?:\s*[,/&]\s*|\s*,?\s+(?:and|or|nor|than|over|versus|vs\.?)\s+)"
_CHAIN = re.compile(
    rf"{_LETTER}(?:{_CLOSE}{_JOINT}(?i:{_NOUN}\s+)?{_OPEN}{_LETTER})*"
    r"|\b(?:[Ff]irst|[Ss]econd)(?=\s+(?:response|reply)\b)"
)
_AFTER_NOUN = re.compile(rf"\b{_NOUN}\s*{_OPEN}$", re.IGNORECASE)
_AFTER_WORD = re.compile(
    r"\b(?:than|to|of|in|by|with|from|for|between|both|either|neither|only|over|against|unlike|"
    r"prefers?|preferred|preferring|favou?rs?|choose|and|or|but|while|whereas|because|since|that|"
    r"so|although|though|if|hence|thus|whether|when|(?:better|winner|verdict|preferred):)"
    rf"\s+{_OPEN}$",
    re.IGNORECASE,
)
_AT_START = re.compile(rf"(?:^|[.;:!?,\n(])\s*{_OPEN}$")
_BEFORE_VERB = re.compile(
    rf"{_CLOSE}(?:['’]s\b|:|\s+(?:is|are|was|were|isn't|aren't|has|have|had|does|do|doesn't|did|"
    r"can|cannot|says?|states?|gives?|names?|answers?|claims?|concludes?|reports?|reads?|counts?|"
    r"adds?|misreads?|misses|makes?|invents?|guesses|gets?|wins?|loses?|fails?|agrees?|"
    r"contradicts?|matches|identifies|mentions?|provides?|describes?|ignores?|resists?|differs?|"
    r"correctly|wrongly|incorrectly|also|instead|alone|both)\b)"
)
_EXCHANGED = {"A": "B", "B": "A", "first": "second", "second": "first"}
_EXCHANGED |= {name.title(): other.title() for name, other in _EXCHANGED.items()}
_NAME = re.compile(rf"{_LETTER}|^(?:[Ff]irst|[Ss]econd)$")


def exchange_names(text: str) -> str:
    """Exchange the names of the two responses in a text that a judge wrote.

    Args:
        text: A critique of a pair, such as "Response A is right; Response B is wrong."
    """
    return _CHAIN.sub(_exchange_chain, text)


def _exchange_chain(chain: re.Match[str]) -> str:
    """Exchange the letters of "A", "A and B" or "A, Response B" if they name responses."""
    if not _names_responses(chain):
        return chain[0]
    return _NAME.sub(lambda name: _EXCHANGED[name[0]], chain[0])


def _names_responses(chain: re.Match[str]) -> bool:
    if chain[0] not in ("A", "B") and chain[0].isalpha():  # "first", before "response"
        return True
    before = chain.string[: chain.start()]
    if _AFTER_NOUN.search(before) or _AFTER_WORD.search(before):
        return True
    is_subject = _BEFORE_VERB.match(chain.string, chain.end())
    return bool(_AT_START.search(before) and is_subject)
