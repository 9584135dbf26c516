"""Tasks in a user's own words, to repeat a published grader."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from judging.errors import CustosError
from judging.files.yaml_text import load_yaml
from judging.fingerprint import digest
from judging.tasks.base import get_task, judge_task, task_names
from judging.types import JudgeRequest

MARKS = ("<|QUESTION|>", "<|REF_ANS|>", "<|RESPONSE|>")
"""Marks of ChartHal's official prompts, for question, reference and response."""
_MARK = re.compile("|".join(map(re.escape, MARKS)))


def register_rubrics(task: str, path: Path) -> str:
    """Declare a task with a user's own instructions in place of another task's.

    ``path`` is a YAML file that maps each of its rubrics to an instruction. One with a mark of
    :data:`MARKS` is the whole message, as official graders send it: chat models get nothing else.
    The new task's name holds a hash of the instructions; judges trained on ``task`` refuse it.
    Rubrics that are missing or unknown raise ``CustosError``.
    """
    published = get_task(task)
    instructions = _read_rubrics(path, tuple(published.rows_by_rubric()))
    task_name = f"{task}:{digest(instructions)[:8]}"
    if task_name not in task_names():

        @judge_task
        class Reworded(type(published)):  # type: ignore[misc]  # its class is known at run time alone
            """Task with the same rubrics and labels, and the user's instructions."""

            name = task_name

            def instruction(self, rubric: str) -> str:
                """Return the instruction of the file."""
                return instructions[rubric]

            def whole_prompt(self, request: JudgeRequest) -> str | None:
                """Return the instruction with its marks replaced; ``None`` if it has none."""
                text = instructions[self.rubric(request)]
                return _filled(text, request) if _MARK.search(text) else None

            def parse(self, text: str, rubric: str) -> str | None:
                """Return the label, read as the official grader does where it was asked so."""
                is_whole = _MARK.search(instructions[rubric]) is not None
                parse = published.parse_official if is_whole else published.parse
                return parse(text, rubric)

    return task_name


def _filled(text: str, request: JudgeRequest) -> str:
    """Return a message with its marks replaced, none of them within what replaces another."""
    values = (request.question, "; ".join(request.references), request.response)
    fields = dict(zip(MARKS, values, strict=True))
    return _MARK.sub(lambda mark: fields[mark[0]], text)


def _read_rubrics(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    try:
        rubrics = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CustosError(f"{path}: cannot be read: {error}") from None
    if not isinstance(rubrics, dict):
        raise CustosError(f"{path}: expected every rubric's name and its text")
    if unknown := [name for name in rubrics if name not in names]:
        raise CustosError(f"{path}: rubric '{unknown[0]}' is not one of {', '.join(names)}")
    for name in names:
        if not isinstance(rubrics.get(name), str) or not rubrics[name].strip():
            raise CustosError(f"{path}: rubric '{name}' has no text")
    return {name: rubrics[name].strip() for name in names}
