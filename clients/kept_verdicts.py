"""Verdicts on the rows of a file, kept in ``OUT.partial`` until the file is complete."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from judging import CustosError, JudgeRequest, Verdict
from judging.files.kept_work import KeptFile, KeptLine, Origin
from judging.fingerprint import digest, picture_sha256
from judging.tasks import get_task, task_names
from judging.types import AnyJudge

NumberedRequest = tuple[int, JudgeRequest | Verdict]
"""Number of a row, and the request that it holds or, if it holds none, the verdict on it."""


class Grader(AnyJudge, Protocol):
    """A judge with a name, whose verdicts can be kept."""

    name: str

    def fingerprint(self, request: JudgeRequest) -> str:
        """Compute a digest of everything that could change this request's verdict."""
        ...


class KeptVerdict(KeptLine):
    """A line of the file: a verdict, and the request that it is a verdict on."""

    row: int
    verdict: Verdict
    risk: float | None = None
    """Risk that the request stated."""

    @property
    def needs_person(self) -> bool | None:
        """Tell whether a person should decide; ``None`` if nothing was checked to say so.

        A verdict is checked if a risk was stated, or if two readings of a pair were compared.
        """
        if self.verdict.label is None or self.verdict.needs_review:
            return True
        is_checked = self.risk is not None or len(self.verdict.passes) > 1
        return False if is_checked else None

    @property
    def origin(self) -> Origin:
        """Return the row's number and the request's key."""
        return self.row, self.key

    @property
    def failed(self) -> bool:
        """Tell whether the row could not be judged, and may be another time.

        It may be when the row is mended, the server is up again or takes longer prompts.
        """
        return self.verdict.status in ("invalid", "judge_error")


def partial_file(out: Path) -> KeptFile[KeptVerdict]:
    """Return the file that keeps verdicts until an output file is complete: ``OUT.partial``."""
    return KeptFile(out.with_name(f"{out.name}.partial"), KeptVerdict)


def fill_verdicts(
    file: KeptFile[KeptVerdict],
    judge: Grader,
    read: Callable[[], Iterable[NumberedRequest]],
    *,
    batch: int,
    retry_failed: bool = False,
) -> Iterator[int]:
    """Grade the requests that have no verdict yet; yield the number of verdicts as it grows.

    ``read`` starts over each time it is called; verdicts are written after each ``batch`` of
    requests. With ``retry_failed`` the failed rows are graded again, first.
    """

    def origin(numbered: NumberedRequest) -> Origin:
        row, request = numbered
        if isinstance(request, Verdict):
            return row, hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        return row, request_key(judge, request)

    def grade(rows: Sequence[NumberedRequest]) -> Iterator[KeptVerdict]:
        requests = [request for _, request in rows if isinstance(request, JudgeRequest)]
        verdicts = iter(judge.grade(requests) if requests else ())
        for row, request in rows:
            verdict = request if isinstance(request, Verdict) else next(verdicts)
            risk = request.risk if isinstance(request, JudgeRequest) else None
            key = origin((row, request))[1]
            yield KeptVerdict(row=row, key=key, verdict=verdict, risk=risk)

    return file.fill(read, origin, grade, batch=batch, retry_failed=retry_failed)


def request_key(judge: Grader, request: JudgeRequest) -> str:
    """Return the SHA-256 of a request, its pictures' content and the judge that it is sent to."""
    try:
        get_task(request.task).check(request)
        fingerprint = judge.fingerprint(request)
    except CustosError:  # The verdict reports the same error.
        fingerprint = ""
    content = {
        **request.model_dump(),
        "images": [picture_sha256(source) for source in request.images],
        "judge": [judge.name, fingerprint],
    }
    if request.answers != request.responses:  # earlier versions graded thoughts too
        content["answers"] = request.answers
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def judge_digest(grader: Grader) -> str:
    """Hash what could change a judge's verdicts under any task."""
    fingerprints = {}
    for name in task_names():
        request = JudgeRequest.model_validate(get_task(name).example_row())
        try:
            fingerprints[name] = grader.fingerprint(request)
        except CustosError:  # the judge does not take the task
            continue
    return digest(fingerprints)
