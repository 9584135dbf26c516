"""``custos tasks``: what a judge can be asked, with an input row for each task."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from cli.shared.options import AsJson, with_groups
from judging.errors import FieldError
from judging.judge.card import tasks_of_shipped_judges
from judging.tasks import TASKS, JudgeTask, get_task
from judging.types import JudgeRequest, score_of, type_of

WIDTH = 100
INDENT = 12
NO_JUDGE = "none is shipped; train one, or ask the untrained model: --judge embedded"
NOTE = """\
A rubric is what a judge is told and the labels that it may answer. It follows from the fields
'variant', 'reference_mode' (any: each reference is right by itself; any-partial: so too, and a part
of one is Partial; all: the references together are the answer) and 'references' (plain: none are
given).

Every row above works. Put such rows into a file, one on each line, and have them judged:
  custos grade --in answers.jsonl --out verdicts.jsonl"""


@with_groups
def tasks(name: Annotated[str | None, typer.Argument()] = None, as_json: AsJson = False) -> None:
    """Show what judges can be asked: every task with its labels and an input row that works.

    Example: custos tasks hieval-qs

    Options:
        name: Show only this task. Default: all.
    """
    descriptions = [describe(task) for task in ([get_task(name)] if name else TASKS)]
    if as_json:
        typer.echo(json.dumps(descriptions, indent=1))
        return
    for description in descriptions:
        typer.echo("\n".join(block(description)) + "\n")
    typer.echo(NOTE)


def describe(task: JudgeTask) -> dict[str, Any]:
    """Tell what users need to know of a task.

    ``need_references`` are the rubrics whose rows must have references too, where not all must;
    ``judges`` the shipped judges that take it, each with the rubrics of its training.
    """
    trained = tasks_of_shipped_judges()
    rows = task.rows_by_rubric()
    return {
        "name": task.name,
        "purpose": " ".join((inspect.getdoc(type(task)) or "").partition("\n\n")[0].split()),
        "variants": task.variants,
        "rubrics": {rubric: task.labels(rubric) for rubric in rows},
        "required": (*task.required, *task.response_fields),
        "need_references": [name for name, row in rows.items() if _needs_references(task, row)],
        "judges": {name: known[task.name] for name, known in trained.items() if task.name in known},
        "row": task.example_row(),
    }


def block(description: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about one task."""
    yield description["name"]
    needs = ", ".join(description["required"])
    if description["need_references"]:
        needs += f"; references under {', '.join(description['need_references'])}"
    facts = [
        ("for", description["purpose"]),
        ("needs", needs),
        ("variants", ", ".join(description["variants"])),
        *(("rubrics", text) for text in rubrics_in_words(description)),
        *(
            ("judge", f"{name}, trained on {', '.join(known)}")
            for name, known in description["judges"].items()
        ),
    ]
    if not description["judges"]:
        facts.append(("judge", NO_JUDGE))
    for heading, text in facts:
        yield from textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {heading:<{INDENT - 2}}",
            subsequent_indent=" " * INDENT,
            break_on_hyphens=False,
        )
    yield f"  {'row':<{INDENT - 2}}{json.dumps(description['row'], ensure_ascii=False)}"


def rubrics_in_words(description: Mapping[str, Any]) -> list[str]:
    """Put the labels of the rubrics in words; rubrics that share their labels share a text."""
    rubrics_by_labels: dict[tuple[str, ...], list[str]] = {}
    for rubric, labels in description["rubrics"].items():
        rubrics_by_labels.setdefault(labels, []).append(rubric)
    return [
        f"{', '.join(rubrics)}: {labels_in_words(labels)}"
        for labels, rubrics in rubrics_by_labels.items()
    ]


def labels_in_words(labels: Sequence[str]) -> str:
    """List the labels of a rubric as people read them: scores and error types apart."""
    if len(labels) > 3 and all(label.isdigit() for label in labels):
        return f"{labels[0]} to {labels[-1]}"
    types = list(dict.fromkeys(filter(None, map(type_of, labels))))
    with_type = list(dict.fromkeys(score_of(label) for label in labels if type_of(label)))
    bare = [label for label in labels if not type_of(label)]
    if not types:
        return ", ".join(bare)
    return f"{', '.join(bare)}; {' and '.join(with_type)} with one of {', '.join(types)}"


def _needs_references(task: JudgeTask, row: Mapping[str, Any]) -> bool:
    if "references" in task.required:
        return False
    without = {name: value for name, value in row.items() if name != "references"}
    try:
        task.check(JudgeRequest.model_validate(without))
    except FieldError:
        return True
    return False
