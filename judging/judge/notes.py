"""Notes in a verdict's message on how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from judging.files.pictures import megapixels
from judging.rules.answer_options import options_of
from judging.tasks.base import JudgeTask, get_task
from judging.types import JudgeRequest, Verdict

if TYPE_CHECKING:  # torch is not needed to read a verdict
    from judging.judge.card import JudgeCard
    from judging.models.backbones import Backbone
    from judging.scoring.engine import Engine

WAYS = {"score": "at once", "critique": "after a critique"}
"""How a judge decides in each mode."""

AFTER_GIVEN = "decided after the critique that was given"
_TRAINED_TO_DECIDE = "this judge was trained to decide"
KNOWS_NOTHING = "the weights of this judge are random, for a trial: it knows nothing"


def pictures_note(
    request: JudgeRequest, backbone: Backbone, engine: Engine, num_scaled: int
) -> str | None:
    """Say how many pictures were scaled down, if this engine did so."""
    if not num_scaled or engine.posterior != "exact":  # other servers scale as they like
        return None
    number, most = len(request.images), megapixels(backbone.pixels.max_pixels)
    pictures = "the picture was" if number == 1 else f"{num_scaled} of {number} pictures were"
    return f"{pictures} scaled down to {most}"


def left_out_note(request: JudgeRequest, shown: Sequence[str]) -> str | None:
    """Say that the judge did not see the pictures of a request, if it did not."""
    if len(shown) == len(request.images):
        return None
    pictures = "the picture was" if len(request.images) == 1 else "the pictures were"
    return f"{pictures} left out: task '{request.task}' reads text alone"


def mode_note(
    card: JudgeCard | None, task: JudgeTask, request: JudgeRequest, *, is_calibrated: bool
) -> str | None:
    """Say that a judge was not trained for the mode of a request, if it was not."""
    if card is None or request.mode is None:
        return None
    trained = card.trained_modes(task, task.rubric(request))
    if request.mode in trained:
        return None
    way, other = WAYS[trained[0]], WAYS[request.mode]
    caution = "" if is_calibrated else "; its confidence is not calibrated"
    return f"{_TRAINED_TO_DECIDE} {way}, not {other}{caution}"


def calibration_note(card: JudgeCard | None, task: JudgeTask, request: JudgeRequest) -> str | None:
    """Say that a judge's calibration leaves a request out, unless another note says so."""
    if card is None or (rubric := task.rubric(request)) not in card.tasks[task.name]:
        return None
    if request.mode not in card.trained_modes(task, rubric):
        return None
    return "its confidence is not calibrated: the judge's calibration leaves such rows out"


def measured_note(card: JudgeCard | None, request: JudgeRequest) -> str | None:
    """Say that nothing was measured of a judge on such a request: untrained, or no options seen."""
    if card is None:
        return "not measured on this task"
    task = get_task(request.task)
    if (rubric := task.rubric(request)) not in card.tasks[task.name]:
        return (
            f"this judge was not trained under {rubric}, nor measured on it; its confidence is not "
            "calibrated"
        )
    if card.listed_options or not options_of(request):
        return None
    return "this judge was not trained on questions that list options, nor measured on them"


def is_in_untrained_mode(verdict: Verdict) -> bool:
    """Tell whether a verdict was decided in a mode that its judge was not trained for."""
    return verdict.label is not None and _TRAINED_TO_DECIDE in (verdict.message or "")


def untrained_mode_caution(number: int, total: int) -> str:
    """Warn that verdicts were decided in a mode that the judge was not trained for."""
    return (
        f"{number:,} of {total:,} rows ask for a `mode` that the judge was not trained for: "
        "leave `mode` out of the rows, and it decides as it was trained to."
    )
