"""An independent reader of pairs of responses to questions about pictures of known data.

It derives the label and the faults of a pair again from what a judge may see, without any code of
the generator. The right answer comes from the reference, or from data written in the question; only
where neither is given is it worked out from the data of the picture (``metadata["readings"]``),
which also tell a misreading from faulty logic.
"""

import re
from collections.abc import Iterator, Mapping

from judging.types import LabelledExample
from tests.oracles.charts import answer_set, column_of, final_claims, stated_values
from tests.oracles.report import AuditResult

Readings = Mapping[str, Mapping[str, int]]
"""Values by item, by column."""

_GUESSED = re.compile(
    r"no doubt|must have|will surely|presumably|suspect|in all likelihood", re.IGNORECASE
)
_DIGRESSION = re.compile(
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
    """Derive label and faults of a pair; the label is empty where they contradict the example's."""
    picture: Readings = example.metadata["readings"]
    question, written = _split_off_data(example.question, tuple(picture))
    readings = written or picture
    if readings != picture:
        return AuditResult("", "the data in the question are not the picture's")
    view = column_of(question, readings)
    truth = set(example.references) or answer_set(question, view)
    if truth != answer_set(question, view):
        return AuditResult("", f"{sorted(truth)} is not what the picture gives")
    responses = [_ReadResponse(response, view, truth) for response in example.responses]
    label = _preferred(*responses)
    faults = [response.faults for response in responses]
    reason = f"{faults}, answers {[sorted(response.answers) for response in responses]}"
    if set(example.tags) != {fault for of_response in faults for fault in of_response}:
        return AuditResult("", f"tags {list(example.tags)}, read as {reason}")
    if example.critique is not None:
        mistake = _mistake(example.critique, responses, label, truth)
        if mistake:
            return AuditResult("", f"critique: {mistake}")
    return AuditResult(label, reason)


class _ReadResponse:
    """The answers and faults that a reader finds in one response."""

    def __init__(self, response: str, view: Mapping[str, int], truth: set[str]) -> None:
        sentences = _SENTENCE_END.split(response.strip())
        additions = [s for s in sentences if _DIGRESSION.search(s) or _GUESSED.search(s)]
        core = response.strip()
        for sentence in additions:
            core = core.replace(sentence, "").strip()
        claims, ending = final_claims(core, view)
        self.answers: set[str] = set() if ending else claims
        self.right = self.answers == truth
        self.padded = bool(additions)
        self.faults = [*self._faults_of_answer(core, view), *map(_fault_of_addition, additions)]

    def _faults_of_answer(self, core: str, view: Mapping[str, int]) -> Iterator[str]:
        if not self.answers:
            yield "off-topic or vague"
        elif not self.right and _INVENTED.search(core):
            yield "speculative or fictional"
        elif not self.right and not self._is_bare(core):
            stated = stated_values(core, view)
            misread = any(view.get(name) != value for name, value in stated.items())
            yield "visual misinterpretation" if misread else "wrong physical reasoning"

    def _is_bare(self, core: str) -> bool:
        """Return whether the response is nothing but its answer, so that no cause shows."""
        for answer in self.answers:
            core = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", "", core)
        return not set(re.findall(r"\w+", core.lower())) - _ANSWER_WORDS


def _fault_of_addition(sentence: str) -> str:
    return "speculative or fictional" if _GUESSED.search(sentence) else "distracting additions"


def _preferred(first: _ReadResponse, second: _ReadResponse) -> str:
    if first.right != second.right:
        return "A" if first.right else "B"
    if first.padded != second.padded:
        return "A" if second.padded else "B"
    return "None"


def _split_off_data(question: str, columns: tuple[str, ...]) -> tuple[str, Readings | None]:
    """Split a question into the bare question and the data written in it.

    Args:
        question: Question, perhaps with data.
        columns: Columns of the picture; a single column is not named in the question.
    """
    match = _DATA.search(question)
    if not match:
        return question, None
    columns = tuple(match["columns"].split()) or columns
    readings: dict[str, dict[str, int]] = {column: {} for column in columns}
    for item in match["items"].split(", "):
        words = item.split()
        name, values = words[: -len(columns)], words[-len(columns) :]
        for column, value in zip(columns, values, strict=True):
            readings[column][" ".join(name)] = int(value)
    return question[match.end() :], readings


_REPORTED = re.compile(r"Response ([AB]) (?:says ([^;]+?)|(gives no answer))(?=[;.] )")
_JUDGED_RIGHT = re.compile(r"Response ([AB]) is right")
_BOTH = re.compile(r"Both are (right|wrong)(?: and (alike)|, but Response ([AB]) adds)")


def _mistake(critique: str, responses: list[_ReadResponse], label: str, truth: set[str]) -> str:
    """Describe what a critique gets wrong; empty if nothing."""
    reported = {name: _list(answer) for name, answer, _ in _REPORTED.findall(critique)}
    if reported != {name: read.answers for name, read in zip("AB", responses, strict=True)}:
        return f"reports {reported}"
    source = re.match(r"The (?:reference is|data give|picture gives) (.+?)\. ", critique)
    if source is None or _list(source[1]) != truth:
        return "does not begin with the right answer"
    both, winner = _BOTH.search(critique), _JUDGED_RIGHT.search(critique)
    if both:
        agrees = both[1] == ("right" if responses[0].right else "wrong")
        padded = {"A": "B", "B": "A"}.get(label)
        return "" if agrees and both[3] == padded else "misjudges both"
    return "" if winner and winner[1] == label else "names the wrong winner"


def _list(text: str) -> set[str]:
    return {part for part in re.split(r", | and ", text) if part}
