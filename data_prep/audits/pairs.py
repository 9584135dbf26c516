"""An independent reader of pairs of responses to questions about pictures of known data.

Re-derives the label and the faults of a pair from what a judge may see, without any code of the
generator. The right answer comes from the reference or from the data told in the question; only
where neither is given is it worked out from the data of the picture (``metadata["readings"]``),
which also tell a misreading from faulty logic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from data_prep.audits.charts import answer_set, asked_column, final_claims, stated_values
from data_prep.audits.text import AuditResult
from judging.types import LabelledExample

Readings = Mapping[str, Mapping[str, int]]

_GUESSED = re.compile(
    r"no doubt|must have|will surely|presumably|suspect|in all likelihood", re.IGNORECASE
)
_BESIDE = re.compile(
    r"by the way|incidentally|another note|while we are at it|as an aside|worth saying",
    re.IGNORECASE,
)
_INVENTED = re.compile(r"survey|expert|yearly report|hundred years|newspaper|legend", re.IGNORECASE)
_ANSWER_WORDS = {"the", "final", "answer", "is", "and", "boxed"}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_DATA = re.compile(
    r"(?:holds|shown:|^\() ?(?P<kind>[a-z]+)(?P<columns>(?: [a-z]+)*): (?P<items>[^.()]+)[.)] "
)


def audit_pair(example: LabelledExample) -> AuditResult:
    """Derive label and faults of a pair; the label is empty where they contradict the example's.

    What is read as one line: the label, then the faults of either response.
    """
    shown: Readings = example.metadata["readings"]
    question, told = _told(example.question, tuple(shown))
    readings = told or shown
    if readings != shown:
        return AuditResult("", (), "the data in the question are not the picture's")
    view = asked_column(question, readings)
    truth = set(example.references) or answer_set(question, view)
    if truth != answer_set(question, view):
        return AuditResult("", (), f"{sorted(truth)} is not what the picture gives")
    sides = [_Read(response, view, truth) for response in example.responses]
    label = _preferred(*sides)
    faults = [side.faults for side in sides]
    reason = f"{faults}, answers {[sorted(side.answers) for side in sides]}"
    if set(example.tags) != {fault for own in faults for fault in own}:
        return AuditResult("", (), f"tags {list(example.tags)}, read as {reason}")
    if example.critique is not None and (doubt := _doubt(example.critique, sides, label, truth)):
        return AuditResult("", (), f"critique: {doubt}")
    return AuditResult(label, tuple(sorted(sides[0].answers)), reason)


class _Read:
    """What a reader makes of one response."""

    def __init__(self, response: str, view: Mapping[str, int], truth: set[str]) -> None:
        sentences = _SENTENCE_END.split(response.strip())
        beside = [s for s in sentences if _BESIDE.search(s) or _GUESSED.search(s)]
        core = response.strip()
        for sentence in beside:
            core = core.replace(sentence, "").strip()
        found, ending = final_claims(core, view)
        self.answers: set[str] = set() if ending else found
        self.right = self.answers == truth
        self.padded = bool(beside)
        self.faults = list(self._faults(core, view, beside))

    def _faults(self, core: str, view: Mapping[str, int], beside: list[str]) -> list[str]:
        found = []
        if not self.answers:
            found.append("off-topic or vague")
        elif not self.right and _INVENTED.search(core):
            found.append("speculative or fictional")
        elif not self.right and not self._bare(core):
            stated = stated_values(core, view)
            untrue = any(view.get(name) != value for name, value in stated.items())
            found.append("visual misinterpretation" if untrue else "wrong physical reasoning")
        for sentence in beside:
            is_guess = _GUESSED.search(sentence)
            found.append("speculative or fictional" if is_guess else "distracting additions")
        return found

    def _bare(self, core: str) -> bool:
        """Whether nothing is said but the answer, so that no cause shows."""
        for answer in self.answers:
            core = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", "", core)
        return not set(re.findall(r"\w+", core.lower())) - _ANSWER_WORDS


def _preferred(first: _Read, second: _Read) -> str:
    if first.right != second.right:
        return "A" if first.right else "B"
    if first.padded != second.padded:
        return "A" if second.padded else "B"
    return "None"


def _told(question: str, columns: tuple[str, ...]) -> tuple[str, Readings | None]:
    """The question without the data told in it, and those data; a single column is not named."""
    found = _DATA.search(question)
    if not found:
        return question, None
    columns = tuple(found["columns"].split()) or columns
    readings: dict[str, dict[str, int]] = {column: {} for column in columns}
    for item in found["items"].split(", "):
        words = item.split()
        name, values = words[: -len(columns)], words[-len(columns) :]
        for column, value in zip(columns, values, strict=True):
            readings[column][" ".join(name)] = int(value)
    return question[found.end() :], readings


_SAYS = re.compile(r"Response ([AB]) (?:says ([^;]+?)|(gives no answer))(?=[;.] )")
_JUDGED_RIGHT = re.compile(r"Response ([AB]) is right")
_BOTH = re.compile(r"Both are (right|wrong)(?: and (alike)|, but Response ([AB]) adds)")


def _doubt(critique: str, sides: list[_Read], label: str, truth: set[str]) -> str:
    """What a critique gets wrong; empty if nothing."""
    said = {name: _list(answer) for name, answer, _ in _SAYS.findall(critique)}
    if said != {name: side.answers for name, side in zip("AB", sides, strict=True)}:
        return f"reports {said}"
    source = re.match(r"The (?:reference is|data give|picture gives) (.+?)\. ", critique)
    if source is None or _list(source[1]) != truth:
        return "does not begin with the right answer"
    both, one = _BOTH.search(critique), _JUDGED_RIGHT.search(critique)
    if both:
        agrees = both[1] == ("right" if sides[0].right else "wrong")
        padded = {"A": "B", "B": "A"}.get(label)
        return "" if agrees and both[3] == padded else "misjudges both"
    return "" if one and one[1] == label else "names the wrong winner"


def _list(text: str) -> set[str]:
    return {part for part in re.split(r", | and ", text) if part}
