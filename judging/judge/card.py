"""A judge's card, ``judge.json``: what it was trained to judge, and which requests it takes."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judging.errors import CustosError, FieldError, Missing, errors_at
from judging.files.records import decode_json
from judging.fingerprint import digest
from judging.models.adapters import ADAPTER_FILE
from judging.models.backbones import Backbone
from judging.models.fetched import EMBEDDED, EMBEDDED_2
from judging.models.gguf_files import NAMED, is_gguf
from judging.scoring.prompts import Encoder
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, Mode, ReferenceMode

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
    response_budget: int = Field(1024, gt=0)
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

    def going_on_from(self, earlier: JudgeCard) -> JudgeCard:
        """Add the rubrics, with their modes, of the judge that training started from.

        Only those of this card's tasks are added, before the card's own. The card stays as it is
        if the two judges' backbones differ.
        """
        on = (earlier.backbone, earlier.backbone_version)
        if on != (self.backbone, self.backbone_version):
            return self
        tasks = {
            name: tuple(dict.fromkeys((*earlier.tasks.get(name, ()), *rubrics)))
            for name, rubrics in self.tasks.items()
        }
        known = {f"{name}/{rubric}" for name, rubrics in tasks.items() for rubric in rubrics}
        kept = {rubric: modes for rubric, modes in earlier.modes.items() if rubric in known}
        hashes = {rubric: text for rubric, text in earlier.instructions.items() if rubric in known}
        changes = {
            "tasks": tasks,
            "modes": {**kept, **self.modes},
            "listed_options": self.listed_options or earlier.listed_options,
            "instructions": {**hashes, **self.instructions},
        }
        return self.model_copy(update=changes)

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

    Raises ``CustosError`` if an instruction has changed, or a response can imitate its fields.
    """
    path = folder / CARD_FILE
    with errors_at(f"{path}: not a judge card"):
        values = decode_json(path.read_bytes())
    if isinstance(values, dict) and values.get("layout", "lines") == "lines":
        raise CustosError(
            f"{path}: an earlier version trained this judge on fields that are lines of one text, "
            "which a response can imitate to be called right; train it again, with "
            f"adapter.init={path.parent} to go on from its adapter"
        )
    try:
        card = JudgeCard.model_validate(values)
    except ValidationError as error:
        raise FieldError.from_validation(error, f"{path}: not a judge card") from None
    if not card.tasks:
        raise FieldError("tasks", "no task; train the judge again", str(path))
    for field, lists in (("tasks", card.tasks), ("modes", card.modes)):
        if empty := [name for name, listed in lists.items() if not listed]:
            raise FieldError(f"{field}.{empty[0]}", "is empty; train the judge again", str(path))
    for name, rubrics in card.tasks.items():
        with errors_at(str(path)):
            task = get_task(name)
        for rubric in rubrics:
            key = f"{name}/{rubric}"
            try:
                expected = _own_hash(task, rubric)
            except (LookupError, ValueError):  # the task knows no such rubric, or no more
                expected = None
            if expected is None or card.instructions.get(key) != expected:
                raise CustosError(
                    f"{path}: the instruction of '{key}' has changed since training; "
                    f"train the judge again or use the version it came with"
                )
    return card


def run_folder(source: str) -> Path | None:
    """Find the folder of a trained judge by folder or shipped name; ``None`` for other sources."""
    for folder in (Path(source), SHIPPED / source):
        if os.path.isfile(folder / CARD_FILE):  # False for a name too long for a file.
            return folder
    return None


def shipped_judges_of(task: str, rubric: str | None = None) -> list[str]:
    """List the names of the shipped judges that were trained for a task, under a rubric of it."""
    return [
        name
        for name, tasks in tasks_of_shipped_judges().items()
        if task in tasks and (rubric is None or rubric in tasks[task])
    ]


def tasks_of_shipped_judges() -> dict[str, dict[str, list[str]]]:
    """Return by the name of each shipped judge the tasks that it was trained for, with rubrics."""
    return {name: card["tasks"] for name, card in _shipped_cards()}


def shipped_judges() -> list[str]:
    """List the names of the judges that come with custos, in alphabetical order."""
    return [name for name, _ in _shipped_cards()]


def shipped_judges_on_embedded() -> list[str]:
    """List the shipped judges on an embedded backbone: others need more fetched and more memory."""
    return [n for n, card in _shipped_cards() if card["backbone"] in (EMBEDDED, EMBEDDED_2)]


def _shipped_cards() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(SHIPPED.glob(f"*/{CARD_FILE}")):
        yield path.parent.name, json.loads(path.read_bytes())


BACKBONE_FILE = "config.json"
BACKBONES = ("embedded", EMBEDDED, EMBEDDED_2, *NAMED)
"""Names of models that need no hub."""
MOST_FOLDERS = 50


def check_name(source: str) -> None:
    """Raise ``Missing``, with the judge probably meant, if a name cannot be that of a backbone.

    A backbone is a name in :data:`BACKBONES`, a folder, a GGUF file, or ``OWNER/NAME`` on the hub.
    Nothing is loaded and no network is used.
    """
    folder = Path(source)
    if os.path.isdir(source):  # False for a name too long for a file.
        if not (folder / BACKBONE_FILE).is_file():
            raise Missing(f"judge '{source}': {_lack_of(folder)}")
        return
    owner, _, name = source.partition("/")
    is_path = owner.startswith((".", "~")) or os.path.isdir(owner)
    can_be_on_hub = bool(owner and name) and "/" not in name and not is_path
    if source in BACKBONES or is_gguf(source) or can_be_on_hub:
        return
    nearby = list(islice(_run_folders(folder.parent), MOST_FOLDERS))
    names = [*shipped_judges(), *BACKBONES, *nearby]
    nearest = get_close_matches(source, names, n=1)
    hint = f"did you mean '{nearest[0]}'? " if nearest else ""
    runs = f"; run folders here: {', '.join(nearby)}" if nearby else ""
    raise Missing(
        f"judge '{source}': there is no judge of this name and no such folder; {hint}"
        f"shipped judges: {', '.join(shipped_judges())}{runs}; untrained models: embedded, or "
        "OWNER/NAME on the hub"
    )


def _run_folders(parent: Path) -> Iterator[str]:
    """Yield the run folders beside a path, in the current folder and in ``runs``."""
    folders = dict.fromkeys((parent, Path(), Path("runs")))
    for folder in folders:
        yield from sorted(str(card.parent) for card in folder.glob(f"*/{CARD_FILE}"))


def _lack_of(folder: Path) -> str:
    """Say what a folder that is neither a judge nor a backbone lacks."""
    lack = f"{CARD_FILE} is missing, so that it is no run folder"
    if any(folder.glob("checkpoint-*")):
        return f"{lack} yet: its training has not ended; start the same training again to go on"
    if (folder / ADAPTER_FILE).is_file():
        return f"{lack}; it has {ADAPTER_FILE}, so copy the whole folder that training wrote"
    inside = list(islice(_run_folders(folder), MOST_FOLDERS))
    inside = [name for name in inside if Path(name).parent == folder]
    if inside:
        return f"{lack}; it holds run folders: {', '.join(inside)}; name one of them"
    return f"{lack}, and {BACKBONE_FILE} too, so that it is no model either"


RequestT = TypeVar("RequestT", bound=JudgeRequest)

REFERENCE_MODES: tuple[ReferenceMode, ...] = ("any", "all", "any-partial")
_KNOWN_IN: Mapping[ReferenceMode, tuple[ReferenceMode, ...]] = {
    "any": ("all", "any-partial"),
    "all": ("any", "any-partial"),
    "any-partial": ("all",),
}
"""Modes in which a request with one reference asks for the same, by its own mode. A judge that
knows no ``Partial`` cannot take one that asks for it."""


def resolve(
    request: RequestT, judge: str, tasks: Sequence[str], card: JudgeCard | None
) -> RequestT:
    """Return a request with the mode and the reference mode that a judge takes it in.

    A request without a ``mode`` gets the judge's own, or ``critique`` if it brings one. It is taken
    in a reference mode that the judge knows, as :func:`in_known_mode` says; ``any-partial`` also
    from a judge that knows both ``any`` and ``all``, of whose rules it is made. Without a card a
    judge knows every rubric of its tasks. The ``FieldError`` says what to change.
    """
    task = get_task(request.task)
    if task.name not in tasks:
        takes = "was trained for" if card else "takes"
        leave = f"; custos serve --allow-unmeasured {task.name} lets it try" * task.asks_leave
        raise FieldError(
            "task",
            f"judge '{judge}' {takes} {', '.join(tasks)}, not '{task.name}'; set task to "
            f"'{tasks[0]}' (--task {tasks[0]}), or take a judge of '{task.name}' (--judge "
            f"{' or '.join(shipped_judges_of(task.name)) or 'embedded, the untrained model'})"
            f"{leave}",
        )
    if card and task.name not in card.tasks:  # It may answer, but knows no rubric of this task.
        card = None
    if request.variant not in task.variants:
        known = ", ".join(
            variant
            for variant in task.variants
            if card is None
            or any(
                JudgeRequest.model_validate(row).variant == variant
                for rubric, row in task.rows_by_rubric().items()
                if rubric in card.tasks[task.name]
            )
        )
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


def _under_known_rubric(
    request: RequestT, task: JudgeTask, judge: str, rubrics: Sequence[str]
) -> RequestT:
    """Return a request in the reference mode that a judge knows, or say what else to change."""
    if known := in_known_mode(request, task, rubrics):
        return known
    if request.reference_mode == "any-partial":
        if {task.rubric(_in_mode(request, mode)) for mode in ("any", "all")} <= {*rubrics}:
            return request
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
    """Return a request in a reference mode under which its rubric is known; ``None`` if in none.

    A request with one reference may change it. With several, ``any`` is taken as ``any-partial`` by
    a judge that knows only that: each reference is still enough.
    """
    is_single = len(request.references) == 1
    others: Sequence[ReferenceMode] = _KNOWN_IN[request.reference_mode] if is_single else ()
    if request.reference_mode == "any" and not is_single:
        others = ("any-partial",)
    in_modes = (request, *(_in_mode(request, mode) for mode in others))
    return next((each for each in in_modes if task.rubric(each) in rubrics), None)


def _in_mode(request: RequestT, mode: ReferenceMode) -> RequestT:
    return request.model_copy(update={"reference_mode": mode})


def _changes(request: JudgeRequest, task: JudgeTask) -> Iterator[tuple[str, str, JudgeRequest]]:
    """Yield changes that lead to another rubric, the smallest first: field, advice, result."""
    for mode in REFERENCE_MODES:
        advice = f"set reference_mode to '{mode}' (--reference-mode {mode})"
        yield "reference_mode", advice, _in_mode(request, mode)
    advice = "leave the references out" if request.references else "give a reference"
    references = () if request.references else ("any",)
    yield "references", advice, request.model_copy(update={"references": references})
    for variant in task.variants:
        changed = request.model_copy(update={"variant": variant})
        yield "variant", f"set variant to '{variant}'", changed
        for mode in REFERENCE_MODES:
            advice = f"set variant to '{variant}' and reference_mode to '{mode}'"
            yield "variant", advice, _in_mode(changed, mode)
