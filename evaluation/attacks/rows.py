"""Rows of an attack: requests made of a user's items by a family, or by changes without meaning."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from evaluation.attacks import families as known
from evaluation.attacks.items import AttackItem
from evaluation.intervals import clustered_rate, number_clusters
from judging.errors import CustosError
from judging.types import JudgeRequest, LabelledExample

TASK = "hieval-qs"
"""The task whose judges are attacked."""
LAYOUTS = {
    "blank_lines": "\n\n{response}\n\n\n",
    "spaces": "    {response}    ",
    "bold": "**{response}**",
    "quote": "> {response}",
    "bullet": "- {response}",
}
REFERENCE_ORDER = "reference_order"


class Frozen(BaseModel):
    """A value that does not change."""

    model_config = ConfigDict(frozen=True)


class AttackRow(Frozen):
    """A request with a response that a family made."""

    family: str
    wording: str
    cluster: str
    """Rows of a cluster (a question, unless the user named groups) are resampled together."""
    request: JudgeRequest


class StabilityRow(Frozen):
    """A request with one change that means nothing."""

    check: str
    """Name of the change; empty for the request as it is, which comes before its changes."""
    cluster: str
    request: JudgeRequest


class Share(Frozen):
    """A share of rows with its 95 % interval."""

    hits: int
    n: int
    value: float | None
    """``hits / n``; ``None`` without rows, like the ends of the interval."""
    low: float | None
    high: float | None
    rule_of_three: float | None
    """With no hits: upper bound of the share at one-sided 95 % for these very wordings, three over
    the number of clusters. ``None`` with hits."""
    wordings: int = 1
    """Number of wordings that the interval allows for."""


def measure_share(
    hits: Sequence[bool],
    clusters: Sequence[Hashable],
    wordings: Sequence[Hashable] | None = None,
) -> Share:
    """Measure the share of hits; its interval allows for likeness of the rows of a cluster.

    With several wordings, the interval is about other wordings too.
    """
    n, num_hits = len(hits), sum(hits)
    if not n:
        return Share(hits=0, n=0, value=None, low=None, high=None, rule_of_three=None)
    low, high = clustered_rate(
        np.array(hits, dtype=np.float64),
        number_clusters(clusters),
        None if wordings is None else number_clusters(wordings),
    )
    return Share(
        hits=num_hits,
        n=n,
        value=num_hits / n,
        low=low,
        high=high,
        rule_of_three=None if num_hits else min(1.0, 3 / len(set(clusters))),
        wordings=1 if wordings is None else len(set(wordings)),
    )


def attack_rows(
    items: Sequence[AttackItem], families: Sequence[str] = (), wordings: int = 1, seed: int = 0
) -> list[AttackRow]:
    """Make the rows of an attack, item by item, with ``wordings`` of each named family, or of all.

    Raise ``CustosError`` if a family is unknown, or no family can make a row.
    """
    named = [known.family_of(name) for name in dict.fromkeys(families)]
    chosen = named or list(known.families().values())
    rows = []
    for item in items:
        for family in chosen:
            for wording, request in family.requests(item, seed, wordings):
                id = f"{item.id}/{family.name}/{wording}"
                request = request.model_copy(update={"id": id})
                rows.append(
                    AttackRow(
                        family=family.name, wording=wording, cluster=item.cluster, request=request
                    )
                )
    if not rows:
        names = ", ".join(family.name for family in chosen)
        raise CustosError(
            f"{len(items)} questions with references give no row for {names}; most families need "
            "several questions with short references"
        )
    return rows


def stability_rows(items: Sequence[AttackItem], seed: int = 0) -> list[StabilityRow]:
    """List the user's own row of each item, followed by its changes."""
    return [
        StabilityRow(check=check, cluster=item.cluster, request=request)
        for item in items
        if item.request.response.strip()
        for check, request in _changes(item, seed)
    ]


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


def check_task(examples: Sequence[LabelledExample]) -> None:
    """Raise ``CustosError`` if an example is not of the task that is attacked."""
    for example in examples:
        if example.task != TASK:
            raise CustosError(
                f"row with id '{example.id}' is of task '{example.task}': the attacks are for "
                f"quick-score judges ({TASK})"
            )
