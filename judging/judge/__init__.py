"""The judge: it takes requests and gives verdicts."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError
from judging.files.pictures import PixelLimits
from judging.fingerprint import digest, package_versions
from judging.judge.card import (
    BACKBONES,
    JudgeCard,
    RequestT,
    check_name,
    encoder_of,
    instruction_hash,
    read_card,
    resolve,
    run_folder,
)
from judging.judge.notes import (
    AFTER_GIVEN,
    KNOWS_NOTHING,
    calibration_note,
    left_out_note,
    measured_note,
    mode_note,
    pictures_note,
)
from judging.labels import log_probabilities
from judging.models.adapters import adapter_identity
from judging.models.backbones import Backbone, Dtype, load_backbone
from judging.models.gguf_files import GGUF
from judging.progress import made_ahead, progress_over
from judging.scoring.ask_model import (
    GPU_CHUNK,
    OrderedPrompt,
    PromptGroup,
    ScoredPass,
    encode_groups,
    in_chunks,
)
from judging.scoring.engine import UNWANTED, Engine, Sampling, check_scores
from judging.scoring.prompts import Encoder
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest, Pass, Signature, Verdict, each_request
from judging.verdicts.build import make_verdict, merge_passes, ruled_verdict, thoughts_note
from judging.verdicts.calibration import CalibrationSet, calibration_key, with_review

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

CALIBRATION_FILE = "calibration.json"

OnText = Callable[[JudgeRequest, Pass, str], None]
"""Called with the request, a pass that holds only the order of the responses, and new text."""

IsWanted = Callable[[JudgeRequest], bool]
"""Says whether anybody still waits for the verdict on a request."""

_EncodedChunk = tuple[list[JudgeRequest], dict[int, Verdict], list[PromptGroup]]


class Judge:
    """A backbone and, unless zero-shot, an adapter and its calibration; :meth:`load` makes one.

    Attributes:
        folder: Run folder that the judge was loaded from, if any.
        allowed: Tasks that it may judge though it was not trained for them. ``None`` if nobody
            chose: an untrained judge then takes every task, a trained one only its own.
    """

    allowed: Collection[str] | None = None

    def __init__(
        self,
        name: str,
        backbone: Backbone,
        engine: Engine,
        card: JudgeCard | None = None,
        adapter: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.folder: Path | None = None
        self.backbone = backbone
        self.engine = engine
        self.card = card
        self.adapter = adapter or {"adapter_sha256": ""}
        self.calibration: CalibrationSet | None = None
        self._fingerprints: dict[tuple[str | None, ...], str] = {}
        self.encoder = encoder_of(backbone, card)
        self._encoding = threading.Lock()  # several calls of grade may share an encoder

    @classmethod
    def load(
        cls,
        source: str,
        *,
        device: str | None = None,
        dtype: Dtype = "bfloat16",
        pixels: PixelLimits | None = None,
        token_budget: int | None = None,
        ignore_misfit: bool = False,
    ) -> Judge:
        """Load a judge.

        Args:
            source: Run folder, name of a shipped judge, or a backbone for a zero-shot judge. Only
                a name of the form ``OWNER/NAME`` is looked up on the hub.
            device: Torch device; default CUDA if there is one.
            dtype: Format that the weights are rounded to; the default is the paper's.
            pixels: Limits on pictures of a zero-shot judge; default as
                :meth:`Backbone.with_pixels` says. A trained judge has those of its card.
            token_budget: Most tokens in one forward pass; default by device.
            ignore_misfit: Leave out a calibration that is damaged or another judge's.

        Raises:
            CustosError: If the judge cannot be found, is damaged, or does not fit this version.
        """
        folder = run_folder(source)
        if folder is None:
            check_name(source)
        from judging.scoring.tree_batch import TreeModel
        from judging.scoring.tree_engine import TreeEngine

        load = partial(load_backbone, dtype=dtype, device=device)
        card = read_card(folder) if folder else None
        if card:
            backbone = load(card.backbone, version=card.backbone_version, adapter=folder)
            backbone = card.with_pixels(backbone)
        else:
            backbone = load(source).with_pixels(*(pixels or ()))
        pad_id = backbone.tokenizer.pad_token_id
        engine = TreeEngine(TreeModel(backbone.model), pad_id, token_budget, dtype)
        if folder and card:
            judge = cls.of_run(folder, card, backbone, engine, ignore_misfit=ignore_misfit)
        else:
            judge = cls(backbone.name, backbone, engine)
        check_scores(engine, judge.encoder)
        return judge

    @classmethod
    def of_run(
        cls,
        folder: Path,
        card: JudgeCard,
        backbone: Backbone,
        engine: Engine,
        *,
        ignore_misfit: bool = False,
    ) -> Judge:
        """Build the judge of a run folder.

        ``CustosError`` if its calibration is another's, unless misfits are ignored.
        """
        judge = cls(folder.name, backbone, engine, card, adapter_identity(folder))
        judge.folder = folder
        if (folder / CALIBRATION_FILE).is_file() and engine.posterior == "exact":
            try:
                judge.calibration = CalibrationSet.load(folder / CALIBRATION_FILE, judge.identity)
            except CustosError:
                if not ignore_misfit:
                    raise
        return judge

    def load_untrained(self) -> Judge:
        """Load the judge's backbone as a zero-shot judge that sees pictures as this one does."""
        return Judge.load(self.backbone.name, pixels=self.backbone.pixels)

    @property
    def tasks(self) -> tuple[str, ...]:
        """List the tasks that it may judge: those of its training, or all if it is zero-shot."""
        if self.card:
            return tuple(dict.fromkeys((*self.card.tasks, *(self.allowed or ()))))
        if self.allowed is None:
            return task_names()
        return tuple(
            name for name in task_names() if name in self.allowed or not get_task(name).asks_leave
        )

    def card_for(self, task: str) -> JudgeCard | None:
        """Return the card if it speaks of a task; ``None`` where nothing was trained for that."""
        return self.card if self.card and task in self.card.tasks else None

    @property
    def identity(self) -> str:
        """Digest what a calibration depends on, which excludes packages and the calibration."""
        return digest(self._identity_fields())

    def _identity_fields(self) -> dict[str, Any]:
        changed_pixels, name = self.backbone.changed_pixels, self.backbone.name
        is_path = Path(name).exists() or name.lower().endswith(GGUF)  # it may be gone
        is_local = is_path and name not in BACKBONES  # whose names folders here may have too
        return {
            "backbone": "local" if is_local else name,
            "backbone_version": self.backbone.version,
            **self.adapter,
            "instructions": self.card.instructions if self.card else {},
            "response_budget": self.encoder.response_budget,
            "layout": "turns",
            **(changed_pixels._asdict() if changed_pixels else {}),
            **self.engine.numerics,
        }

    def resolve(self, request: RequestT) -> RequestT:
        """Return a request in the modes that this judge takes it in, as :func:`resolve` does."""
        return resolve(request, self.name, self.tasks, self.card)

    def fingerprint(self, request: JudgeRequest) -> str:
        """Digest everything but the request that could change its verdict."""
        return self._fingerprint(self.resolve(request))

    def _fingerprint(self, request: JudgeRequest) -> str:
        """Return the fingerprint for a resolved request."""
        task = get_task(request.task)
        omits_pictures = len(self.encoder.pictures(task, request)) < len(request.images)
        key = (task.name, request.variant, task.rubric(request), request.mode, str(omits_pictures))
        if key not in self._fingerprints:
            told = self.encoder.instruction(task, request)
            self._fingerprints[key] = digest(
                {
                    **self._identity_fields(),
                    **self.engine.location,
                    "task": task.name,
                    "variant": request.variant,
                    "mode": request.mode,
                    # No key where all are shown, so that verdicts of earlier versions still count.
                    **({"pictures": "left out"} if omits_pictures else {}),
                    "instruction": instruction_hash(told, task.labels(task.rubric(request))),
                    "calibration": self.calibration.id if self.calibration else None,
                    "packages": package_versions(),
                }
            )
        return self._fingerprints[key]

    def _signature(self, request: JudgeRequest) -> Signature:
        """Return the fields of a verdict on a resolved request that name this judge."""
        return Signature(
            judge_name=self.name,
            rubric=get_task(request.task).full_rubric(request),
            judge=self._fingerprint(request),
        )

    def describe(self) -> dict[str, Any]:
        """Describe the judge for listings, with all that its fingerprints are made of."""
        trained = self.card.tasks if self.card else {}
        return {
            "name": self.name,
            "tasks": {name: trained.get(name, ()) for name in self.tasks},
            "calibration": self.calibration.id if self.calibration else None,
            **self._identity_fields(),
            **self.engine.location,
            "packages": package_versions(),
        }

    def grade(
        self,
        requests: Iterable[JudgeRequest],
        *,
        progress: bool = False,
        calibrated: bool = True,
        sampling: Sampling | None = None,
        on_text: OnText | None = None,
        is_wanted: IsWanted | None = None,
    ) -> Iterator[Verdict]:
        """Grade requests, streaming, in order.

        Args:
            requests: Any number; a chunk of them is read ahead.
            progress: Show a progress bar on standard error.
            calibrated: Apply the judge's calibration, where it has one.
            sampling: How critiques are drawn; default as :func:`critique_sampling` says.
            on_text: Called with each new piece of a critique, which may be empty.
            is_wanted: Asked before the model scores a request. One that nobody waits for any more
                costs nothing, and its verdict has status ``judge_error``.

        Yields:
            One verdict per request. A request this judge cannot take gives status ``invalid``.

        Raises:
            CustosError: If the engine fails as a whole.
        """
        reads_ahead = self.backbone.model.device.type == "cuda" and is_wanted is None
        encoder = self.encoder.twin if reads_ahead else self.encoder
        stream = _Stream(self, encoder, calibrated, sampling, on_text, is_wanted)
        taken = in_chunks(each_request(requests), encoder, GPU_CHUNK if reads_ahead else None)
        # With map, since a loop would hold its chunk while the next one is encoded.
        chunks = map(stream.encode, taken)
        verdicts: Iterable[Verdict] = itertools.chain.from_iterable(
            itertools.starmap(stream.score, made_ahead(chunks) if reads_ahead else chunks)
        )
        if progress:
            total = len(requests) if isinstance(requests, Sequence) else None
            verdicts = progress_over(verdicts, "grading", total)
        yield from verdicts

    def call_between_layers(self, call: Callable[[], None]) -> None:
        """Register a function to call before every layer, if the model runs on our own CPU.

        The function may grade other requests, with this judge too.
        """
        if have_called := getattr(self.engine, "call_between_layers", None):
            have_called(call)

    def _verdict(
        self, request: JudgeRequest, passes: list[ScoredPass] | CustosError, calibrated: bool
    ) -> Verdict:
        signature = self._signature(request)
        if isinstance(passes, CustosError):
            return Verdict.from_error(passes, request, **signature)
        task = get_task(request.task)
        shown = self.encoder.pictures(task, request)
        records = [scored.record for scored in passes]
        probabilities = merge_passes(task, records)
        key = calibration_key(task, request)
        # A calibration is not fitted on labels that follow a given critique.
        calibration = self.calibration if calibrated and request.given_critique is None else None
        is_calibrated = calibration is not None and key in calibration.rubrics
        if calibration and is_calibrated:
            probabilities = calibration.posterior(key, log_probabilities(probabilities))
        card = self.card_for(task.name)
        notes = [
            measured_note(card, request),
            mode_note(card, task, request, is_calibrated=is_calibrated),
            calibration_note(card, task, request) if calibration and not is_calibrated else None,
            pictures_note(request, self.backbone, self.engine, passes[0].prompt.scaled_pictures),
            left_out_note(request, shown),
            thoughts_note(request),
            AFTER_GIVEN if request.given_critique is not None else None,
            KNOWS_NOTHING if self.backbone.has_random_weights else None,
        ]
        verdict = make_verdict(
            request,
            task,
            records,
            probabilities,
            label_mass=sum(scored.label_mass for scored in passes) / len(passes),
            posterior=self.engine.posterior,
            truncated_input=any(scored.prompt.truncated for scored in passes),
            note="; ".join(filter(None, notes)) or None,
            **signature,
        )
        if request.risk is None or not calibrated:
            return verdict
        held_out = self.calibration.held_out.get(key) if self.calibration else None
        threshold = held_out.threshold(request.risk) if held_out else None
        return with_review(verdict, request.risk, threshold)

    def logprobs(self, requests: Sequence[JudgeRequest]) -> NDArray[float64]:
        """Compute the uncalibrated log-probabilities that a calibration is fitted on.

        The requests are resolved, of one rubric and one mode. Returns ``[requests, labels]``
        float64; the probabilities of a request sum to 1, and of a pair judged in both orders they
        are the mean of the two. Raises ``CustosError`` if a request cannot be scored.
        """
        import numpy as np

        task = get_task(requests[0].task)
        # Encoded pictures are heavy: hold no more of them at once than grading does.
        has_pictures = any(request.images for request in requests)
        chunks = in_chunks(requests, self.encoder) if has_pictures else [requests]
        rows = []
        for chunk in chunks:
            scored: dict[int, list[ScoredPass] | CustosError] = {}
            for group in encode_groups(dict(enumerate(chunk)), self.encoder):
                for fault in group.errors.values():
                    raise fault
                scored |= group.score(self.encoder, self.engine)
            for index in range(len(chunk)):
                if isinstance(passes := scored[index], CustosError):
                    raise CustosError(f"row '{chunk[index].id}': {passes}")
                merged = merge_passes(task, [each.record for each in passes])
                rows.append(list(log_probabilities(merged).values()))
        return np.array(rows)


@dataclass(frozen=True)
class _Stream:
    """One call of :meth:`Judge.grade`: its options, and the two steps of every chunk."""

    judge: Judge
    encoder: Encoder
    calibrated: bool
    sampling: Sampling | None
    on_text: OnText | None
    is_wanted: IsWanted | None

    def encode(self, chunk: list[JudgeRequest]) -> _EncodedChunk:
        """Encode a chunk; return it, its verdicts that need no model, and the other prompts."""
        judge, verdicts = self.judge, dict[int, Verdict]()
        taken: dict[int, JudgeRequest] = {}
        for index, given in enumerate(chunk):
            if self.is_wanted and not self.is_wanted(given):
                verdicts[index] = Verdict.from_error(UNWANTED, given, judge_name=judge.name)
                continue
            try:
                request = judge.resolve(given)
                if ruling := get_task(request.task).rule(request):
                    verdicts[index] = ruled_verdict(request, ruling, **judge._signature(request))
                else:
                    taken[index] = request
            except CustosError as error:
                verdicts[index] = Verdict.from_error(error, given, judge_name=judge.name)
        with judge._encoding:
            return chunk, verdicts, encode_groups(taken, self.encoder, self.sampling)

    def score(
        self, chunk: list[JudgeRequest], verdicts: dict[int, Verdict], groups: list[PromptGroup]
    ) -> list[Verdict]:
        """Score an encoded chunk; return its verdicts, in order."""
        judge, on_text, is_wanted = self.judge, self.on_text, self.is_wanted

        def report(prompt: OrderedPrompt, piece: str) -> None:
            if on_text:
                on_text(chunk[prompt.request_index], Pass(order=prompt.order), piece)

        def wanted(prompt: OrderedPrompt) -> bool:
            return is_wanted is None or is_wanted(chunk[prompt.request_index])

        hooks = (report if on_text else None, wanted if is_wanted else None)
        for group in groups:
            for index, fault in group.errors.items():
                verdicts[index] = Verdict.from_error(fault, chunk[index], judge_name=judge.name)
            for index, passes in group.score(judge.encoder, judge.engine, *hooks).items():
                verdicts[index] = judge._verdict(group.requests[index], passes, self.calibrated)
        return [verdicts[index] for index in range(len(chunk))]
