"""Header that names the judges of an answer that have no figures on its task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from string import punctuation
from urllib.parse import quote

from evaluation.report.measured_tasks import unmeasured_tasks
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict

HEADER = "X-Not-Measured"
"""Header of an answer whose judge has no figures on the task."""


def not_measured_headers(
    judges: Mapping[str, Judge],
    requests: Iterable[JudgeRequest],
    names: Iterable[str],
    verdicts: Iterable[Verdict],
) -> dict[str, str]:
    """Return the header that names judges and tasks without figures; empty if all have some.

    No judge was asked for what a rule decided. Characters that no header may hold are
    percent-encoded, as in an address.

    Args:
        judges: Judges by name.
        requests: Requests of a call.
        names: Name of the judge of each request.
        verdicts: What each is answered.
    """
    pairs = dict.fromkeys(
        (name, request.task)
        for request, name, verdict in zip(requests, names, verdicts, strict=True)
        if verdict.posterior
    )
    texts = [
        f"{name} on {task}" for name, task in pairs if not _is_measured(judges[name].folder, task)
    ]
    return {HEADER: quote(", ".join(texts), safe=f"{punctuation} ")} if texts else {}


@lru_cache(maxsize=1024)
def _is_measured(folder: Path | None, task: str) -> bool:
    return not unmeasured_tasks(folder, (task,))
