"""Pairs of critiques of one request, of which one leads to the right label more surely."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from judging.errors import CustosError
from judging.files.records import read_records, write_records
from judging.progress import progress_over
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from judging.verdicts.critique_reward import CritiqueScorer
from train.critiques.policy import JUDGED_AT_ONCE, DrawnCritique, Policy
from train.critiques.recipe import CritiqueSection

PREFERENCES_FILE = "preferences.jsonl"


@dataclass(frozen=True)
class Preference:
    """Two critiques of a request, with their rewards."""

    example: LabelledExample
    chosen: DrawnCritique
    rejected: DrawnCritique
    chosen_reward: float
    rejected_reward: float


class PreferenceLine(BaseModel):
    """A line of :data:`PREFERENCES_FILE`."""

    id: str
    label: str
    chosen: str
    chosen_is_finished: bool
    rejected: str
    rejected_is_finished: bool
    chosen_reward: float
    rejected_reward: float


def draw_preferences(
    policy: Policy,
    examples: Sequence[LabelledExample],
    critiques: CritiqueSection,
    least_margin: float,
    seed: int,
) -> list[Preference]:
    """Draw critiques of every example, and pair the best one with the worst.

    Args:
        policy: The judge that draws and scores them.
        examples: Rows to train on.
        critiques: How they are drawn and what they are worth.
        least_margin: Least difference of two rewards; an example without one is left out, and so is
            one that a rule decides.
        seed: Seed of the drawing.

    Raises:
        CustosError: If an example cannot be judged.
    """
    scorer, order = CritiqueScorer(policy, critiques.flip_penalty), random.Random(f"drawn/{seed}")
    number, preferences = critiques.drawn, []
    starts = range(0, len(examples), max(1, JUDGED_AT_ONCE // number))
    for start in progress_over(starts, "drawing critiques", len(starts)):
        rows = [row for row in examples[start : start + starts.step] for _ in range(number)]
        seeds = [order.getrandbits(31) for _ in rows]
        drawn = policy.draw([row.request() for row in rows], seeds, critiques.temperature)
        scores = scorer.score(rows, [critique.text for critique in drawn])
        for first in range(0, len(rows), number):
            rewards = [
                (score.reward, index)
                for index, score in enumerate(scores[first : first + number], first)
                if score
            ]
            if not rewards:  # a rule decides, whatever a critique says
                continue
            (worst, rejected), (best, chosen) = min(rewards), max(rewards)
            if best - worst >= least_margin and drawn[chosen].text != drawn[rejected].text:
                pair = drawn[chosen], drawn[rejected]
                preferences.append(Preference(rows[first], *pair, best, worst))
    return preferences


def write_preferences(folder: Path, preferences: Sequence[Preference]) -> None:
    """Write the critiques with their rewards to :data:`PREFERENCES_FILE` in a run folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_records(
        folder / PREFERENCES_FILE,
        (
            PreferenceLine(
                id=pair.example.id,
                label=pair.example.label,
                chosen=pair.chosen.text,
                chosen_is_finished=pair.chosen.is_finished,
                rejected=pair.rejected.text,
                rejected_is_finished=pair.rejected.is_finished,
                chosen_reward=pair.chosen_reward,
                rejected_reward=pair.rejected_reward,
            )
            for pair in preferences
        ),
    )


def read_preferences(
    path: Path, examples: Sequence[LabelledExample], least_margin: float
) -> list[Preference]:
    """Read what :func:`write_preferences` wrote.

    Args:
        path: File of an earlier run.
        examples: Rows to train on; those of which the file has no preference are left out.
        least_margin: As in :func:`draw_preferences`.

    Raises:
        CustosError: If the file cannot be read, or has a preference on another row.
    """
    by_id = {example.id: example for example in examples}
    preferences = []
    for number, line in read_records(path, PreferenceLine):
        example = by_id.get(line.id)
        if example is None or example.label != line.label:
            raise CustosError(
                f"{path}:{number}: no row to train on has the id '{line.id}' and the label "
                f"'{line.label}'; name the rows that the critiques were drawn of"
            )
        if line.chosen_reward - line.rejected_reward < least_margin:
            continue
        preferences.append(
            Preference(
                example,
                DrawnCritique(line.chosen, line.chosen_is_finished, (), ()),
                DrawnCritique(line.rejected, line.rejected_is_finished, (), ()),
                line.chosen_reward,
                line.rejected_reward,
            )
        )
    return preferences


def as_columns(preference: Preference) -> dict[str, Any]:
    """Return a preference as a row of TRL's: the request as JSON, and the critiques.

    A closing tag follows critiques that the judge ended. Pictures have a column even where there
    are none: TRL then leaves tokens to the collator.
    """
    form = get_task(preference.example.task).critique
    assert form is not None  # checked of all rows
    texts = [
        critique.text + (form.closing if critique.is_finished else "")
        for critique in (preference.chosen, preference.rejected)
    ]
    request = preference.example.request()
    return {
        "prompt": request.model_dump_json(),
        "chosen": texts[0],
        "rejected": texts[1],
        "images": list(request.images),
    }


class PreferenceCollator:
    """Makes tensors of preferences, as TRL's own collator does, with the prompts of a judge.

    Whatever comes from a request or from a critique is data here, as it is in judging.

    Args:
        encoder: Encoder of the judge.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Return the tensors of a batch: first all critiques that were chosen, then the others.

        Args:
            rows: Rows that :func:`as_columns` made.
        """
        backbone = self.encoder.backbone
        requests = [JudgeRequest.model_validate_json(row["prompt"]) for row in rows]
        tasks = [get_task(request.task) for request in requests]
        prompts = self.encoder.encode(list(zip(tasks, requests, strict=True)))
        texts, masks, vision = [], [], []
        for column in ("chosen", "rejected"):
            for task, prompt, row in zip(tasks, prompts, rows, strict=True):
                assert task.critique is not None  # checked of all rows
                critique, closing, _ = row[column].partition(task.critique.closing)
                before = [
                    *prompt.prefix_ids,
                    *prompt.suffix_ids,
                    *self.encoder.text(task.critique.opening),
                ]
                answer = [*self.encoder.data(critique), *self.encoder.text(closing)]
                texts.append(torch.tensor(before + answer))
                masks.append(torch.tensor([0] * len(before) + [1] * len(answer)))
                vision.append(prompt.vision)
        pad_id = backbone.tokenizer.pad_token_id
        input_ids = pad_sequence(texts, batch_first=True, padding_value=pad_id)
        lengths = torch.tensor([len(text) for text in texts])
        tensors = {
            "input_ids": input_ids,
            "attention_mask": (torch.arange(input_ids.shape[1]) < lengths[:, None]).long(),
            "completion_mask": pad_sequence(masks, batch_first=True),
        }
        if pictured := [pictures for pictures in vision if pictures]:
            for name in pictured[0]:
                tensors[name] = torch.cat([pictures[name] for pictures in pictured])
            image_id = backbone.model.config.image_token_id
            tensors["mm_token_type_ids"] = (input_ids == image_id).int()
        return tensors
