"""Rows that got no label: why, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judging.errors import CustosError
from judging.types import Verdict

ANSWERS_WITHOUT_LABEL = ("not_judgeable", "abstain")
"""Statuses with which a judge says that it gives no label; the others are failures."""
MAX_REASONS = 10
MAX_IDS = 5


class NothingScored(CustosError):
    """An evaluation in which no row got a label."""


def unscored_reasons(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Count the verdicts without a label by their reason, the most frequent first.

    Returns:
        ``status``, ``message``, ``failed`` (whether the row could not be judged), ``n`` and the
        first ``ids`` of every reason. After ``MAX_REASONS`` the others are counted together.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.label is None:
            message = " ".join((verdict.message or "no message").split())
            reasons.setdefault((verdict.status, message), []).append(verdict.id)
    ranked = sorted(reasons.items(), key=lambda reason: -len(reason[1]))
    counted = [_reason(status, message, ids) for (status, message), ids in ranked[:MAX_REASONS]]
    for failed in (True, False):
        others = [
            id
            for (status, _), ids in ranked[MAX_REASONS:]
            for id in ids
            if _is_failure(status) is failed
        ]
        if others:
            status = "judge_error" if failed else ANSWERS_WITHOUT_LABEL[0]
            counted.append(_reason(status, "other reasons, see verdicts.jsonl", others))
    return counted


def check_scored(verdicts: Sequence[Verdict]) -> None:
    """Raise ``NothingScored`` with all reasons if no verdict holds a label."""
    if verdicts and all(verdict.label is None for verdict in verdicts):
        reasons = unscored_reasons(verdicts)
        raise NothingScored(f"no row got a label: {'; '.join(map(describe_reason, reasons))}")


def describe_reason(reason: Mapping[str, Any]) -> str:
    """Return a reason as text: ``3 rows: no label in the text (id 4, 7, 9)``."""
    more = ", ..." if reason["n"] > len(reason["ids"]) else ""
    rows = f"{reason['n']} row{'s' * (reason['n'] > 1)}"
    return f"{rows}: {reason['message']} (id {', '.join(reason['ids'])}{more})"


def _is_failure(status: str) -> bool:
    return status not in ANSWERS_WITHOUT_LABEL


def _reason(status: str, message: str, ids: Sequence[str]) -> dict[str, Any]:
    return {
        "status": status,
        "message": message,
        "failed": _is_failure(status),
        "n": len(ids),
        "ids": list(ids[:MAX_IDS]),
    }
