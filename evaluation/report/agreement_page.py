"""The report as an HTML page that needs no other file: figures, and every disagreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.report.disagreements import FILE, Disagreement
from evaluation.report.judged_rates import rate_url
from evaluation.report.markdown import (
    METRIC_NAMES,
    favour_lines,
    people_sentences,
    review_line,
)
from evaluation.report.page import MAX_ITEMS, drawn_url, page_templates, thumbnails
from judging.files.atomic import write_text

HEADLINES = {
    "accuracy": "share of rows on which judge and people give the same label",
    "kappa": "agreement beyond chance: 0 is chance, 1 is full agreement",
    "coverage": "share of rows with a label from the judge",
    "ece": "mean gap between confidence and accuracy; 0 is honest",
}


def write_page(
    report: Mapping[str, Any], disagreements: Sequence[Disagreement], source: str, folder: Path
) -> Path:
    """Write ``report.html``; return its path.

    Args:
        report: Report of ``build_report``.
        disagreements: Rows on which judge and people differ, in the order to show.
        source: Name of the data.
        folder: Folder to write to.
    """
    path = folder / "report.html"
    write_text(path, render_page(report, disagreements, source))
    return path


def render_page(
    report: Mapping[str, Any], disagreements: Sequence[Disagreement], source: str
) -> str:
    """Return the page. Arguments as :func:`write_page`; at most ``MAX_ITEMS`` rows are shown."""
    shown = disagreements[:MAX_ITEMS]
    return (
        page_templates()
        .get_template("report.html")
        .render(
            report=report,
            source=source,
            headlines=HEADLINES,
            metric_names=METRIC_NAMES,
            people_sentences=people_sentences(report),
            people_picture=_people(report),
            review_line=review_line(report),
            favour_lines=favour_lines(report["favour"]),
            favour=_favour(report),
            reliability=_reliability(report),
            risk_coverage=_risk_coverage(report),
            rate_picture=rate_url(report),
            ranking=_ranking(report),
            items=shown,
            num_items=len(disagreements),
            pairs=Counter(row.pair for row in shown),
            sides=Counter(row.sides_with for row in shown if row.sides_with),
            images=thumbnails(name for row in shown for name in row.example.images),
            csv_file=FILE,
        )
    )


def _people(report: Mapping[str, Any]) -> str | None:
    """Return the picture of people and judge as a data URL; ``None`` without several people."""
    if not report["annotators"]:
        return None
    from evaluation.report import plots

    return drawn_url(partial(plots.draw_people, report["annotators"]))


def _reliability(report: Mapping[str, Any]) -> str | None:
    """Return the picture of the calibration as a data URL; ``None`` without confidences."""
    if not report["calibration"]:
        return None
    from evaluation.report import plots

    return drawn_url(partial(plots.draw_reliability, report["calibration"]))


def _favour(report: Mapping[str, Any]) -> str | None:
    """Return the picture of whom the judge favours as a data URL; ``None`` for one system."""
    if not report["favour"]:
        return None
    from evaluation.report import plots

    return drawn_url(partial(plots.draw_favour, report["favour"]))


def _risk_coverage(report: Mapping[str, Any]) -> str | None:
    """Return the picture of risk and coverage as a data URL; ``None`` without confidences."""
    if not report["risk_coverage"]:
        return None
    from evaluation.report import plots

    curve, abstention = report["risk_coverage"], report["abstention"]
    return drawn_url(partial(plots.draw_risk_coverage, curve, abstention))


def _ranking(report: Mapping[str, Any]) -> str | None:
    """Return the picture of the answering systems as a data URL; ``None`` where none are known."""
    if not report["answerer_ranking"]:
        return None
    from evaluation.report import plots

    return drawn_url(partial(plots.draw_ranking, report["answerer_ranking"]))
