"""The card of a judge, ``judge.json``: what its adapter was trained to judge."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from judging.errors import CustosError, FieldError, errors_at
from judging.files.records import decode_json
from judging.fingerprint import digest
from judging.models.backbones import Backbone
from judging.scoring.prompts import Encoder
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, Mode

CARD_FILE = "judge.json"
SHIPPED = Path(__file__).parents[2] / "judges"


class JudgeCard(BaseModel):
    """``judge.json``: what an adapter was trained to judge, and under which settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str
    backbone_version: str
    tasks: dict[str, tuple[str, ...]]
    """Task name to the rubrics it was trained on."""
    modes: dict[str, tuple[Mode, ...]] = {}
    """``task/rubric`` to the modes it was trained for, its own mode first. Where it does not say,
    tasks that write critiques were trained on critiques."""
    response_budget: int = 1024
    """Most tokens of one response; the middle of a longer one is cut out."""
    layout: Literal["turns"] = "turns"
    """How its prompts keep fields apart: each is a turn of the chat template, which no text can
    end."""
    min_pixels: int | None = None
    """Smaller pictures are scaled up. A card without limits leaves those of the backbone."""
    max_pixels: int | None = None
    """Larger pictures are scaled down."""
    shows_all_pictures: bool = False
    """Pictures are shown for every task, also for one that reads text alone."""
    listed_options: bool = False
    """It was trained on questions that list answer options."""
    random_weights: bool = False
    """True if the backbone's weights were drawn, not trained: the judge knows nothing."""
    instructions: dict[str, str]
    """``task/rubric`` to the instruction's hash, which shows a changed wording."""

    @classmethod
    def for_rubrics(
        cls,
        backbone: Backbone,
        tasks: dict[str, tuple[str, ...]],
        response_budget: int,
        modes: dict[str, tuple[Mode, ...]] | None = None,
        *,
        listed_options: bool = False,
    ) -> JudgeCard:
        """Make the card of a judge that is trained on some rubrics, with today's instructions."""
        return cls(
            backbone=backbone.name,
            backbone_version=backbone.version,
            tasks=tasks,
            modes=modes or {},
            response_budget=response_budget,
            **(backbone.pixels._asdict() if backbone.reads_pictures else {}),
            listed_options=listed_options,
            random_weights=backbone.has_random_weights,
            instructions={
                f"{name}/{rubric}": _own_hash(get_task(name), rubric)
                for name, rubrics in tasks.items()
                for rubric in rubrics
            },
        )

    @classmethod
    def for_requests(
        cls, backbone: Backbone, requests: Iterable[JudgeRequest], response_budget: int
    ) -> JudgeCard:
        """Make the card of a judge that takes all requests of the rubrics of these."""
        rubrics: dict[str, set[str]] = {}
        for request in requests:
            task = get_task(request.task)
            rubrics.setdefault(task.name, set()).add(task.rubric(request))
        tasks = {name: tuple(sorted(of_task)) for name, of_task in rubrics.items()}
        return cls.for_rubrics(backbone, tasks, response_budget)

    def with_pixels(self, backbone: Backbone) -> Backbone:
        """Return a backbone that sees pictures as the judge saw them in training."""
        if self.max_pixels is None:
            return backbone
        return backbone.with_pixels(self.min_pixels, self.max_pixels)

    def trained_modes(self, task: JudgeTask, rubric: str) -> tuple[Mode, ...]:
        """Return the modes that the judge was trained for under a rubric, its own mode first."""
        default: tuple[Mode, ...] = ("critique",) if task.critique else ("score",)
        return self.modes.get(f"{task.name}/{rubric}", default)


def encoder_of(backbone: Backbone, card: JudgeCard | None) -> Encoder:
    """Make the encoder of a judge, which shows requests as in its training, if it had any."""
    if card is None:
        return Encoder(backbone, is_untrained=True)
    return Encoder(backbone, card.response_budget, shows_all_pictures=card.shows_all_pictures)


def instruction_hash(instruction: str, labels: Sequence[str]) -> str:
    """Return a hash of what a judge is told and may answer under a rubric."""
    return digest({"instruction": instruction, "labels": labels})


def _own_hash(task: JudgeTask, rubric: str) -> str:
    return instruction_hash(task.instruction(rubric), task.labels(rubric))


def read_card(folder: Path) -> JudgeCard:
    """Read ``judge.json`` and check that the judge reads today's prompts as it was trained to.

    Raises:
        CustosError: If it is malformed, an instruction has changed, or the judge was trained on
            fields that a response can imitate, as those of earlier versions were.
    """
    path = folder / CARD_FILE
    with errors_at(f"{path}: not a judge card"):
        values = decode_json(path.read_bytes())
    if isinstance(values, dict) and values.get("layout", "lines") == "lines":
        raise _forgeable(path)
    try:
        card = JudgeCard.model_validate(values)
    except ValidationError as error:
        raise FieldError.from_validation(error, f"{path}: not a judge card") from None
    for name, rubrics in card.tasks.items():
        with errors_at(str(path)):
            task = get_task(name)
        for rubric in rubrics:
            key = f"{name}/{rubric}"
            if card.instructions.get(key) != _own_hash(task, rubric):
                raise CustosError(
                    f"{path}: the instruction of '{key}' has changed since training; "
                    f"train the judge again or use the version it came with"
                )
    return card


def _forgeable(path: Path) -> CustosError:
    return CustosError(
        f"{path}: an earlier version trained this judge on fields that are lines of one text, "
        "which a response can imitate to be called right; train it again, with "
        f"adapter.init={path.parent} to go on from its adapter"
    )


def run_folder(source: str) -> Path | None:
    """Return the folder of a trained judge, given the folder or the name of a shipped judge.

    Return ``None`` for any other source.
    """
    for folder in (Path(source), SHIPPED / source):
        if os.path.isfile(folder / CARD_FILE):  # False for a name too long for a file.
            return folder
    return None


def shipped_judges_of(task: str, rubric: str | None = None) -> list[str]:
    """Return the names of the shipped judges that were trained for a task, under a rubric of it."""
    return [
        name
        for name, tasks in tasks_of_shipped_judges().items()
        if task in tasks and (rubric is None or rubric in tasks[task])
    ]


def tasks_of_shipped_judges() -> dict[str, dict[str, list[str]]]:
    """Return by the name of each shipped judge the tasks that it was trained for, with rubrics."""
    return {
        name: json.loads((SHIPPED / name / CARD_FILE).read_text(encoding="utf-8"))["tasks"]
        for name in shipped_judges()
    }


def shipped_judges() -> list[str]:
    """Return the names of the judges that come with custos, in alphabetical order."""
    return sorted(card.parent.name for card in SHIPPED.glob(f"*/{CARD_FILE}"))
