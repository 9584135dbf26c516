"""Rulings on questions, from several annotators' sheets, and the benchmark file made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_prep.construction.charthal.questions import Question
from data_prep.construction.charthal.sheets import Check
from judging.errors import CustosError
from judging.files.records import write_json

BENCHMARK, DISAGREEMENTS = "charthal.json", "disagreements.json"

FINAL = "final"
"""Name of the sheet that settles disagreements."""


@dataclass
class Rulings:
    """The outcome of several annotators' sheets."""

    kept: list[Question] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    """Ids that everybody who checked them discarded."""
    disagreements: list[dict[str, Any]] = field(default_factory=list)
    """``id`` and, by field, every annotator's version, for somebody to settle."""
    unchecked: list[str] = field(default_factory=list)


def settle(
    questions: Sequence[Question],
    sheets: Mapping[str, Sequence[Check]],
    final: Sequence[Check] = (),
) -> Rulings:
    """Bring annotators' sheets together.

    A question is settled where everybody who checked it agrees: discarded by all, or kept by all
    with the same type, relation, wording and answer. Everything else is a disagreement.

    Args:
        questions: Questions that were sent out.
        sheets: Annotator to the checks that came back; rows may be missing.
        final: Checks that settle disagreements: they hold, whatever the other sheets say.

    Raises:
        CustosError: If a sheet holds a question that was not sent out, or one is named ``final``.
    """
    if FINAL in sheets:
        raise CustosError(f"sheet '{FINAL}': that name is the settling sheet's; give it as --final")
    checks_of = _checks_by_question(questions, {**sheets, FINAL: final})
    rulings = Rulings()
    for question in questions:
        checks = checks_of[question.id]
        if FINAL in checks:
            checks = {FINAL: checks[FINAL]}
        versions = {annotator: check.ruling() for annotator, check in checks.items()}
        if not checks:
            rulings.unchecked.append(question.id)
        elif len(set(versions.values())) > 1:
            rulings.disagreements.append({"id": question.id, **_differences(checks)})
        elif (ruling := next(iter(versions.values()))) is None:
            rulings.discarded.append(question.id)
        else:
            rulings.kept.append(ruling)
    return rulings


def _checks_by_question(
    questions: Sequence[Question], sheets: Mapping[str, Sequence[Check]]
) -> dict[str, dict[str, Check]]:
    """Return question id to annotator to check, rows that are not filled in left out."""
    checks_of: dict[str, dict[str, Check]] = {question.id: {} for question in questions}
    for annotator, checks in sheets.items():
        for check in checks:
            if check.id not in checks_of:
                raise CustosError(f"sheet '{annotator}': no question '{check.id}' was sent out")
            if check.status:
                checks_of[check.id][annotator] = check
    return checks_of


def _differences(checks: Mapping[str, Check]) -> dict[str, dict[str, Any]]:
    """Return the fields in which annotators differ, each with everybody's version."""
    fields = [name for name in Check.model_fields if name != "note"]
    versions = {
        name: {annotator: getattr(check, name) for annotator, check in checks.items()}
        for name in fields
    }
    return {name: values for name, values in versions.items() if len(set(values.values())) > 1}


def write_benchmark(folder: Path, rulings: Rulings) -> None:
    """Write the questions that people kept, and those left to settle, beside the pictures.

    ``charthal.json`` is ChartHal's own shape, an object from id to item; ``disagreements.json``
    lists the questions that annotators differ on.
    """
    items = {question.id: question.model_dump(exclude={"id"}) for question in rulings.kept}
    write_json(folder / BENCHMARK, items)
    write_json(folder / DISAGREEMENTS, rulings.disagreements)
