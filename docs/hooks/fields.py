"""Reference of requests, labelled rows, verdicts and tasks, from the classes in ``judging``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from docs.hooks.models import field_table, summary
from judging.tasks.base import TASKS, JudgeTask
from judging.types import JudgeRequest, LabelledExample, Pass, ReferenceMode, Verdict

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
| `truncated` | the critique reached its budget and was closed; the label was read after it | yes |
| `not_judgeable` | there is nothing to judge, such as an empty response in a pair | no |
| `unparsed` | a chat model answered with words that are no label | no |
| `judge_error` | the row could not be judged; `message` says why | no |
| `abstain` | the judge declined to decide | no |
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
        "the fields that must not be empty.\n",
        "\n".join(
            (
                "| task | what it judges | needs | variants | labels |",
                "|---|---|---|---|---|",
                *_task_rows(),
                "",
            )
        ),
    )
    return "\n".join(parts)


def _task_rows() -> Iterator[str]:
    for name in TASKS.names():
        task = TASKS.get(name)
        needs = ", ".join(f"`{field}`" for field in (*task.required, "responses"))
        if task.num_responses > 1:
            needs += f" ({task.num_responses})"
        variants = ", ".join(f"`{variant}`" for variant in task.variants)
        yield f"| `{name}` | {summary(type(task))} | {needs} | {variants} | {_labels(task)} |"


def _labels(task: JudgeTask) -> str:
    by_mode = {mode: _labels_of(task, mode) for mode in get_args(ReferenceMode)}
    if len(set(by_mode.values())) == 1:
        return by_mode["all"]
    return "; ".join(f"with `reference_mode` `{mode}`: {text}" for mode, text in by_mode.items())


def _labels_of(task: JudgeTask, mode: ReferenceMode) -> str:
    request = JudgeRequest(
        task=task.name,
        variant=task.variants[0],
        question="any",
        references=("any",),
        reference_mode=mode,
        responses=("any",) * task.num_responses,
    )
    labels = task.labels(task.rubric(request))
    if all(label.isdigit() for label in labels) and len(labels) > 3:
        return f"`{labels[0]}` to `{labels[-1]}`"
    return ", ".join(f"`{label}`" for label in labels)
