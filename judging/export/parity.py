"""Scores of an exported checkpoint through transformers alone, beside those of the judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import JudgeCard, encoder_of
from judging.messages import END_TOKEN
from judging.models.backbones import Backbone, on_device
from judging.models.checkpoints import CONFIG, MODEL_CLASSES, read_object
from judging.models.processors import load_processor
from judging.scoring.ask_model import make_ordered_prompts
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest

_LARGEST = 1e-3
"""Nats that two ways to compute the same may differ by in float32, at the least likely label."""

Scores = list[list[float]]
"""Log-probability of every label after every prompt."""


@dataclass(frozen=True)
class Parity:
    """The distance between the scores of an exported checkpoint and the judge's."""

    num_rows: int
    num_scores: int
    largest: float
    """Largest difference of two log-probabilities, in nats."""
    model_class: str
    """Class of transformers that the checkpoint was loaded as."""

    def check(self) -> None:
        """Check that the checkpoint is the judge.

        Raises:
            CustosError: If the difference is larger than rounding explains.
        """
        if not self.largest <= _LARGEST:
            raise CustosError(
                f"the merged weights do not score as the judge does: {self.largest:.2g} nats apart "
                f"in float32; nothing was written"
            )


def judge_scores(judge: Judge, requests: Sequence[JudgeRequest]) -> Scores:
    """Score the labels of requests with the judge's own engine, computing in float32.

    The judge's weights are converted to float32 and stay so.

    Args:
        judge: Judge whose model runs here.
        requests: Requests as the judge resolves them.

    Raises:
        CustosError: If the engine fails.
    """
    on_device(judge.backbone.model.float(), judge.backbone.model.device)
    scores: Scores = []
    for prompts, tree in _prompts(judge.encoder, requests):
        for result in judge.engine.score(prompts, tree):
            if isinstance(result, CustosError):
                raise result
            scores.append(list(result))
    return scores


def compare(
    folder: Path,
    expected: Scores,
    requests: Sequence[JudgeRequest],
    *,
    card: JudgeCard,
    device: Any,
) -> Parity:
    """Score requests through transformers in float32, on prompts that the exported files encode.

    Args:
        folder: Exported checkpoint.
        expected: The judge's scores of the same requests.
        requests: Requests as the judge resolves them.
        card: Card of the judge.
        device: Device to compute on.
    """
    import torch
    import transformers

    model_class = getattr(transformers, MODEL_CLASSES[read_object(folder / CONFIG)["model_type"]])
    model = model_class.from_pretrained(str(folder), dtype=torch.float32)
    model = model.to(device).eval()
    processor = load_processor(folder, model.config.model_type)
    encoder = encoder_of(Backbone(str(folder), "", model, processor), card)
    actual = [
        [_plain_score(model, prompt, [token for _, token in path]) for path in tree.paths]
        for prompts, tree in _prompts(encoder, requests)
        for prompt in prompts
    ]
    return Parity(
        num_rows=len(requests),
        num_scores=sum(map(len, actual)),
        largest=largest_difference(expected, actual),
        model_class=type(model).__name__,
    )


def largest_difference(expected: Scores, actual: Scores) -> float:
    """Return the largest difference of two log-probabilities, in nats; nan if one is nan."""
    differences = [
        abs(expected_score - actual_score)
        for expected_scores, actual_scores in zip(expected, actual, strict=True)
        for expected_score, actual_score in zip(expected_scores, actual_scores, strict=True)
    ]
    return float(np.max(differences))  # Python's max would pass over a nan


def _prompts(
    encoder: Encoder, requests: Sequence[JudgeRequest]
) -> Iterator[tuple[list[EncodedPrompt], LabelTree]]:
    """Yield the prompts of each request up to its label, in every order, and its label tree."""
    for request in requests:
        task = get_task(request.task)
        ordered, errors = make_ordered_prompts({0: request}, task, encoder)
        for error in errors.values():
            raise error
        prompts, closing = [each.prompt for each in ordered], END_TOKEN
        if form := task.critique:
            opening, closing = encoder.text(form.label_opening), form.label_closing
            prompts = [prompt.extended(opening) for prompt in prompts]
        yield prompts, encoder.tree(task.labels(task.rubric(request)), closing)


def _plain_score(model: Any, prompt: EncodedPrompt, label: list[int]) -> float:
    """Return the log-probability of a label from one plain pass over prompt and label."""
    import torch

    start = len(prompt.prefix_ids) + len(prompt.suffix_ids)
    ids = torch.tensor([[*prompt.prefix_ids, *prompt.suffix_ids, *label]], device=model.device)
    vision = {name: tensor.to(model.device) for name, tensor in prompt.vision.items()}
    if vision:
        vision["mm_token_type_ids"] = (ids == model.config.image_token_id).int()
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, **vision).logits[0, start - 1 : -1]
    logprobs = logits.float().log_softmax(-1)
    return float(sum(logprobs[index, token] for index, token in enumerate(label)))
