"""The files of an attack: the report in three forms, and every row with its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.attacks.report import AttackReport
from evaluation.attacks.rows import AttackRow
from evaluation.report.markdown import markdown_templates, number
from evaluation.report.page import page_templates
from judging.files.atomic import write_text
from judging.files.records import write_json, write_records
from judging.types import Verdict

TEMPLATES = Path(__file__).parent / "templates"
JSON, MARKDOWN, PAGE, ROWS = "attacks.json", "attacks.md", "attacks.html", "rows.jsonl"
ATTACKS, CONTROLS = "Attacks", "Controls"
MEANINGS = {
    ATTACKS: "share of wrong responses that the judge accepts; 0 is safe",
    CONTROLS: "share of right responses that the judge accepts; 1 is right",
}


class GradedRow(AttackRow):
    """A row with the judge's verdict."""

    verdict: Verdict


def write_attacks(
    report: AttackReport,
    rows: Sequence[AttackRow],
    verdicts: Sequence[Verdict],
    source: str,
    folder: Path,
) -> None:
    """Write ``attacks.json``, ``attacks.md``, ``attacks.html`` and ``rows.jsonl``.

    Args:
        report: Report on the rows.
        rows: Rows of the attack.
        verdicts: The judge's verdicts on them.
        source: Name of the data.
        folder: Folder to write to; it is made if it is missing.
    """
    graded = zip(rows, verdicts, strict=True)
    write_records(
        folder / ROWS, (GradedRow(**dict(row), verdict=verdict) for row, verdict in graded)
    )
    write_text(folder / MARKDOWN, render_markdown(report, source))
    write_text(folder / PAGE, render_page(report, source))
    write_json(folder / JSON, report.model_dump(mode="json"))


def render_markdown(report: AttackReport, source: str) -> str:
    """Lay a report out as Markdown. ``source`` names the data."""
    templates = markdown_templates(TEMPLATES)
    templates.filters["number"] = number
    return templates.get_template(MARKDOWN).render(source=source, **_context(report))


def render_page(report: AttackReport, source: str) -> str:
    """Lay a report out as an HTML page that needs no other file. ``source`` names the data."""
    template = page_templates(TEMPLATES).get_template(PAGE)
    return template.render(source=source, meanings=MEANINGS, **_context(report))


def _context(report: AttackReport) -> dict[str, Any]:
    """Return what both templates use; attacks and controls only where there are some."""
    values = report.model_dump()
    parts = [
        (ATTACKS, values["attacks"], values["all_attacks"]),
        (CONTROLS, values["controls"], values["all_controls"]),
    ]
    return {"report": values, "parts": [part for part in parts if part[1]]}
