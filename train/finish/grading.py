"""The end of a run: rows graded by all its processes, and the calibration of its judge.

Verdicts are kept until the run has its report. A judge is calibrated on a split that nothing else
has used.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from accelerate import Accelerator
from peft import set_peft_model_state_dict
from rich.console import Console
from safetensors.torch import load_file

from evaluation.outcomes import question_numbers
from evaluation.report.evaluate import grade_examples, resolve_examples
from evaluation.report.reliability import JSON, MARKDOWN
from judging.errors import CustosError
from judging.files.kept_work import KeptFile, KeptLine, Origin
from judging.files.records import write_json
from judging.fingerprint import digest, file_sha256, picture_sha256
from judging.judge import CALIBRATION_FILE, Judge
from judging.judge.card import CARD_FILE, JudgeCard
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE, adapter_identity
from judging.models.backbones import load_backbone
from judging.progress import grouped, in_batches, progress_over
from judging.scoring.ask_model import CHUNK
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task, labels_of
from judging.types import LabelledExample, Verdict, score_of
from judging.verdicts.calibration import (
    Calibration,
    CalibrationSet,
    HeldOutVerdicts,
    calibration_key,
)
from judging.verdicts.calibration_fit import (
    SMALL_SPLIT,
    check_labels,
    cross_fitted_verdicts,
    fit_score_calibration,
    fit_type_calibration,
)
from train.loop.sharding import is_sharded
from train.loop.trainer import BaseTrainer
from train.setup.starting_adapter import with_adapter
from train.tracking.throughput import PARTS

LONGEST_WAIT = timedelta(days=2)
"""How long a process waits for the slowest; collectives of a GPU give up after ten minutes."""
TOGETHER = 8
"""Most rows of one question that stay on one process, which reads the question once."""
PICTURE_CHARACTERS = 4000
"""Characters of text that take a judge about as long as a picture of one megapixel."""
JUDGE_FILES = (ADAPTER_FILE, ADAPTER_CONFIG, CARD_FILE, CALIBRATION_FILE)
FOLDER = "graded"
"""Folder in the run folder; it is deleted when the run is finished."""
MOST_SCORED = 2000
"""Most rows that the start is graded on ..."""
MOST_CRITIQUES = 200
"""... and most where it writes a critique of each."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Processes:
    """The processes of a run, which grade its last rows; this one is ``rank`` of ``count``."""

    rank: int = 0
    count: int = 1
    group: Any = None
    """Group of all processes that talks over the network and waits long; ``None`` for one."""

    @classmethod
    def of(cls, accelerator: Accelerator) -> Processes:
        """Describe the processes of an accelerator; all of them must call this."""
        if accelerator.num_processes == 1:
            return cls()
        group = torch.distributed.new_group(backend="gloo", timeout=LONGEST_WAIT)
        return cls(accelerator.process_index, accelerator.num_processes, group)

    @property
    def is_first(self) -> bool:
        """Tell whether this process writes files and shows progress."""
        return self.rank == 0

    def gather(self, indices: Sequence[int], results: Sequence[ResultT]) -> list[ResultT]:
        """Gather the results of all processes in the order of the rows, on every process."""
        pairs = dict(zip(indices, results, strict=True))
        if self.count > 1:
            shares: list[Any] = [None] * self.count
            torch.distributed.all_gather_object(shares, pairs, group=self.group)
            pairs = {index: result for share in shares for index, result in share.items()}
        return [pairs[index] for index in sorted(pairs)]

    def load_judge(self, folder: Path, device: torch.device) -> Judge:
        """Load the judge that the first process has written to the run folder, on every process.

        A calibration of another judge is left out. Machines need not share a disk: a process that
        lacks the files gets them sent.
        """
        files = [folder / name for name in JUDGE_FILES if (folder / name).is_file()]
        of_all = self.gather([self.rank], [{file.name: file_sha256(file) for file in files}])
        if all(hashes == of_all[0] for hashes in of_all):
            return Judge.load(str(folder), device=str(device), ignore_misfit=True)
        mine = [{file.name: file.read_bytes() for file in files} if self.is_first else {}]
        torch.distributed.broadcast_object_list(mine, src=0, group=self.group)
        with tempfile.TemporaryDirectory() as scratch:
            received = Path(scratch) / folder.name
            received.mkdir()
            for name, content in mine[0].items():
                (received / name).write_bytes(content)
            judge = Judge.load(str(received), device=str(device), ignore_misfit=True)
        judge.folder = folder
        return judge


def share_rows(examples: Sequence[LabelledExample], count: int) -> list[list[int]]:
    """Share rows among processes, long ones first, always to the process that has least to do.

    Rows of one question stay together, ``TOGETHER`` at a time. The result has the indices of the
    rows of each of ``count`` processes; none if there are too few.
    """
    asked = [example.question for example in examples]
    by_question = grouped(range(len(asked)), asked.__getitem__)
    units = [unit for of_one in by_question.values() for unit in in_batches(of_one, TOGETHER)]
    costs = [0] * len(units)  # about how many characters a judge reads and writes
    for number, unit in enumerate(units):
        for row in (examples[index] for index in unit):
            texts = (row.question, *row.choices, *row.references, *row.responses)
            pictures = PICTURE_CHARACTERS * len(get_task(row.task).pictures(row))
            written = 4 * row.critique_tokens if row.mode == "critique" else 0
            costs[number] += 1 + sum(map(len, texts)) + pictures + written
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for number in sorted(range(len(units)), key=lambda number: -costs[number]):
        rank = loads.index(min(loads))
        shares[rank] += units[number]
        loads[rank] += costs[number]
    return shares


class KeptChunk(KeptLine, Generic[ResultT]):
    """A line of a kept file: the results of a chunk of rows.

    A chunk is kept whole: the last digits of a result depend on the other rows of its chunk.
    """

    number: int
    """Number of the chunk among those of its process."""
    results: list[ResultT]

    @property
    def origin(self) -> Origin:
        """Identify the chunk by its number, and by the key of the judge and its rows."""
        return self.number, self.key


@dataclass(frozen=True)
class KeptGrades:
    """Grading by all processes of a run, each of which keeps its results in a file of its own.

    A run that is stopped while it grades goes on with the chunk of rows that it was stopped in.
    """

    run_folder: Path
    """Folder of the run; machines need not share it."""
    processes: Processes

    def grade(
        self,
        part: str,
        judge: Judge,
        rows: Sequence[LabelledExample],
        grade: Callable[[Sequence[LabelledExample]], list[ResultT]],
        line_type: type[KeptChunk[ResultT]],
    ) -> list[ResultT]:
        """Grade rows on all processes, which all get one result per row; the first shows progress.

        ``part`` names the kept file and the progress bar. ``grade`` returns a result per row of a
        chunk, of the type that ``line_type`` holds.
        """
        processes = self.processes
        mine = share_rows(rows, processes.count)[processes.rank]
        chunks = list(in_batches([rows[index] for index in mine], CHUNK))
        origins = [(number, _key(judge, chunk)) for number, chunk in enumerate(chunks)]
        file = KeptFile(self._path(part), line_type)

        def results() -> Iterator[ResultT]:
            kept = {line.number: line.results for line in file.matching(origins)}
            file.path.parent.mkdir(parents=True, exist_ok=True)
            for (number, key), chunk in zip(origins, chunks, strict=True):
                if number not in kept:
                    kept[number] = grade(chunk)
                    file.append([KeptChunk(key=key, number=number, results=kept[number])])
                yield from kept[number]

        is_shown = processes.is_first and mine
        graded = progress_over(results(), part, len(mine)) if is_shown else results()
        return processes.gather(mine, list(graded))

    def is_begun(self, part: str) -> bool:
        """Tell whether an earlier run of this process has graded some of a part."""
        return self._path(part).exists()

    def delete(self) -> None:
        """Delete the kept files, once all processes have called this."""
        self.processes.gather([self.processes.rank], [None])
        shutil.rmtree(self.run_folder / FOLDER, ignore_errors=True)

    def _path(self, part: str) -> Path:
        name = f"{part.replace(' ', '-')}-{self.processes.rank}-of-{self.processes.count}.jsonl"
        return self.run_folder / FOLDER / name


def _key(judge: Judge, rows: Sequence[LabelledExample]) -> str:
    """Hash a judge, rows and the content of their pictures."""
    return digest(
        {
            "judge": judge.describe(),
            "rows": [row.model_dump(mode="json") for row in rows],
            "pictures": [picture_sha256(source) for row in rows for source in row.images],
        }
    )


@PARTS.measured("grading")
def grade_start(
    trainer: BaseTrainer, examples: Sequence[LabelledExample], kept: KeptGrades
) -> dict[int, Verdict]:
    """Grade test rows with the judge that the run started from, on all processes.

    The model of the run is still loaded, so this costs no second loading: the adapter is put back
    to what it was at the start, or switched off where the run began without one. A rubric that the
    start was not trained for is graded like the others: that is where training began. It grades in
    the modes that the rows are learnt in, as the finished judge will.

    The verdicts have the index of their row: of all rows, or of the :func:`affordable_rows`. There
    are none if the run chose its start.
    """
    if trainer.progress.chosen["step"] == 0:
        return {}
    recipe, folder = trainer.recipe, trainer.recipe.adapter.init_folder
    backbone = trainer.rows.train.encoder.backbone
    card = JudgeCard.for_requests(backbone, examples, recipe.run.response_budget)
    card = card.model_copy(update={"modes": trainer.rows.train.modes()})
    with _model_of_start(trainer) as tree_model, trainer.accelerator.autocast():
        engine = TreeEngine(tree_model, backbone.tokenizer.pad_token_id)
        adapter = adapter_identity(folder) if folder else None
        judge = Judge("start", backbone, engine, card, adapter)
        if folder and (folder / CALIBRATION_FILE).is_file():
            judge.calibration = CalibrationSet.read(folder / CALIBRATION_FILE)
        resolved = resolve_examples(judge, examples)
        indices = affordable_rows(resolved, recipe.run.seed)
        chosen = [resolved[index] for index in indices]
        grade = partial(grade_examples, judge)
        graded = kept.grade("grading the start", judge, chosen, grade, KeptChunk[Verdict])
    return dict(zip(indices, graded, strict=True))


def affordable_rows(examples: Sequence[LabelledExample], seed: int) -> list[int]:
    """Choose the indices of the rows to grade with the start, in order.

    These are all rows, or as many whole questions, drawn by the seed, as fit under the limit. If no
    question fits, they are the first rows of one.
    """
    critiques = (row.mode != "score" and get_task(row.task).critique for row in examples)
    limit = MOST_CRITIQUES if any(critiques) else MOST_SCORED
    if len(examples) <= limit:
        return list(range(len(examples)))
    asked = [example.group or example.asked for example in examples]
    questions = grouped(range(len(asked)), asked.__getitem__)
    drawn: list[int] = []
    order = random.Random(f"start/{seed}").sample(list(questions), len(questions))
    for question in order:
        if len(drawn) + len(questions[question]) <= limit:
            drawn += questions[question]
    return sorted(drawn or questions[order[0]][:limit])


@contextmanager
def _model_of_start(trainer: BaseTrainer) -> Iterator[TreeModel]:
    """Give the trainer's model the adapter of the start, or none if the run began without one.

    Processes that share one model would have to grade the same rows: each loads a whole one.
    """
    recipe, device = trainer.recipe, trainer.accelerator.device
    if is_sharded(trainer.accelerator):
        trainer.free_memory()
        backbone = load_backbone(recipe.backbone, dtype=recipe.run.dtype, device=device)
        yield TreeModel(with_adapter(backbone, recipe).model).eval()
        return
    tree_model, folder = trainer.tree_model.eval(), recipe.adapter.init_folder
    if folder is None:
        with tree_model.backbone.disable_adapter():
            yield tree_model
        return
    with torch.no_grad():
        set_peft_model_state_dict(tree_model.backbone, load_file(folder / ADAPTER_FILE))
    yield tree_model


@PARTS.measured("calibration")
def calibrate(
    judge: Judge, examples: Sequence[LabelledExample], kept: KeptGrades
) -> CalibrationSet | None:
    """Score a calibration split on all processes; fit a calibration, ``None`` if nothing fits.

    The judge is loaded as it will be served, so that rounding and merging are calibrated too. The
    first process writes ``calibration.json`` to the run folder. One that the judge has is kept.
    """
    if judge.calibration is not None:
        text = f"{CALIBRATION_FILE} fits this judge and is kept: without it the same command fits"
        _warn(kept.processes, f"{text} another")
        return judge.calibration
    rows = rows_to_score(judge, examples, kept.processes)
    if not rows:
        _warn(kept.processes, "the judge stays uncalibrated: no calibration row can be fitted on")
        return None
    logprobs = kept.grade(
        "calibrating", judge, rows, partial(score_rows, judge), KeptChunk[list[float]]
    )
    fitted = fit_calibrations(judge, rows, logprobs, kept.processes)
    if kept.processes.is_first:
        for name in (JSON, MARKDOWN):  # a reliability card was measured with another calibration
            (kept.run_folder / name).unlink(missing_ok=True)
        write_json(kept.run_folder / CALIBRATION_FILE, fitted.model_dump())
    return fitted


def rows_to_score(
    judge: Judge, examples: Sequence[LabelledExample], processes: Processes
) -> list[LabelledExample]:
    """Choose the rows to fit on, as the judge takes them, in order.

    Rows that a rule decides are left out. So are those of rubrics whose rows all have one label,
    with a warning: nothing can be fitted on them, however the judge scores them. A label that no
    row has is named, as biases need rows of all.
    """
    rows: list[LabelledExample] = []
    for example in examples:
        with suppress(CustosError):  # as it is, if the judge does not take it or lacks the label
            resolved = judge.resolve(example)
            get_task(resolved.task).target(resolved)
            example = resolved
        if get_task(example.task).rule_if_empty(example) is None:
            rows.append(example)
    kept: set[int] = set()
    for key, indices in _by_key(rows).items():
        scores = dict.fromkeys(map(score_of, labels_of(rows[indices[0]])))
        occurring = {score_of(rows[index].label) for index in indices}
        try:
            check_labels(occurring)
        except CustosError as error:
            _warn(processes, f"{key} stays uncalibrated: {error}")
            continue
        kept.update(indices)
        if absent := [f"'{score}'" for score in scores if score not in occurring]:
            text = f"no calibration row is labelled {' or '.join(absent)}"
            _warn(processes, f"{key}: {text}: only a temperature fits")
    return [rows[index] for index in sorted(kept)]


def score_rows(judge: Judge, rows: Sequence[LabelledExample]) -> list[list[float]]:
    """Score each row, in order: the log-probabilities of the labels of its rubric."""
    scores: dict[int, list[float]] = {}
    for indices in _by_key(rows).values():
        of_rubric = judge.logprobs([rows[index] for index in indices])
        scores.update(zip(indices, of_rubric.tolist(), strict=True))
    return [scores[index] for index in range(len(rows))]


def fit_calibrations(
    judge: Judge,
    rows: Sequence[LabelledExample],
    logprobs: Sequence[Sequence[float]],
    processes: Processes,
) -> CalibrationSet:
    """Fit a calibration for each rubric; the first process prints warnings."""
    scores, types = dict[str, Calibration](), dict[str, Calibration]()
    held_out: dict[str, HeldOutVerdicts] = {}
    for key, indices in _by_key(rows).items():
        group = [rows[index] for index in indices]
        labels = labels_of(group[0])
        targets = np.array([labels.index(row.label) for row in group])
        of_group = np.array([logprobs[index] for index in indices])
        if len(group) < SMALL_SPLIT:
            _warn(
                processes,
                f"{key}: {len(group)} calibration rows are too few for honest confidences; "
                f"give {SMALL_SPLIT} or more",
            )
        questions = question_numbers(group)
        scores[key] = fit_score_calibration(of_group, targets, labels, questions)
        try:
            if calibration := fit_type_calibration(of_group, targets, labels, questions):
                types[key] = calibration
        except CustosError as error:
            _warn(processes, f"{key}: error types stay uncalibrated: {error}")
        try:
            held_out[key] = cross_fitted_verdicts(of_group, targets, labels, questions)
        except CustosError as error:
            _warn(processes, f"{key}: no threshold for a stated risk: {error}")
    return CalibrationSet(
        judge=judge.identity, rubrics=scores, error_types=types, held_out=held_out
    )


def _by_key(rows: Sequence[LabelledExample]) -> dict[str, list[int]]:
    """Group the indices of the rows by their calibration."""
    keys = [calibration_key(get_task(row.task), row) for row in rows]
    return grouped(range(len(keys)), keys.__getitem__)


def _warn(processes: Processes, text: str) -> None:
    if processes.is_first:
        Console(stderr=True).print(f"warning: {text}", markup=False, soft_wrap=True)
