"""The report as an HTML page that needs no other file, and what all pages of reports share.

Texts from outside are escaped, and a page's policy lets no script run but its own.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.report.evaluate import FILE, Disagreement
from evaluation.report.markdown import METRIC_NAMES
from evaluation.report.sentences import favour_lines, people_sentences, review_line
from evaluation.report.text import TEMPLATES, templates
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.pictures import read_image

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_ITEMS = 2000
"""Most items on a page; a browser is slow to search more."""
THUMBNAIL_PIXELS = 480
THUMBNAIL_QUALITY = 78
HEADLINES = {
    "accuracy": "share of rows on which judge and people give the same label",
    "kappa": "agreement beyond chance: 0 is chance, 1 is full agreement",
    "coverage": "share of rows with a label from the judge",
    "ece": "mean gap between confidence and accuracy; 0 is honest",
}


def write_page(
    report: Mapping[str, Any], disagreements: Sequence[Disagreement], source: str, folder: Path
) -> Path:
    """Write ``report.html`` beside the pictures of ``write_report``; return its path."""
    path = folder / "report.html"
    write_text(path, render_page(report, disagreements, source, folder))
    return path


def render_page(
    report: Mapping[str, Any],
    disagreements: Sequence[Disagreement],
    source: str,
    drawn_in: Path | None = None,
) -> str:
    """Render the page with the first ``MAX_ITEMS`` disagreements, in their order.

    Pictures that ``write_report`` drew in a folder are not drawn again.
    """
    from evaluation.report import plots

    def drawn(name: str, draw: Callable[..., None], part: Any, *more: Any) -> str | None:
        if not part:
            return None
        if drawn_in and (file := drawn_in / f"{name}.png").is_file():
            return _png_url(file)
        return drawn_url(partial(draw, part, *more))

    shown = disagreements[:MAX_ITEMS]
    rates = {
        f"{measured['label']}, {rubric}": {"people": measured["people"], **measured["judged"]}
        for rubric, measured in report["error_rates"].items()
    }
    return (
        page_templates()
        .get_template("report.html")
        .render(
            report=report,
            source=source,
            headlines=HEADLINES,
            metric_names=METRIC_NAMES,
            people_sentences=people_sentences(report),
            people_picture=drawn("people", plots.draw_people, report["annotators"]),
            review_line=review_line(report),
            favour_lines=favour_lines(report["favour"]),
            favour=drawn("favour", plots.draw_favour, report["favour"]),
            reliability=drawn("reliability", plots.draw_reliability, report["calibration"]),
            risk_coverage=drawn(
                "risk_coverage",
                plots.draw_risk_coverage,
                report["risk_coverage"],
                report["abstention"],
            ),
            rate_picture=drawn_url(partial(plots.draw_rates, rates)) if rates else None,
            ranking=drawn("ranking", plots.draw_ranking, report["answerer_ranking"]),
            items=shown,
            num_items=len(disagreements),
            pairs=Counter(row.pair for row in shown),
            sides=Counter(row.sides_with for row in shown if row.sides_with),
            images=thumbnails(name for row in shown for name in row.example.images),
            csv_file=FILE,
        )
    )


def page_templates(folder: Path = TEMPLATES) -> Environment:
    """Build the environment of a folder's HTML templates, which can import those of this room."""
    environment = templates([folder, TEMPLATES], autoescape=True)
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    environment.globals |= {
        "style": (TEMPLATES / "page.css").read_text(encoding="utf-8"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return environment


def drawn_url(draw: Callable[[Path], None]) -> str:
    """Encode the PNG that a function draws into a file as a data URL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chart.png"
        draw(path)
        return _png_url(path)


def _png_url(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def thumbnails(sources: Iterable[str]) -> dict[str, str]:
    """Shrink the pictures that can be read here to small JPEGs, as data URLs by source."""
    urls = {}
    for source in dict.fromkeys(sources):
        try:
            picture = read_image(source)
        except CustosError:
            continue
        picture.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
        buffer = io.BytesIO()
        picture.save(buffer, "jpeg", quality=THUMBNAIL_QUALITY)
        urls[source] = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return urls
