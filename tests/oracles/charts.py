"""An independent reader of examples about pictures of known data.

It derives score and error type again from the question, the references, the response and the data
of the picture (``metadata["readings"]``), without any code of the generator. It answers the
question itself, finds the values that the response states and its conclusion, and compares both
with the data. It checks constructed data; it is no judge of real responses.
"""

import re
from collections.abc import Mapping

from judging.types import LabelledExample
from tests.oracles.report import AuditResult

View = Mapping[str, int]
"""Values by item in the column that a question is about."""


def audit_chart(example: LabelledExample) -> AuditResult:
    """Derive the label of one example; it is empty where no single label follows."""
    view = column_of(example.question, example.metadata["readings"])
    if answer_set(example.question, view) != set(example.references):
        return AuditResult("", f"{list(example.references)} is not what the picture gives")
    claims, ending = final_claims(example.response, view)
    score = _score(claims, set(example.references))
    if ending:
        return AuditResult(f"{score}; {ending}", "reaches no full answer")
    if score == "Correct":
        return AuditResult("Correct", "equals the references")
    stated = stated_values(example.response, view)
    if not stated:
        return AuditResult(f"{score}; Other", "nothing shows the cause")
    untrue = [f"{name} {value}" for name, value in stated.items() if view.get(name) != value]
    whole = _WHOLE.search(example.response) is not None
    lacking = [name for name in view if whole and name not in stated]
    if not untrue and not lacking:
        return AuditResult(f"{score}; Reasoning Error", "all readings stated are right")
    believed = stated if whole else {**view, **stated}
    if answer_set(example.question, believed) != claims:
        return AuditResult("", f"{untrue or lacking} misread, and the logic fails too")
    return AuditResult(f"{score}; Image Misunderstanding", f"untrue {untrue}, lacking {lacking}")


def _score(claims: set[str], references: set[str]) -> str:
    if claims == references:
        return "Correct"
    return "Partial" if claims and not claims - references else "Wrong"


# Answer to the question.


def column_of(question: str, readings: Mapping[str, View]) -> View:
    """Return the values of the column that a question names, or of the only column."""
    if len(readings) == 1:
        return next(iter(readings.values()))
    return next(view for column, view in readings.items() if re.search(rf"\b{column}\b", question))


_CONDITION = re.compile(r"\b(?:(above|below) (\d+)|(even|odd))\b")
_RANK = re.compile(r"\b(second )?(largest|smallest)\b")


def answer_set(question: str, view: View) -> set[str]:
    """Answer a question; the answer set is empty where values leave it open or lack an item."""
    named = [name for name in view if _mentions(question, name)]
    named.sort(key=lambda name: _position(question, name))
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
    rank = _RANK.search(question)
    if not rank:
        return set()
    if re.search(r"\btwo\b", question):
        ends = ranked[-2:] if rank[2] == "largest" else ranked[:2]
        summed = re.search("sum|Add|together", question)
        return {str(sum(view[name] for name in ends))} if summed else set(ends)
    index = (1 if rank[1] else 0) if rank[2] == "smallest" else (-2 if rank[1] else -1)
    asks_for_name = re.search(r"^(?:Which|Name|For which)\b", question)
    return {ranked[index] if asks_for_name else str(values[index])}


def _meets(value: int, condition: re.Match[str]) -> bool:
    if condition[3]:
        return value % 2 == (condition[3] == "odd")
    limit = int(condition[2])
    return value > limit if condition[1] == "above" else value < limit


_CALLED = r"(?:(?:[Pp]eak|[Bb]in|[Pp]oint|[Ss]ide|[Aa]ngle) )"


def _mentions(text: str, name: str) -> re.Match[str] | None:
    """Find an item's name; one that could be an article or a number must follow its noun."""
    needs_noun = name.islower() and len(name) == 1 or name[0].isdigit()
    prefix = f"{_CALLED}" if needs_noun else f"{_CALLED}?"
    return re.search(rf"(?<![\w-]){prefix}{re.escape(name)}(?![\w-])", text)


def _position(text: str, name: str) -> int:
    mention = _mentions(text, name)
    return mention.start() if mention else -1


# Claims and readings of the response.

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
    """Return the final answers, and the error type of a response that stops short of them."""
    text = response.strip()
    part = _PART.search(text)
    partial = _tokens(next(filter(None, part.groups()))) if part else set()
    if _DECLINED.search(text):
        return partial, "Unanswerable"
    bare = _tokens(_MARKUP.sub(" ", text))
    if all(token in view or token[0].isdigit() or token.startswith("it ") for token in bare):
        return bare, ""
    final = _FINAL.search(text.rstrip("*"))
    if final and not part:
        return _tokens(final[1]), ""
    return partial, "Overthinking"


def _tokens(text: str) -> set[str]:
    return set(_TOKEN.findall(text)) - {"and"}


def stated_values(response: str, view: View) -> dict[str, int]:
    """Return the values that the response ascribes to items, items that it invents included."""
    known = {name.casefold(): name for name in view}
    stated = {}
    for mention, value in _READING.findall(response):
        name = re.sub(rf"^{_CALLED}", "", mention, flags=re.I)
        if name.casefold() not in _NO_ITEMS:
            stated[known.get(name.casefold(), name)] = int(value)
    return stated
