"""The page on verdicts and labels names every field, and its examples fit the tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import pytest

from judging.judge import Judge
from judging.models.backbones import Backbone
from judging.tasks import get_task
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import JudgeRequest, ReferenceMode, Status, Verdict
from tests.docs.markdown_pages import DOCS

PAGE = DOCS / "labels.md"
EXAMPLES_PER_LABEL = 3


@dataclass(frozen=True)
class LabelExample:
    """One row of a table of examples."""

    section: str
    label: str
    cells: tuple[str, ...]

    def request(self, task: str, mode: ReferenceMode) -> JudgeRequest:
        """Return the example as a request."""
        question, references, response, _ = self.cells
        separator = " / " if mode == "any" else "; "
        return JudgeRequest(
            task=task,
            question=question,
            references=tuple(references.split(separator)),
            reference_mode=mode,
            responses=(response.replace("\\|", "|"),),
        )


def test_every_field_and_status_is_explained_once_and_in_order() -> None:
    names = [cells[0].strip("`") for section, cells in tables() if section == "The fields"]
    assert names == list(Verdict.model_fields)
    statuses = [cells[0].strip("`") for section, cells in tables() if section == "Status"]
    assert sorted(statuses) == sorted(get_args(Status))


@pytest.mark.parametrize(
    ("section", "task", "mode"),
    [
        ("Correct and Wrong", "hieval-qs", "any"),
        ("Correct, Partial and Wrong", "hieval-qs", "all"),
    ],
)
def test_every_label_of_the_quick_score_has_examples(
    section: str, task: str, mode: ReferenceMode
) -> None:
    rows = [row for row in examples() if row.section == section]
    request = rows[0].request(task, mode)
    for row in rows:
        get_task(task).check(row.request(task, mode))
    labels = get_task(task).labels(get_task(task).rubric(request))
    assert [row.label for row in rows] == [
        label for label in labels for _ in range(EXAMPLES_PER_LABEL)
    ]


def test_every_type_of_error_has_examples() -> None:
    rows = [row for row in examples() if row.section == "The five types of error"]
    assert [row.label for row in rows] == [
        error for error in ERROR_TYPES for _ in range(EXAMPLES_PER_LABEL)
    ]


@pytest.mark.slow
def test_the_shipped_judge_decides_as_the_page_says(embedded: Backbone) -> None:
    rows = [row for row in examples() if row.section == "Correct and Wrong"]
    verdicts = Judge.load("embedded-qs").grade([row.request("hieval-qs", "any") for row in rows])
    agree = [verdict.label == row.label for verdict, row in zip(verdicts, rows, strict=True)]
    assert agree == [True] * 6


def examples() -> Iterator[LabelExample]:
    """Yield the examples of the page, with the label that stands above their table."""
    section = label = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section, label = line.removeprefix("## "), ""
        elif heading := re.match(r"\*\*([A-Z][\w ]+)\*\*:", line):
            label = heading[1]
        elif label and line.startswith("| ") and not line.startswith("| question"):
            yield LabelExample(section, label, _cells(line))


def tables() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rows of the tables of fields and statuses, without headings."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ").removesuffix(" of a verdict")
        elif line.startswith("| `"):
            yield section, _cells(line)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
