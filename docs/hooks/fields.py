"""Reference of requests, labelled rows, verdicts and tasks, from the classes in ``judging``."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cli.tasks import describe, rubrics_in_words
from docs.hooks.models import field_table
from judging.field_text import markdown
from judging.tasks.base import TASKS
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict

INTRODUCTION = """\
# Request and verdict fields

A request is the same object everywhere: a row of a file, the body of `POST /judge`, and a row of
training data. A verdict is what `custos grade` writes for every row and what `POST /judge` answers.
This page is made from the classes in `judging/types.py`. A field that is not on this page is an
error, so a misspelt name is reported and never ignored.

## Request
"""

STATUSES = """\
### Status of a verdict

| status | meaning | is there a label? |
|---|---|---|
| `scored` | the judge decided | yes |
| `truncated` | the critique reached its budget and was closed; the label was read after it | yes; \
no from a chat model, whose answer was cut off |
| `not_judgeable` | there is nothing to judge, such as an empty response in a pair | no |
| `unparsed` | a chat model answered with words that are no label | no |
| `invalid` | the row is no request that the judge can take; `message` names the field | no |
| `judge_error` | the judge failed on the row; asking again may help | no |
| `abstain` | in benchmarks: a chat model gave a pair two labels, or no rule decides the row | no |
"""


def fields_page() -> str:
    """Return the Markdown of the page."""
    request_fields = frozenset(JudgeRequest.model_fields)
    parts = (
        INTRODUCTION,
        "```json\n"
        '{"question": "Who wrote Middlemarch?", "references": ["George Eliot", "Mary Ann Evans"],\n'
        ' "reference_mode": "any", "response": "It was written by Mary Ann Evans in 1871."}\n'
        "```\n",
        field_table(JudgeRequest),
        "## Labelled row\n",
        "A labelled row is a request with what people said about it. `custos eval` and training "
        "read such rows. It has all fields of a request and these:\n",
        field_table(LabelledExample, request_fields),
        "## Verdict\n",
        field_table(Verdict),
        STATUSES,
        "### Pass\n",
        "A verdict on a pair has two passes, one in each order of its responses. Every other "
        "verdict of a model has one.\n",
        field_table(Pass),
        "## Tasks\n",
        "The task of a request says what is asked and which labels may be answered. `needs` lists "
        "the fields that must not be empty. A rubric is what a judge is told, with the labels that "
        "it may answer; it follows from `variant`, `reference_mode` and whether there are "
        "`references`. `custos tasks` prints this table, with the shipped judges of each task.\n",
        "\n".join(
            (
                "| task | what it judges | needs | variants | labels of its rubrics |",
                "|---|---|---|---|---|",
                *_task_rows(),
                "",
            )
        ),
        "Here is a request for each task that works as it is:\n",
        _task_examples(),
    )
    return "\n".join(parts)


def _task_rows() -> Iterator[str]:
    for description in map(describe, TASKS):
        needs = ", ".join(f"`{field}`" for field in description["required"])
        if description["need_references"]:
            rubrics = ", ".join(f"`{rubric}`" for rubric in description["need_references"])
            needs += f"; `references` under {rubrics}"
        variants = ", ".join(f"`{variant}`" for variant in description["variants"])
        rubrics = "; ".join(rubrics_in_words(description))
        purpose = markdown(description["purpose"])
        yield f"| `{description['name']}` | {purpose} | {needs} | {variants} | {rubrics} |"


def _task_examples() -> str:
    rows = (json.dumps(task.example_row(), ensure_ascii=False) for task in TASKS)
    return "\n".join(("```json", *rows, "```", ""))
