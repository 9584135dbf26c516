"""The start of a run as a judge, graded on the same rows as the finished judge.

The model of the run is still loaded when training ends, so the start costs no second loading: the
adapter is put back to what it was, or switched off where it began as nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from peft import set_peft_model_state_dict
from safetensors.torch import load_file

from evaluation.report.evaluate import grade_examples
from judging.fingerprint import file_sha256
from judging.judge import CALIBRATION_FILE, Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import ADAPTER_FILE
from judging.models.backbones import load_backbone
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task
from judging.types import LabelledExample, Verdict
from judging.verdicts.calibration import CalibrationSet
from train.finish.kept_grades import KeptGrades, KeptWindow
from train.loop.finished_trainer import FinishedTrainer
from train.loop.sharding import is_sharded
from train.setup.starting_adapter import with_adapter
from train.tracking.parts import PARTS

MOST_SCORED = 2000
"""Most rows that the start is graded on ..."""
MOST_CRITIQUES = 200
"""... and most where it writes a critique of each."""


@PARTS.measured("grading")
def grade_start(
    trainer: FinishedTrainer, examples: Sequence[LabelledExample], kept: KeptGrades
) -> dict[int, Verdict]:
    """Grade test rows with the judge that the run started from, on all processes.

    Afterwards the trainer's adapter is that of the start. A rubric that the start was not trained
    for is graded like the others: that is where training began.

    Args:
        trainer: Trainer after its last step, whose chosen adapter is on disk.
        examples: Test split.
        kept: Grades the rows on all processes.

    Returns:
        Verdicts by the index of their row: of all rows, or of the :func:`affordable_rows`. None
        if the run chose its start.
    """
    if trainer.progress.chosen["step"] == 0:
        return {}
    recipe, folder = trainer.recipe, trainer.recipe.adapter.init_folder
    backbone = trainer.rows.train.encoder.backbone
    card = JudgeCard.for_requests(backbone, examples, recipe.run.response_budget)
    indices = affordable_rows(examples, recipe.run.seed)
    with _model_of_start(trainer) as tree_model, trainer.accelerator.autocast():
        engine = TreeEngine(tree_model, backbone.tokenizer.pad_token_id)
        adapter_sha256 = file_sha256(folder / ADAPTER_FILE) if folder else ""
        judge = Judge("start", backbone, engine, card, adapter_sha256)
        if folder and (folder / CALIBRATION_FILE).is_file():
            judge.calibration = CalibrationSet.read(folder / CALIBRATION_FILE)
        chosen = [examples[index] for index in indices]
        grade = partial(grade_examples, judge, progress=False)
        graded = kept.grade("grading the start", judge, chosen, grade, KeptWindow[Verdict])
    return dict(zip(indices, graded, strict=True))


def affordable_rows(examples: Sequence[LabelledExample], seed: int) -> list[int]:
    """Return the indices of the rows to grade with the start, in order.

    These are all rows, or as many whole questions, drawn by the seed, as fit under the limit. If no
    question fits, they are rows of one.
    """
    limit = MOST_CRITIQUES if any(map(_takes_critique, examples)) else MOST_SCORED
    if len(examples) <= limit:
        return list(range(len(examples)))
    questions: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        questions.setdefault(example.group or example.question, []).append(index)
    drawn: list[int] = []
    order = random.Random(f"start/{seed}").sample(list(questions), len(questions))
    for question in order:
        if len(drawn) + len(questions[question]) <= limit:
            drawn += questions[question]
    return sorted(drawn or questions[order[0]][:limit])


@contextmanager
def _model_of_start(trainer: FinishedTrainer) -> Iterator[TreeModel]:
    """Give the trainer's model the adapter of the start, or none if it began as nothing.

    Processes that share one model would have to grade the same rows: each loads a whole one.
    """
    recipe, device = trainer.recipe, trainer.accelerator.device
    if is_sharded(trainer.accelerator):
        trainer.free_memory()
        backbone = load_backbone(recipe.backbone, dtype=recipe.run.dtype, device=device)
        yield TreeModel(with_adapter(backbone, recipe).model).eval()
        return
    tree_model = trainer.tree_model.eval()
    adapted, folder = tree_model.backbone, recipe.adapter.init_folder
    if folder is None:
        with adapted.disable_adapter():
            yield tree_model
        return
    with torch.no_grad():
        set_peft_model_state_dict(adapted, load_file(folder / ADAPTER_FILE))
    yield tree_model


def _takes_critique(example: LabelledExample) -> bool:
    return get_task(example.task).critique is not None and example.mode != "score"
