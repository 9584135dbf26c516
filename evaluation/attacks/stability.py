"""Changes of a request that mean nothing: does the label stay?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from evaluation.attacks.items import AttackItem
from evaluation.attacks.shares import Share, measure_share
from judging.types import JudgeRequest, Verdict

LAYOUTS = {
    "blank_lines": "\n\n{response}\n\n\n",
    "spaces": "    {response}    ",
    "bold": "**{response}**",
    "quote": "> {response}",
    "bullet": "- {response}",
}
REFERENCE_ORDER = "reference_order"
ALONE = "alone"
SUMMARIES = {
    "blank_lines": "blank lines around the response",
    "spaces": "spaces around the response",
    "bold": "the response in bold",
    "quote": "the response as a quotation",
    "bullet": "the response as an item of a list",
    REFERENCE_ORDER: "the references in another order",
    ALONE: "the row graded alone, not among others",
}
NUM_EXAMPLES = 3


class StabilityRow(BaseModel):
    """A request with one change that means nothing."""

    model_config = ConfigDict(frozen=True)

    check: str
    """Name of the change; empty for the request as it is, which comes before its changes."""
    cluster: str
    request: JudgeRequest


class Flip(BaseModel):
    """A row whose label a change has turned."""

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    response: str
    before: str
    after: str


class StabilityCheck(BaseModel):
    """The share of labels that one change turns."""

    model_config = ConfigDict(frozen=True)

    summary: str
    flips: Share
    examples: tuple[Flip, ...]


class StabilityReport(BaseModel):
    """The share of labels that each change turns."""

    model_config = ConfigDict(frozen=True)

    checks: dict[str, StabilityCheck]


def stability_rows(items: Sequence[AttackItem], seed: int = 0) -> list[StabilityRow]:
    """Return the user's own row of each item, followed by its changes."""
    return [
        StabilityRow(check=check, cluster=item.cluster, request=request)
        for item in items
        if item.request.response.strip()
        for check, request in _changes(item, seed)
    ]


def measure_stability(
    rows: Sequence[StabilityRow], verdicts: Sequence[Verdict], alone: Sequence[Verdict]
) -> StabilityReport:
    """Count the labels that changes have turned.

    Args:
        rows: Rows of :func:`stability_rows`.
        verdicts: Verdicts on them.
        alone: Verdicts on the unchanged rows, each graded by itself.
    """
    flips: dict[str, list[tuple[str, Flip]]] = {check: [] for check in SUMMARIES}
    alone_verdicts = iter(alone)
    original = Verdict(status="abstain")
    for row, verdict in zip(rows, verdicts, strict=True):
        if not row.check:
            original, verdict = verdict, next(alone_verdicts)
        if original.label is not None and verdict.label is not None:
            flip = Flip(
                id=row.request.id,
                question=row.request.question,
                response=row.request.responses[0],
                before=original.label,
                after=verdict.label,
            )
            flips[row.check or ALONE].append((row.cluster, flip))
    return StabilityReport(
        checks={check: _check(SUMMARIES[check], rows) for check, rows in flips.items() if rows}
    )


def _changes(item: AttackItem, seed: int) -> Iterator[tuple[str, JudgeRequest]]:
    request, references = item.request, list(item.references)
    request = request.model_copy(update={"id": item.id})
    yield "", request
    for name, layout in LAYOUTS.items():
        response = layout.format(response=request.response)
        yield name, request.model_copy(update={"id": f"{item.id}/{name}", "responses": (response,)})
    random.Random(f"{seed}/order/{item.key}").shuffle(references)
    if references == list(item.references):
        references.reverse()
    if references != list(item.references):
        id = f"{item.id}/{REFERENCE_ORDER}"
        yield (
            REFERENCE_ORDER,
            request.model_copy(update={"id": id, "references": tuple(references)}),
        )


def _check(summary: str, flips: Sequence[tuple[str, Flip]]) -> StabilityCheck:
    turned = [flip for _, flip in flips if flip.before != flip.after]
    return StabilityCheck(
        summary=summary,
        flips=measure_share(
            [flip.before != flip.after for _, flip in flips], [cluster for cluster, _ in flips]
        ),
        examples=tuple(turned[:NUM_EXAMPLES]),
    )
