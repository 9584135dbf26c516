"""Requests as one judge takes them: the mode that it was trained for, under a rubric it knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

from judging.errors import FieldError
from judging.judge.card import JudgeCard, shipped_judges_of
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, ReferenceMode

RequestT = TypeVar("RequestT", bound=JudgeRequest)

REFERENCE_MODES: tuple[ReferenceMode, ...] = ("any", "all")


def resolve(
    request: RequestT, judge: str, tasks: Sequence[str], card: JudgeCard | None
) -> RequestT:
    """Return a request with the mode and the reference mode that a judge takes it in.

    A request without a ``mode`` gets the judge's own, or ``critique`` if it brings one. A single
    reference means the same in both reference modes, so that a judge that knows one of them takes
    the request in that one.

    Args:
        request: Request to judge.
        judge: Name of the judge.
        tasks: Tasks that it takes.
        card: Its card; ``None`` for a zero-shot judge, which knows every rubric of its tasks.

    Raises:
        FieldError: If the task cannot judge the request, or the judge was not trained for it; the
            message says what to change.
    """
    task = get_task(request.task)
    if task.name not in tasks:
        raise FieldError(
            "task",
            f"judge '{judge}' was trained for {', '.join(tasks)}, not '{task.name}'; set task to "
            f"'{tasks[0]}' (--task {tasks[0]}), or take a judge of '{task.name}' (--judge "
            f"{' or '.join(shipped_judges_of(task.name)) or 'embedded, the untrained model'})",
        )
    if request.variant not in task.variants:
        known = ", ".join(_variants(task, card.tasks[task.name] if card else None))
        hint = (
            f"; the rubric '{request.variant}' follows from the other fields, see 'custos tasks "
            f"{task.name}'"
            if request.variant in task.rows_by_rubric()
            else ""
        )
        raise FieldError("variant", f"'{request.variant}' is not one of {known}{hint}")
    task.check(request)
    if card and task.rubric(request) not in card.tasks[task.name]:
        request = _under_known_rubric(request, task, judge, card.tasks[task.name])
    if request.mode:
        return request
    mode = card.trained_modes(task, task.rubric(request))[0] if card else "score"
    if request.given_critique is not None:
        mode = "critique"
    return request.model_copy(update={"mode": mode})


def _variants(task: JudgeTask, rubrics: Sequence[str] | None) -> list[str]:
    """Return the variants of a task that lead to one of some rubrics; ``None``: to any."""
    rows = [
        row for rubric, row in task.rows_by_rubric().items() if rubrics is None or rubric in rubrics
    ]
    taken = {JudgeRequest.model_validate(row).variant for row in rows}
    return [variant for variant in task.variants if variant in taken]


def _under_known_rubric(
    request: RequestT, task: JudgeTask, judge: str, rubrics: Sequence[str]
) -> RequestT:
    """Return a request with one reference in the reference mode that a judge knows.

    Raises:
        FieldError: If it has no reference or several, or the judge does not know the rubric in
            either mode.
    """
    if known := in_known_mode(request, task, rubrics):
        return known
    field, change = next(
        (
            (field, change)
            for field, change, changed in _changes(request, task)
            if in_known_mode(changed, task, rubrics)
        ),
        ("variant", "change the variant"),
    )
    rubric = task.rubric(request)
    others = shipped_judges_of(task.name, rubric)
    knows = "which knows it" if len(others) == 1 else "which know it"
    other = f"take {' or '.join(others)}, {knows}" if others else "take another judge"
    raise FieldError(
        field,
        f"judge '{judge}' was trained for {task.name} under {', '.join(rubrics)}, not {rubric}; "
        f"{other} (--judge), or, if these rules fit your rows as well, {change}",
    )


def in_known_mode(request: RequestT, task: JudgeTask, rubrics: Collection[str]) -> RequestT | None:
    """Return a request in a reference mode under which its rubric is one of ``rubrics``.

    It keeps its mode if that is such a mode. Only a request with one reference may change it.
    Return ``None`` if there is no such mode.
    """
    if task.rubric(request) in rubrics:
        return request
    for mode in REFERENCE_MODES if len(request.references) == 1 else ():
        in_mode = request.model_copy(update={"reference_mode": mode})
        if task.rubric(in_mode) in rubrics:
            return in_mode
    return None


def _changes(request: JudgeRequest, task: JudgeTask) -> Iterator[tuple[str, str, JudgeRequest]]:
    """Yield changes that lead to another rubric, the smallest first: field, advice, result."""
    for mode in REFERENCE_MODES:
        changed = request.model_copy(update={"reference_mode": mode})
        yield "reference_mode", f"set reference_mode to '{mode}' (--reference-mode {mode})", changed
    advice = "leave the references out" if request.references else "give a reference"
    references = () if request.references else ("any",)
    yield "references", advice, request.model_copy(update={"references": references})
    for variant in task.variants:
        changed = request.model_copy(update={"variant": variant})
        yield "variant", f"set variant to '{variant}'", changed
        for mode in REFERENCE_MODES:
            in_mode = changed.model_copy(update={"reference_mode": mode})
            yield "variant", f"set variant to '{variant}' and reference_mode to '{mode}'", in_mode
