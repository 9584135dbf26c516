"""The reliability card of a judge: what was measured of it on which data, and what was not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from evaluation.baselines import RULES_NAME, VARIANT_MAJORITY
from evaluation.correction.judged import Figure
from evaluation.report.report import versions
from evaluation.report.text import TEMPLATES, markdown_templates, with_interval
from judging.errors import CustosError, FieldError
from judging.files.atomic import write_text
from judging.files.records import known_object, write_json
from judging.judge import Judge
from judging.judge.card import CARD_FILE, SHIPPED, shipped_judges
from judging.tasks import get_task
from judging.types import LabelledExample, Verdict
from judging.verdicts.calibration import calibration_key

JSON, MARKDOWN, README = "reliability.json", "reliability.md", "README.md"
HEADING = "## Reliability"
"""Heading of the section in a judge's ``README.md``; the section is replaced as a whole."""
_SECTION = re.compile(rf"^{re.escape(HEADING)}$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_NOTE = "**Calibrated again on "
_EARLIER_NOTE = re.compile(rf"^{re.escape(_NOTE)}.*\n+", re.MULTILINE)
_TOP = re.compile(r"\A(---\n.*?^---\n)?\s*(# [^\n]*\n)?\s*", re.MULTILINE | re.DOTALL)
"""The header that the hub reads and the title, if there are any."""
RISK = 0.05
"""Risk that abstention is measured at."""
COPIED = (
    *("n", "questions", "metrics", "per_class", "calibration", "slices", "risk_coverage"),
    *("abstention", "cautions", "dataset_sha256", "error_rates", "baselines"),
)
"""Parts of a report that the card shows of each data set."""


class _AttackRate(Figure):
    hits: int


class _Family(BaseModel):
    called_correct: _AttackRate


class Attacks(BaseModel):
    """The figures of ``attacks.json`` that a card shows."""

    attacks: dict[str, _Family]
    controls: dict[str, _Family]

    @classmethod
    def load(cls, path: Path) -> Attacks:
        """Read ``attacks.json``; raise ``CustosError`` if it is none."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise FieldError.from_validation(error, str(path)) from None


Measured = tuple[Sequence[LabelledExample], Sequence[Verdict], Mapping[str, Any]]
"""Resolved examples of one data set, with the verdicts and the report of a judge."""


def make_card(
    judge: Judge,
    data: Mapping[str, Measured],
    *,
    command: str,
    attacks: Attacks | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Put what was measured of a judge on named data sets, and of attacks on it, together.

    ``not_measured`` are the rubrics that the judge was trained for and gave no label under.
    """
    rubrics = {
        get_task(example.task).full_rubric(example)
        for examples, verdicts, _ in data.values()
        for example, verdict in zip(examples, verdicts, strict=True)
        if verdict.label is not None
    }
    trained = judge.card.tasks if judge.card else {}
    known = {f"{task}/{rubric}" for task, rubrics_of in trained.items() for rubric in rubrics_of}
    shown = {}
    for name, (_, _, report) in data.items():
        seconds, num_scored = report["seconds"], report["metrics"]["accuracy"]["n"]
        shown[name] = {
            **{part: report[part] for part in COPIED},
            "seconds_per_1000": None if seconds is None else 1000 * seconds / num_scored,
        }
    return {
        "judge": judge.name,
        "data": shown,
        "attacks": attacks.model_dump() if attacks else None,
        "not_measured": sorted(known - rubrics),
        "command": command,
        "seed": seed,
        "versions": versions(),
    }


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write ``reliability.json`` and ``reliability.md``, and the section of the ``README.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / JSON, dict(card))
    text = render_card(card)
    write_text(folder / MARKDOWN, f"# {card['judge']}\n\n{text}")
    if (readme := read_readme(folder)) is not None:
        replaced, count = _SECTION.subn(lambda _: text, readme, count=1)
        write_text(folder / README, replaced if count else f"{readme.rstrip()}\n\n{text}")


def remove_figures(folder: Path, names: Iterable[str], data: str) -> list[str]:
    """Remove what was measured of a judge before it was calibrated again on ``data``.

    These are files of some ``names``, its card, and the section of the ``README.md``, which gets a
    line that says what its other figures are. Returns the names of the files that were there.
    """
    if (readme := read_readme(folder)) is not None:
        note = f"{_NOTE}`{data}`: figures outside *Reliability* were measured before that.**"
        text = _EARLIER_NOTE.sub("", f"{_SECTION.sub('', readme)}\n")
        noted = _TOP.sub(lambda top: f"{top[0].rstrip()}\n\n{note}\n\n", text, count=1)
        write_text(folder / README, f"{noted.strip()}\n")
    found = [name for name in (*names, JSON, MARKDOWN) if (folder / name).is_file()]
    for name in found:
        (folder / name).unlink()
    return found


def read_readme(folder: Path) -> str | None:
    """Read the text of a folder's ``README.md``; ``None`` if it has none.

    Raise ``CustosError`` if it is not UTF-8.
    """
    path = folder / README
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else None
    except UnicodeDecodeError as error:
        raise CustosError(f"{path}: not UTF-8 text: {error.reason}") from None


def render_card(card: Mapping[str, Any]) -> str:
    """Lay out the section of a card as Markdown, from its heading on."""
    template = markdown_templates(TEMPLATES).get_template("reliability.md")
    return template.render(card=card, heading=HEADING)


def risk_to_state(judge: Judge, examples: Sequence[LabelledExample]) -> float | None:
    """Choose ``RISK`` if a judge has a threshold for every example that it takes, else ``None``."""
    for example in examples:
        try:
            resolved = judge.resolve(example)
        except CustosError:
            continue
        key = calibration_key(get_task(resolved.task), resolved)
        if judge.calibration is None or key not in judge.calibration.held_out:
            return None
    return RISK


REPORT_FILE = "report.json"
RIVALS = {
    RULES_NAME: "the benchmark's rules have accuracy",
    VARIANT_MAJORITY: "the most frequent label of each variant has accuracy",
}
ADVICE = {RULES_NAME: ": consider --judge rules", VARIANT_MAJORITY: ""}


def measured_lines(
    name: str, folder: Path | None, tasks: Iterable[str], backbone: str
) -> list[str]:
    """Say what was measured of a judge, one sentence for each task that it is used for.

    A judge without training has no run folder; the figures of its backbone are told instead.
    """
    report = known_object(folder / REPORT_FILE) if folder is not None else {}
    lines = []
    for task in tasks:
        figures = [
            f"accuracy {with_interval(accuracy)} on {accuracy['n']:,} rows ({variant})"
            for variant, accuracy in _accuracies(report, task)
        ]
        if not figures:
            line = f"judge {name}: not measured on this task ({task})"
            if folder is None and (others := list(_zero_shot(backbone))):
                line += f"; measured without training: {'; '.join(others)}"
            lines.append(line)
            continue
        parts = [f"judge {name} on {task}: {'; '.join(figures)}"]
        rivals = report.get("tasks", {}).get(task, {}).get("rivals", {})
        for rival, measured in rivals.items():
            accuracy, gain = measured["accuracy"], measured["gain"]["low"]
            is_better = gain is not None and gain > 0
            verdict = "" if is_better else f", which it is not shown to beat{ADVICE[rival]}"
            parts.append(
                f"on all {accuracy['n']:,} rows, a missing label being wrong, {RIVALS[rival]} "
                f"{with_interval(accuracy)}{verdict}"
            )
        lines.append("; ".join(parts))
    return lines


def unmeasured_tasks(folder: Path | None, tasks: Iterable[str]) -> list[str]:
    """List the tasks that a judge's run folder, if it has one, has no figures for."""
    report = known_object(folder / REPORT_FILE) if folder is not None else {}
    return [task for task in tasks if not any(_accuracies(report, task))]


def _accuracies(report: Mapping[str, Any], task: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variants of a task of which rows got a label, with the accuracy on these rows."""
    for part, measured in report.get("slices", {}).get("task", {}).items():
        name, _, variant = part.partition("/")
        if name == task and measured["accuracy"]["n"]:
            yield variant, measured["accuracy"]


def _zero_shot(backbone: str) -> Iterator[str]:
    """Yield what shipped judges measured of their backbone before it was trained."""
    family = backbone.partition("@")[0]
    for judge in shipped_judges():
        trained_on = str(known_object(SHIPPED / judge / CARD_FILE).get("backbone", ""))
        report = known_object(SHIPPED / judge / REPORT_FILE)
        baseline = report.get("baselines", {}).get("zero_shot")
        if baseline and trained_on.partition("@")[0] == family:
            tasks = ", ".join(report.get("slices", {}).get("task", {}))
            yield f"{trained_on} on {tasks}: accuracy {with_interval(baseline['accuracy'])}"
