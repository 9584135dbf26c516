"""An independent reader of examples about pictures of known data.

Re-derives score and error type from the question, the references, the response and the data of the
picture (``metadata["readings"]``), without any code of the generator, so that a mistake there and a
mistake here are unlikely to coincide: it answers the question itself, reads off the response which
values it states and what it concludes, and compares both with the data. It is a check on
constructed data, not a judge of real responses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from data_prep.audits.text import AuditResult
from judging.types import LabelledExample

View = Mapping[str, int]
"""Values by item, of the column that the question is about."""


def audit_chart(example: LabelledExample) -> AuditResult:
    """Derive the label of one example; the label is empty where no single one follows."""
    view = asked_column(example.question, example.metadata["readings"])
    if answer_set(example.question, view) != set(example.references):
        return AuditResult("", (), f"{list(example.references)} is not what the picture gives")
    claims, ending = final_claims(example.response, view)
    score = _score(claims, set(example.references))
    told = tuple(sorted(claims))
    if ending:
        return AuditResult(f"{score}; {ending}", told, "brought to no answer")
    if score == "Correct":
        return AuditResult("Correct", told, "equals the references")
    stated = stated_values(example.response, view)
    if not stated:
        return AuditResult(f"{score}; Other", told, "nothing shows the cause")
    untrue = [f"{name} {value}" for name, value in stated.items() if view.get(name) != value]
    whole = _WHOLE.search(example.response) is not None
    lacking = [name for name in view if whole and name not in stated]
    if not untrue and not lacking:
        return AuditResult(f"{score}; Reasoning Error", told, "all readings stated are right")
    believed = stated if whole else {**view, **stated}
    if answer_set(example.question, believed) != claims:
        return AuditResult("", told, f"{untrue or lacking} misread, and the logic fails too")
    reason = f"untrue {untrue}, lacking {lacking}"
    return AuditResult(f"{score}; Image Misunderstanding", told, reason)


def _score(claims: set[str], references: set[str]) -> str:
    if claims == references:
        return "Correct"
    return "Partial" if claims and not claims - references else "Wrong"


# Answering the question.


def asked_column(question: str, readings: Mapping[str, View]) -> View:
    """Values of the column that a question is about; the only column if there is one."""
    if len(readings) == 1:
        return next(iter(readings.values()))
    return next(view for column, view in readings.items() if re.search(rf"\b{column}\b", question))


_CONDITION = re.compile(r"\b(?:(above|below) (\d+)|(even|odd))\b")
_RANK = re.compile(r"\b(second )?(largest|smallest)\b")


def answer_set(question: str, view: View) -> set[str]:
    """The answer set of a question; empty where values leave it open or lack an item."""
    named = [name for name in view if _mentions(question, name)]
    named.sort(key=lambda name: _place(question, name))
    condition = _CONDITION.search(question)
    if condition:
        hits = {name for name, value in view.items() if _meets(value, condition)}
        return {str(len(hits))} if re.search(r"\bhow many\b|^Count", question, re.I) else hits
    if re.search("exterior|outer", question):
        return {str(180 - view[named[0]])} if named else set()
    if re.search("perimeter|altogether|all .*add up to|all .*total|total of all|up all", question):
        return {str(sum(view.values()))}
    if re.search("one point to the next|steepest|neighbouring", question):
        values = list(view.values())
        return {str(max(b - a for a, b in zip(values, values[1:], strict=False)))}
    pair = len(named) == 2
    if re.search(r"\brise\b.*\bfall\b", question):
        up = pair and view[named[1]] > view[named[0]]
        return {"it rises" if up else "it falls"} if pair else set()
    if named or re.search("differ|apart are the \\w+ of|sum of the \\w+ of|belongs to", question):
        return _about_named(question, named, view)
    return _about_ranks(question, view)


def _about_named(question: str, named: list[str], view: View) -> set[str]:
    if len(named) == 2:
        first, second = (view[name] for name in named)
        apart = re.search("differ|apart", question)
        return {str(abs(first - second) if apart else first + second)}
    if len(named) == 1:
        return {str(view[named[0]])}
    return _about_ranks(question, view)


def _about_ranks(question: str, view: View) -> set[str]:
    ranked = sorted(view, key=lambda name: view[name])
    if len(ranked) < 3 or len(set(view.values())) < len(view):
        return set()
    values = [view[name] for name in ranked]
    if re.search("runner-up|second largest\\?", question) and re.search(
        "ahead|exceed|margin", question
    ):
        return {str(values[-1] - values[-2])}
    if re.search("largest .*smallest", question):
        return {str(values[-1] - values[0])}
    found = _RANK.search(question)
    if not found:
        return set()
    if re.search(r"\btwo\b", question):
        ends = ranked[-2:] if found[2] == "largest" else ranked[:2]
        summed = re.search("sum|Add|together", question)
        return {str(sum(view[name] for name in ends))} if summed else set(ends)
    place = (1 if found[1] else 0) if found[2] == "smallest" else (-2 if found[1] else -1)
    wants_name = re.search(r"^(?:Which|Name|For which)\b", question)
    return {ranked[place] if wants_name else str(values[place])}


def _meets(value: int, condition: re.Match[str]) -> bool:
    if condition[3]:
        return value % 2 == (condition[3] == "odd")
    limit = int(condition[2])
    return value > limit if condition[1] == "above" else value < limit


_CALLED = r"(?:(?:[Pp]eak|[Bb]in|[Pp]oint|[Ss]ide|[Aa]ngle) )"


def _mentions(text: str, name: str) -> re.Match[str] | None:
    """Find an item; names that could be an article or a number need their noun."""
    needs_noun = name.islower() and len(name) == 1 or name[0].isdigit()
    prefix = f"{_CALLED}" if needs_noun else f"{_CALLED}?"
    return re.search(rf"(?<![\w-]){prefix}{re.escape(name)}(?![\w-])", text)


def _place(text: str, name: str) -> int:
    found = _mentions(text, name)
    return found.start() if found else -1


# Reading the response.

_WHOLE = re.compile(
    r"picture shows|everything|nothing else|^All |is drawn:|whole picture|^In full", re.I
)
_READING = re.compile(
    rf"(?<![\w-])({_CALLED}(?:\d+-\d+|\w+)|[A-Za-z]+ (?:circles|squares|triangles|stars)|[A-Za-z]+)"
    r"(?: is | at | with | = |: | \()(\d+)(?![\d-])(?! (?:is|[-+x]) )"
)
_NO_ITEMS = frozenset("answer ans step makes so and calc".split())
_DECLINED = re.compile(
    r"cannot|impossible|not enough|no (?:answer|conclusion|information)|is incomplete|are missing"
    r"|contradict",
    re.I,
)
_PART = re.compile(
    r"^(.+?) can be named|Part of the answer is (.+?)\. |^Only (.+?) can be confirmed"
    r"|^So far I have (.+?)\. |^(.+?) for certain\.|^One part is (.+?)\. "
)
_FINAL = re.compile(
    r"(?:answer is|answer:|therefore|that leaves|\\boxed\{|\*\*)\s*"
    r"((?:(?!answer is|answer:|therefore|that leaves).)*)$",
    re.I | re.S,
)
_MARKUP = re.compile(r"</?(?:td|tr|br)>?|\bans\b")
_TOKEN = re.compile(
    r"it (?:rises|falls)|[A-Za-z]+ (?:circles|squares|triangles|stars)|\d+-\d+|\d+|[A-Za-z]+"
)


def final_claims(response: str, view: View) -> tuple[set[str], str]:
    """What is answered in the end, and the error type of a response that stops short of it."""
    text = response.strip()
    part = _PART.search(text)
    some = _tokens(next(filter(None, part.groups()))) if part else set()
    if _DECLINED.search(text):
        return some, "Unanswerable"
    bare = _tokens(_MARKUP.sub(" ", text))
    if all(token in view or token[0].isdigit() or token.startswith("it ") for token in bare):
        return bare, ""
    final = _FINAL.search(text.rstrip("*"))
    if final and not part:
        return _tokens(final[1]), ""
    return some, "Overthinking"


def _tokens(text: str) -> set[str]:
    return set(_TOKEN.findall(text)) - {"and"}


def stated_values(response: str, view: View) -> dict[str, int]:
    """Values the response ascribes to items, those it invents included."""
    known = {name.casefold(): name for name in view}
    stated = {}
    for mention, value in _READING.findall(response):
        name = re.sub(rf"^{_CALLED}", "", mention, flags=re.I)
        if name.casefold() not in _NO_ITEMS:
            stated[known.get(name.casefold(), name)] = int(value)
    return stated
