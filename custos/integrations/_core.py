"""Grade answers for the tools of others: what the module of every tool shares.

The label alone decides whether an answer passes. A judge that gives no label raises, so that no
tool can read a failure as a verdict.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import threading
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from anyio.to_thread import run_sync

from clients.judge_client import JudgeClient
from judging.errors import CustosError
from judging.labels import worth_by_place
from judging.tasks import TASKS, get_task
from judging.types import AnyJudge, JudgeRequest, Verdict, label_of, parse_record, score_of

_TEXT_PARTS = ("text", "input_text", "output_text")
_ONE_AT_A_TIME = threading.Lock()
"""Held by calls of a judge in this process, as tools ask from many threads."""

log = logging.getLogger("custos")


class NoLabel(CustosError):
    """A request on which the judge decided nothing."""


@dataclass(frozen=True)
class Grade:
    """A judge's answer on one response, in the terms of evaluation tools."""

    label: str
    score: float
    """Worth of the label by its place in the task: 1 for the best, such as ``Correct``, 0 for the
    worst, 0.5 for the middle one of three."""
    expected: float
    """Mean of ``score`` under the judge's probabilities of the labels."""
    verdict: Verdict

    @property
    def passed(self) -> bool:
        """Tell whether the whole answer is right."""
        return self.score == 1.0

    @property
    def reason(self) -> str:
        """Say the label with its error type, how sure the judge is, its remark and critique."""
        verdict = self.verdict
        sure = "" if verdict.confidence is None else f" (confidence {verdict.confidence:.2f})"
        judge = f", by {verdict.judge_name}" if verdict.judge_name else ""
        review = "a person should decide" if verdict.needs_review else None
        label = label_of(self.label, verdict.error_type)  # whose confidence it is
        parts = (f"{label}{sure}{judge}", verdict.message, review, verdict.critique)
        return ". ".join(filter(None, parts))

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what a tool may keep beside the score."""
        names = ("label", "error_type", "confidence", "probabilities", "needs_review")
        return {name: getattr(self.verdict, name) for name in (*names, "judge_name", "judge")}


class Grader:
    """A judge, and the fields that are the same in all its requests.

    Args:
        judge: A :class:`~judging.judge.Judge`, a :class:`~clients.judge_client.JudgeClient`, the
            address of a service, or the name or run folder of a judge to load in this process.
        fields: Fields of :class:`~judging.types.JudgeRequest`, such as ``task``, ``variant`` or
            ``reference_mode``. Without a mode, one of several references is enough.
    """

    def __init__(self, judge: AnyJudge | str, **fields: Any) -> None:
        self.judge = _loaded(judge) if isinstance(judge, str) else judge
        self.fields = fields

    def request(self, question: Any, reference: Any, response: Any, **fields: Any) -> JudgeRequest:
        """Make the request on one response, from texts, messages or JSON values.

        Raises ``FieldError`` if a field is missing or wrong.
        """
        references = references_in(reference)
        row = {
            "reference_mode": "any" if len(references) > 1 else "all",
            **self.fields,
            **fields,
            "question": text_in(question),
            "references": references,
            "response": text_in(response),
        }
        return parse_record(JudgeRequest, row, "answer")

    def grade(self, question: Any, reference: Any, response: Any, **fields: Any) -> Grade:
        """Grade one response.

        Raises ``FieldError`` if a field is missing or wrong, ``NoLabel`` if the judge decides
        nothing, and ``CustosError`` if there is no judge.
        """
        [grade] = self._graded([self.request(question, reference, response, **fields)])
        if isinstance(grade, NoLabel):
            raise grade
        return grade

    async def agrade(self, question: Any, reference: Any, response: Any, **fields: Any) -> Grade:
        """Grade one response in another thread; errors are those of :meth:`grade`."""
        return await run_sync(
            functools.partial(self.grade, question, reference, response, **fields)
        )

    def grades(self, requests: Iterable[JudgeRequest]) -> list[Grade | None]:
        """Grade requests together; ``None`` and a warning where the judge decides nothing.

        Raises ``NoLabel`` if it decides nothing on all of them; ``CustosError`` without a judge.
        """
        graded = self._graded(requests)
        failures = [each for each in graded if isinstance(each, NoLabel)]
        if failures and len(failures) == len(graded):
            raise failures[0]
        for failure in failures:
            log.warning("no verdict: %s", failure)
        return [None if isinstance(each, NoLabel) else each for each in graded]

    def _graded(self, requests: Iterable[JudgeRequest]) -> list[Grade | NoLabel]:
        requests = list(requests)
        has_own_threads = isinstance(self.judge, JudgeClient)
        with nullcontext() if has_own_threads else _ONE_AT_A_TIME:
            verdicts = list(self.judge.grade(requests))
        return [_grade(*pair) for pair in zip(requests, verdicts, strict=True)]


def _grade(request: JudgeRequest, verdict: Verdict) -> Grade | NoLabel:
    if verdict.label is None:
        return NoLabel(f"{verdict.status}: {verdict.message or 'no label'}")
    # The verdicts of a service's own task have its labels in order.
    worth = _worth(request.task)
    if worth is None:
        worth = worth_by_place(map(score_of, verdict.probabilities))
    expected = sum(
        chance * worth.get(score_of(label), 0.0) for label, chance in verdict.probabilities.items()
    )
    score = worth.get(verdict.label, 0.0)
    return Grade(verdict.label, score, expected if verdict.probabilities else score, verdict)


@functools.cache
def _worth(task: str) -> Mapping[str, float] | None:
    """Look up what the labels of a task are worth; ``None`` if it is not known here."""
    return get_task(task).worth_by_score() if task in TASKS else None


@functools.cache
def _loaded(source: str) -> AnyJudge:
    """Return a client of a service, or a judge of this process, once for each source."""
    if "://" in source:
        return JudgeClient(source)
    from judging.judge import Judge

    return Judge.load(source)


@runtime_checkable
class _Message(Protocol):
    """A message that is an object, as LangChain's are."""

    content: Any


def references_in(value: Any) -> list[str]:
    """Find the references in a column's value: one, or a list or an array of them.

    They may be the single field of an object.
    """
    value = _plain(value)
    if isinstance(value, Mapping) and len(value) == 1:
        return references_in(*value.values())
    several = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(each, Mapping | _Message) for each in several):
        several = [value]  # messages
    return [text for text in map(text_in, several) if text]


def text_in(value: Any) -> str:
    """Find the text in what tools pass: a text, messages, a single field, or JSON.

    Of messages, which may be objects as LangChain's, it is the last one's, and of its parts all
    texts. ``None`` and NaN, which tables have where nothing stands, are an empty text.
    """
    match value := _plain(value):
        case None:
            return ""
        case float() if math.isnan(value):
            return ""
        case str():
            return value
        case {"content": content} | _Message(content=content):
            return text_in(content)
        case Mapping() if len(value) == 1:
            return text_in(*value.values())
        case [*_, {"role": _, "content": content} | _Message(content=content)]:
            return text_in(content)
        case [{"type": _}, *_]:
            texts = (part.get("text") for part in value if part.get("type") in _TEXT_PARTS)
            return "\n".join(text for text in texts if isinstance(text, str))
    return json.dumps(value, ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    """Turn arrays and numbers of numpy and its like into those of Python."""
    return value.tolist() if hasattr(value, "tolist") else value
