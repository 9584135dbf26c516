"""The judge that is trained, as it is now: it draws critiques, and labels what follows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from accelerate import Accelerator

from evaluation.outcomes import full_label
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.messages import END_TOKEN
from judging.models.backbones import Backbone
from judging.scoring.engine import GeneratedText, Sampling, texts_in_order
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Verdict
from judging.verdicts.critique_reward import CritiqueScorer
from train.loop.objective import Measured, share_right

JUDGED_AT_ONCE = 64
"""Requests whose pictures are in memory at the same time."""


@dataclass(frozen=True)
class DrawnCritique:
    """A critique that was drawn, in the tokens that it was drawn in."""

    text: str
    is_finished: bool
    """The judge ended it; otherwise it was cut."""
    prompt_ids: tuple[int, ...]
    """What came before it, its opening tag included."""
    token_ids: tuple[int, ...]
    """Its tokens and those that ended it."""


class Policy:
    """A judge whose weights change while it is used."""

    def __init__(
        self, backbone: Backbone, encoder: Encoder, accelerator: Accelerator, max_tokens: int
    ) -> None:
        self.backbone, self.encoder = backbone, encoder
        self.accelerator, self.max_tokens = accelerator, max_tokens
        self.tree_model = TreeModel(backbone.model)

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Grade requests with the weights of now, and without calibration."""
        requests = list(requests)
        card = JudgeCard.for_requests(self.backbone, requests, self.encoder.response_budget)
        with self._judging() as engine:
            verdicts = list(Judge("policy", self.backbone, engine, card).grade(requests))
        return iter(verdicts)

    def draw(
        self, requests: Sequence[JudgeRequest], seeds: Sequence[int], temperature: float
    ) -> list[DrawnCritique]:
        """Draw a critique of each request, of a pair in the order given."""
        drawn: dict[int, DrawnCritique] = {}
        tokenizer, encoder = self.backbone.tokenizer, self.encoder
        for start in range(0, len(requests), JUDGED_AT_ONCE):
            by_rubric: dict[str, list[int]] = {}
            for index in range(start, min(start + JUDGED_AT_ONCE, len(requests))):
                rubric = get_task(requests[index].task).full_rubric(requests[index])
                by_rubric.setdefault(rubric, []).append(index)
            for indices in by_rubric.values():
                task = get_task(requests[indices[0]].task)
                assert task.critique is not None  # checked of all rows
                opening, closing = encoder.text(task.critique.opening), task.critique.closing
                encoded = encoder.encode([(task, requests[index]) for index in indices])
                prompts = [prompt.extended(opening) for prompt in encoded]
                drawn_seeds = [seeds[index] for index in indices]
                sampling = Sampling(self.max_tokens, temperature)
                with self._judging() as engine:
                    batches = engine.generate(prompts, encoder, closing, drawn_seeds, sampling)
                    texts = texts_in_order(batches)
                for index, prompt, text in zip(indices, prompts, texts, strict=True):
                    assert isinstance(text, GeneratedText)  # in this process none fails
                    tokens = text.tokens
                    if text.finished and closing not in tokenizer.decode(tokens):
                        tokens = (*tokens, tokenizer.convert_tokens_to_ids(END_TOKEN))
                    before = (*prompt.prefix_ids, *prompt.suffix_ids)
                    drawn[index] = DrawnCritique(text.text, text.finished, before, tokens)
        return [drawn[index] for index in range(len(requests))]

    def measure(self, examples: Iterable[LabelledExample]) -> Measured:
        """Measure what the judge decides after critiques that it writes.

        The scores are ``accuracy``, the share of ``flips``, in which the orders of a pair lead to
        different labels, and ``nll``, the negative log-likelihood of the right label, the mean over
        the orders.
        """
        examples, scorer = list(examples), CritiqueScorer(self, flip_penalty=0)
        verdicts = self.grade(
            row.request().model_copy(
                update={"mode": "critique", "critique_tokens": self.max_tokens}
            )
            for row in examples
        )
        right: list[bool | None] = []
        scores = []
        for row, verdict in zip(examples, verdicts, strict=True):
            right.append(full_label(verdict) == row.label)
            if score := scorer.score_of(row, verdict):
                scores.append(score)
        mean = {
            "nll": -sum(score.reward for score in scores) / len(scores),
            "flips": sum(score.flips for score in scores) / len(scores),
        }
        return Measured({"accuracy": share_right(right), **mean}, right)

    @contextmanager
    def _judging(self) -> Iterator[TreeEngine]:
        """Yield an engine with the weights of now; the model does not train meanwhile."""
        was_training = self.backbone.model.training
        self.tree_model.eval()
        try:
            with self.accelerator.autocast(), torch.inference_mode():
                yield TreeEngine(self.tree_model, self.backbone.tokenizer.pad_token_id)
        finally:
            self.tree_model.train(was_training)
