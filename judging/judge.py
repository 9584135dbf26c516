"""The judge: requests in, verdicts out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.calibration import CalibrationSet, calibration_key
from judging.card import (
    CARD_FILE,
    JudgeCard,
    check_version,
    instruction_hash,
    read_card,
    run_folder,
    shipped_judges,
)
from judging.errors import CustosError, FieldError, Missing
from judging.fingerprint import digest, file_sha256, package_versions
from judging.models.adapters import ADAPTER_FILE, load_adapter
from judging.models.backbones import Backbone, Dtype, load_backbone, on_device
from judging.scoring.ask_model import (
    OrderedPrompt,
    ScoredPass,
    critique_sampling,
    make_ordered_prompts,
    score_labels,
)
from judging.scoring.leaving_out import LeavingOut
from judging.scoring.prompts import Encoder
from judging.tasks import JudgeTask, get_task, task_names
from judging.tasks.base import Ruling
from judging.types import JudgeRequest, Pass, Verdict, score_of, type_of
from judging.verdicts import make_verdict, merged

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from judging.scoring.engine import Engine
    from judging.scoring.generation import Sampling

CALIBRATION_FILE = "calibration.json"
SMALLEST = 1e-300  # a probability that underflowed has a logarithm still
WINDOW = 512  # requests read ahead, to fill batches of like length


class Familiarity(IntEnum):
    """How well a judge knows a rubric; the more the better."""

    NONE = 0
    """It does not take the task."""
    OTHER_RUBRIC = 1
    """It was trained for the task, under other rubrics."""
    ZERO_SHOT = 2
    TRAINED = 3
    CALIBRATED = 4


class Judge:
    """Grades requests with a backbone and, unless zero-shot, an adapter and its calibration.

    Use :meth:`load`.
    """

    def __init__(
        self,
        name: str,
        backbone: Backbone,
        engine: Engine,
        card: JudgeCard | None = None,
        adapter_sha256: str = "",
        calibration: CalibrationSet | None = None,
    ) -> None:
        self.name = name
        self.folder: Path | None = None
        """Run folder that it was loaded from."""
        self.backbone = backbone
        self.engine = engine
        self.card = card
        self.adapter_sha256 = adapter_sha256
        self.calibration = calibration
        self._fingerprints: dict[tuple[str, str, str], str] = {}
        self.encoder = Encoder(backbone, *([card.response_budget] if card else []))

    @classmethod
    def load(cls, source: str, *, device: str | None = None, dtype: Dtype | None = None) -> Judge:
        """Load a judge.

        Args:
            source: Run folder, name of a shipped judge, or a backbone for a zero-shot judge.
            device: Torch device; default CUDA if there is one.
            dtype: What weights are rounded to, default bfloat16 (the paper's inference setting).

        Raises:
            CustosError: If it cannot be found, is damaged, or does not fit this version.
        """
        from judging.scoring.engine import TreeEngine
        from judging.scoring.tree_batch import TreeModel

        folder, dtype = run_folder(source), dtype or "bfloat16"
        if folder is None:
            try:
                backbone = load_backbone(source, dtype=dtype, device=device)
            except Missing as error:
                raise Missing(
                    f"judge '{source}': no run folder (it would hold {CARD_FILE}), "
                    f"no shipped judge ({', '.join(shipped_judges())}), and as a {error}"
                ) from None
            model, pad_id = TreeModel(backbone.model), backbone.tokenizer.pad_token_id
            engine = TreeEngine(model, pad_id, dtype=dtype)
            return cls(backbone.name, backbone, engine)

        # Merge in float32 and round once: merging into rounded weights would round twice. Buffers
        # stay as they are: rounded rotary frequencies would be other positions than in training.
        # On the CPU, as float32 would take a device twice what the judge then needs.
        card = read_card(folder)
        backbone = load_backbone(
            card.backbone, dtype="float32", device="cpu", version=card.backbone_version
        )
        check_version(folder, card, backbone)
        merged = load_adapter(backbone.model, folder).merge_and_unload()
        if dtype == "bfloat16":
            for parameter in merged.parameters():
                parameter.data = parameter.data.bfloat16()
        merged = on_device(merged.eval(), device)
        engine = TreeEngine(TreeModel(merged), backbone.tokenizer.pad_token_id, dtype=dtype)
        return cls.of_run(folder, card, backbone, engine)

    @classmethod
    def of_run(cls, folder: Path, card: JudgeCard, backbone: Backbone, engine: Engine) -> Judge:
        """The judge of a run folder, with the calibration that lies there.

        Raises:
            CustosError: If the calibration is damaged or belongs to another judge.
        """
        judge = cls(folder.name, backbone, engine, card, file_sha256(folder / ADAPTER_FILE))
        judge.folder = folder
        if (folder / CALIBRATION_FILE).is_file() and engine.posterior == "exact":
            judge.calibration = CalibrationSet.load(folder / CALIBRATION_FILE, judge.identity)
        return judge

    @property
    def backbone_name(self) -> str:
        """What to load for the zero-shot comparison."""
        return self.backbone.name

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks it was trained for; every task when zero-shot."""
        return tuple(self.card.tasks) if self.card else task_names()

    def familiarity(self, task: str, rubric: str, key: str | None = None) -> Familiarity:
        """How well it knows a rubric, to choose among judges.

        Args:
            task: Name of the task.
            rubric: Rubric of it.
            key: What its calibration would go by (:func:`calibration_key`); default that of a
                label read at once.
        """
        if task not in self.tasks:
            return Familiarity.NONE
        if self.calibration and (key or f"{task}/{rubric}") in self.calibration.rubrics:
            return Familiarity.CALIBRATED
        if self.card is None:
            return Familiarity.ZERO_SHOT
        return Familiarity.TRAINED if rubric in self.card.tasks[task] else Familiarity.OTHER_RUBRIC

    @property
    def identity(self) -> str:
        """Digest of what a calibration is bound to: all but package versions and calibration."""
        return digest(self._identity_fields())

    def _identity_fields(self) -> dict[str, Any]:
        return {
            "backbone": self.backbone.name if not Path(self.backbone.name).is_dir() else "local",
            "backbone_version": self.backbone.version,
            "adapter_sha256": self.adapter_sha256,
            "instructions": self.card.instructions if self.card else {},
            "response_budget": self.encoder.response_budget,
            **self.engine.numerics,
        }

    def fingerprint(self, request: JudgeRequest) -> str:
        """Digest of everything that could change this request's verdict."""
        task = get_task(request.task)
        key = (task.name, request.variant, task.rubric(request))
        if key not in self._fingerprints:
            self._fingerprints[key] = self._fingerprint(task, request)
        return self._fingerprints[key]

    def _fingerprint(self, task: JudgeTask, request: JudgeRequest) -> str:
        return digest(
            {
                **self._identity_fields(),
                **self.engine.location,
                "task": task.name,
                "variant": request.variant,
                "instruction": instruction_hash(task, task.rubric(request)),
                "calibration": self.calibration.id if self.calibration else None,
                "packages": package_versions(),
            }
        )

    def describe(self) -> dict[str, Any]:
        """Card for listings."""
        return {
            "name": self.name,
            "tasks": self.card.tasks if self.card else dict.fromkeys(self.tasks, ()),
            "calibration": self.calibration.id if self.calibration else None,
            **self._identity_fields(),
            **self.engine.location,
        }

    def grade(
        self,
        requests: Iterable[JudgeRequest],
        *,
        progress: bool = False,
        calibrated: bool = True,
        sampling: Sampling | None = None,
        on_text: Callable[[JudgeRequest, Pass, str], None] | None = None,
    ) -> Iterator[Verdict]:
        """Grade requests, streaming, in order.

        Args:
            requests: Any number; read ahead by a window.
            progress: Show a progress bar.
            calibrated: Apply the judge's calibration, where it has one.
            sampling: How critiques are drawn; default as :func:`critique_sampling` says.
            on_text: Called with each new piece of a critique as it is drawn.

        Yields:
            One verdict per request. A request this judge cannot take gives status ``judge_error``.
        """
        if progress:
            from rich.progress import track

            total = len(requests) if isinstance(requests, Sequence) else None
            requests = track(requests, "grading", total=total)
        stream = iter(requests)
        while window := list(itertools.islice(stream, WINDOW)):
            yield from self._grade_window(window, calibrated, sampling, on_text)

    def logprobs(self, requests: Sequence[JudgeRequest]) -> NDArray[float64]:
        """Log-posterior ``[requests, labels]`` of valid requests of one rubric and mode.

        What a calibration is fitted on: normalised over the labels, of a pair over both orders.
        """
        import numpy as np

        task = get_task(requests[0].task)
        # Pictures are encoded here and heavy: no more of them at once than when grading.
        size = WINDOW if any(request.images for request in requests) else len(requests)
        rows = []
        for start in range(0, len(requests), size):
            presented = [
                shown
                for index, request in enumerate(requests[start : start + size])
                for shown in make_ordered_prompts(index, request, task, self.encoder)
            ]
            rubric, drawn = task.rubric(requests[0]), critique_sampling(requests[0])
            readings = self._read(presented, task, rubric, self.engine, drawn)
            rows += [
                list(_log(merged(task, [one.passed for one in own])).values())
                for _, own in sorted(readings.items())
            ]
        return np.array(rows)

    def _grade_window(
        self,
        window: list[JudgeRequest],
        calibrated: bool,
        sampling: Sampling | None,
        on_text: Callable[[JudgeRequest, Pass, str], None] | None,
    ) -> list[Verdict]:
        verdicts: dict[int, Verdict] = {}
        groups: dict[tuple[str, str, Sampling | None], list[OrderedPrompt]] = {}
        for index, request in enumerate(window):
            try:
                task = self._task(request)
                if ruling := task.rule(request):
                    verdicts[index] = self._ruled(request, ruling)
                    continue
                key = (task.name, task.rubric(request), critique_sampling(request, sampling))
                groups.setdefault(key, []).extend(
                    make_ordered_prompts(index, request, task, self.encoder)
                )
            except CustosError as error:
                verdicts[index] = Verdict.from_error(error, request)

        def tell(shown: OrderedPrompt, piece: str) -> None:
            if on_text:
                on_text(window[shown.index], Pass(order=shown.order), piece)

        told = tell if on_text else None
        for (name, rubric, drawn), asked in groups.items():
            task = get_task(name)
            readings, failed = self._read_or_leave_out(asked, task, rubric, drawn, told)
            for index, fault in failed.items():
                request = window[index]
                verdicts[index] = Verdict.from_error(fault, request, self.fingerprint(request))
            truncated = {shown.index for shown in asked if shown.prompt.truncated}
            for index, own in readings.items():
                passes = [reading.passed for reading in own]
                verdicts[index] = make_verdict(
                    window[index],
                    task,
                    passes,
                    self._calibrated(
                        calibration_key(task, window[index]), merged(task, passes), calibrated
                    ),
                    label_mass=sum(reading.label_mass for reading in own) / len(own),
                    posterior=self.engine.posterior,
                    truncated_input=index in truncated,
                    judge=self.fingerprint(window[index]),
                )
        return [verdicts[index] for index in range(len(window))]

    def _read_or_leave_out(
        self,
        presented: list[OrderedPrompt],
        task: JudgeTask,
        rubric: str,
        drawn: Sampling | None,
        tell: Callable[[OrderedPrompt, str], None] | None,
    ) -> tuple[dict[int, list[ScoredPass]], dict[int, CustosError]]:
        """:meth:`_read`, leaving out requests that the engine cannot read.

        Returns:
            The readings, and the errors of the requests left out, by index.
        """
        engine = LeavingOut(self.engine, [shown.index for shown in presented])
        readings = self._read(presented, task, rubric, engine, drawn, tell)
        return {i: own for i, own in readings.items() if i not in engine.errors}, engine.errors

    def _read(
        self,
        presented: Sequence[OrderedPrompt],
        task: JudgeTask,
        rubric: str,
        engine: Engine,
        drawn: Sampling | None,
        tell: Callable[[OrderedPrompt, str], None] | None = None,
    ) -> dict[int, list[ScoredPass]]:
        """Readings of each request, by its index."""
        read = score_labels(presented, task, rubric, self.encoder, engine, drawn, tell)
        by_request: dict[int, list[ScoredPass]] = {}
        for shown, reading in zip(presented, read, strict=True):
            by_request.setdefault(shown.index, []).append(reading)
        return by_request

    def _calibrated(
        self, key: str, probabilities: dict[str, float], wanted: bool
    ) -> dict[str, float]:
        if not (wanted and self.calibration and key in self.calibration.rubrics):
            return probabilities
        return self.calibration.posterior(key, _log(probabilities))

    def _task(self, request: JudgeRequest) -> JudgeTask:
        task = get_task(request.task)
        task.check(request)
        if task.name not in self.tasks:
            raise FieldError(
                "task",
                f"judge '{self.name}' was trained for {', '.join(self.tasks)}, not '{task.name}'",
            )
        rubric = task.rubric(request)
        if self.card and rubric not in (known := self.card.tasks[task.name]):
            variants = {name.partition("/")[0] for name in known}
            field = "reference_mode" if request.variant in variants else "variant"
            raise FieldError(
                field,
                f"judge '{self.name}' was trained for {task.name} under "
                f"{', '.join(known)}, not {rubric}",
            )
        return task

    def _ruled(self, request: JudgeRequest, ruling: Ruling) -> Verdict:
        return Verdict(
            id=request.id,
            status=ruling.status,
            label=score_of(ruling.label) if ruling.label else None,
            error_type=type_of(ruling.label or "") or None,
            message=ruling.message,
            judge=self.fingerprint(request),
        )


def _log(probabilities: dict[str, float]) -> dict[str, float]:
    return {label: math.log(max(p, SMALLEST)) for label, p in probabilities.items()}
