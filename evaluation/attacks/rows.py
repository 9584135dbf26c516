"""Rows of an attack: requests that a family makes of a user's items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from evaluation.attacks import families as known
from evaluation.attacks.families import AttackFamily
from evaluation.attacks.items import AttackItem
from judging.errors import CustosError
from judging.types import JudgeRequest, LabelledExample

TASK = "hieval-qs"
"""The task whose judges are attacked."""


class AttackRow(BaseModel):
    """A request with a response that a family made."""

    model_config = ConfigDict(frozen=True)

    family: str
    wording: str
    cluster: str
    """Rows of a cluster (a question, unless the user named groups) are resampled together."""
    request: JudgeRequest


def attack_rows(
    items: Sequence[AttackItem], families: Sequence[str] = (), wordings: int = 1, seed: int = 0
) -> list[AttackRow]:
    """Make the rows of an attack, item by item.

    Args:
        items: Questions with their references.
        families: Names of families, or all.
        wordings: Wordings of each family to draw for each item.
        seed: Seed of the draws.

    Raises:
        CustosError: If a family is unknown, or no family can make a row.
    """
    named = [known.family_of(name) for name in dict.fromkeys(families)]
    chosen = named or list(known.families().values())
    rows = [
        row for item in items for family in chosen for row in _rows(family, item, seed, wordings)
    ]
    if not rows:
        names = ", ".join(family.name for family in chosen)
        raise CustosError(
            f"{len(items)} questions with references give no row for {names}; most families need "
            "several questions with short references"
        )
    return rows


def check_task(examples: Sequence[LabelledExample]) -> None:
    """Raise ``CustosError`` if an example is not of the task that is attacked."""
    for example in examples:
        if example.task != TASK:
            raise CustosError(
                f"row with id '{example.id}' is of task '{example.task}': the attacks are for "
                f"quick-score judges ({TASK})"
            )


def _rows(family: AttackFamily, item: AttackItem, seed: int, wordings: int) -> Iterator[AttackRow]:
    for wording, request in family.requests(item, seed, wordings):
        id = f"{item.id}/{family.name}/{wording}"
        yield AttackRow(
            family=family.name,
            wording=wording,
            cluster=item.cluster,
            request=request.model_copy(update={"id": id}),
        )
