"""From a request to scored labels: its prompts, its critique if one is wanted, the label tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from judging.errors import CustosError
from judging.messages import END_TOKEN
from judging.probabilities import best_label, normalise
from judging.scoring.engine import (
    Engine,
    GeneratedText,
    LabelLogprobs,
    Sampling,
    TextBatch,
    texts_in_order,
)
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import JudgeTask
from judging.tasks.base import CritiqueFormat, confidence_in
from judging.types import JudgeRequest, Pass

if TYPE_CHECKING:
    from judging.scoring.label_tree import LabelTree

CONFIDENCES = tuple(f"{step / 100:.2f}" for step in range(101))
"""The confidences that a judge can state, spelled as in training."""

CONFIDENCE_TOKENS = 16
"""Most tokens of a confidence in words; leaves room for a model that repeats the opening tag."""

Scorer = Callable[[Sequence[EncodedPrompt], "LabelTree"], Sequence["LabelLogprobs | CustosError"]]
"""``Engine.score``, or ``TextBatch.score`` for prompts that continue its texts."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class OrderedPrompt:
    """The prompt of a request with its responses in one order."""

    request_index: int
    order: Literal["given", "swapped"]
    prompt: EncodedPrompt
    seed: int
    given_critique: str | None = None
    """Critique to decide after, which names the responses in this order; ``None``: one is drawn."""


@dataclass(frozen=True)
class ScoredPass:
    """A pass with the posterior over the labels."""

    record: Pass
    label_mass: float
    """Probability inside the label tree, before renormalisation."""
    truncated_input: bool
    """Text was cut from the middle of a response."""
    scaled_pictures: int
    """Number of pictures that were scaled down."""


def make_ordered_prompts(
    requests: Mapping[int, JudgeRequest], task: JudgeTask, encoder: Encoder
) -> tuple[list[OrderedPrompt], dict[int, CustosError]]:
    """Encode requests; a pair in both orders, unless only the given one is wanted.

    Those without pictures are encoded together, which takes two thirds of the time.

    Args:
        requests: Requests by index.
        task: Their task.
        encoder: Encodes them.

    Returns:
        The prompts, in the order of the requests, and why a request has none, by index.
    """
    prompts = dict[int, list[OrderedPrompt]]()
    texts = {
        index: request for index, request in requests.items() if not encoder.pictures(task, request)
    }
    # One that fails is found as each of them is encoded on its own.
    with suppress(CustosError):
        prompts |= _encode(texts, task, encoder)
    errors = dict[int, CustosError]()
    for index, request in requests.items():
        if index not in prompts:
            try:
                prompts |= _encode({index: request}, task, encoder)
            except CustosError as error:
                # With its traceback it would keep this call's pictures in memory.
                errors[index] = error.with_traceback(None)
    return [prompt for index in requests for prompt in prompts.get(index, ())], errors


def _encode(
    requests: Mapping[int, JudgeRequest], task: JudgeTask, encoder: Encoder
) -> dict[int, list[OrderedPrompt]]:
    """Encode requests in one call, and return the prompts of each.

    Raises:
        CustosError: As :meth:`Encoder.encode`.
    """
    ordered: list[tuple[int, Literal["given", "swapped"], JudgeRequest, str | None]] = []
    for index, request in requests.items():
        critique = request.given_critique
        ordered.append((index, "given", request, critique))
        if task.num_responses == 2 and request.order == "both":
            unswapped = None if critique is None else task.unswap_text(critique)
            ordered.append((index, "swapped", task.swap(request), unswapped))
    encoded = encoder.encode([(task, shown) for _, _, shown, _ in ordered])
    prompts = dict[int, list[OrderedPrompt]]()
    for (index, order, shown, critique), prompt in zip(ordered, encoded, strict=True):
        made = OrderedPrompt(index, order, prompt, shown.seed, critique)
        prompts.setdefault(index, []).append(made)
    return prompts


def critique_sampling(request: JudgeRequest, sampling: Sampling | None = None) -> Sampling | None:
    """Return how a request's critique is drawn, ``None`` if it wants none.

    Args:
        request: Request to judge.
        sampling: Settings for all critiques; default TruthfulJudge's, with the request's
            ``critique_tokens`` as the limit.
    """
    if request.mode != "critique":
        return None
    return sampling or Sampling(max_new_tokens=request.critique_tokens)


def score_labels(
    prompts: Sequence[OrderedPrompt],
    task: JudgeTask,
    rubric: str,
    encoder: Encoder,
    engine: Engine,
    sampling: Sampling | None,
    on_text: Callable[[OrderedPrompt, str], None] | None = None,
    is_wanted: Callable[[OrderedPrompt], bool] | None = None,
) -> dict[int, list[ScoredPass] | CustosError]:
    """Score the labels after every prompt, and after its critique if one is wanted.

    Args:
        prompts: Prompts of one rubric.
        task: Their task.
        rubric: Their rubric.
        encoder: Encoder that made them.
        engine: Runs the model.
        sampling: How critiques are drawn; ``None`` scores the labels without one.
        on_text: Called with each new piece of a critique, which may be empty.
        is_wanted: Says, for labels without a critique, whether anybody still waits for a prompt.

    Returns:
        For every request index its passes, in the order of the prompts, or why a prompt failed.

    Raises:
        CustosError: If the engine fails as a whole.
    """
    scoring = _Scoring(task, rubric, encoder, engine)
    drafts = [
        _Draft(i, prompt, prompt.prompt, Pass(order=prompt.order))
        for i, prompt in enumerate(prompts)
    ]
    if task.critique and sampling:
        drafts = scoring.add_critiques(drafts, task.critique, sampling, on_text)
    else:
        wanted = (lambda index: is_wanted(prompts[index])) if is_wanted else None
        drafts = scoring.add_posteriors(drafts, partial(engine.score, is_wanted=wanted))
    results: dict[int, list[ScoredPass] | CustosError] = dict(scoring.errors)
    for draft in sorted(drafts, key=lambda draft: draft.position):
        passes = results.setdefault(draft.request_index, [])
        if isinstance(passes, list):
            cut, scaled = draft.prompt.truncated, draft.prompt.scaled_pictures
            passes.append(ScoredPass(draft.record, draft.label_mass, cut, scaled))
    return results


@dataclass(frozen=True)
class _Draft:
    """A pass that is not finished."""

    position: int
    source: OrderedPrompt
    prompt: EncodedPrompt
    """The source's prompt and what has been written after it."""
    record: Pass
    label_mass: float = math.nan

    @property
    def request_index(self) -> int:
        return self.source.request_index

    def updated(self, **fields: object) -> Pass:
        return self.record.model_copy(update=fields)


class _Scoring:
    """The steps from prompts to scored passes.

    Once a prompt fails, its request is dropped: later steps ask for nothing more of it.

    Attributes:
        errors: Why requests were dropped, by request index.
    """

    def __init__(self, task: JudgeTask, rubric: str, encoder: Encoder, engine: Engine) -> None:
        self.task = task
        self.rubric = rubric
        self.encoder = encoder
        self.engine = engine
        self.errors: dict[int, CustosError] = {}

    def add_critiques(
        self,
        drafts: Sequence[_Draft],
        form: CritiqueFormat,
        sampling: Sampling,
        on_text: Callable[[OrderedPrompt, str], None] | None,
    ) -> list[_Draft]:
        """Write a critique for every draft that has none, then add posteriors.

        A critique that the judge wrote itself is followed by the confidence that it states.
        """
        opening = self.encoder.text(form.opening)
        drafts = [replace(draft, prompt=draft.prompt.extended(opening)) for draft in drafts]
        given = [draft for draft in drafts if draft.source.given_critique is not None]
        finished = self._add_labels(given, form, self._given_texts(given, sampling.max_new_tokens))
        drawn = [draft for draft in drafts if draft.source.given_critique is None]
        if not drawn:
            return finished
        batches = self.engine.generate(
            [draft.prompt for draft in drawn],
            self.encoder,
            form.closing,
            [draft.source.seed for draft in drawn],
            sampling,
            (lambda index, piece: on_text(drawn[index].source, piece)) if on_text else None,
        )
        for batch in batches:
            scored = self._add_labels([drawn[index] for index in batch.indices], form, batch)
            if form.states_confidence:
                scored = self._add_confidences(scored, form, batch)
            finished += scored
        return finished

    def _given_texts(self, drafts: Sequence[_Draft], max_tokens: int) -> TextBatch:
        """Return given critiques as if they had been generated, cut to so many tokens."""
        texts = []
        for draft in drafts:
            text = draft.source.given_critique or ""
            tokens = self.encoder.data(text)
            is_whole = len(tokens) <= max_tokens
            if not is_whole:
                text = self.encoder.backbone.tokenizer.decode(tokens[:max_tokens])
            texts.append(GeneratedText(tuple(tokens[:max_tokens]), text, is_whole))
        return TextBatch(self.engine, range(len(texts)), texts)

    def _add_labels(
        self, drafts: Sequence[_Draft], form: CritiqueFormat, batch: TextBatch
    ) -> list[_Draft]:
        """Add each draft's text of a batch, and the probability of every label after it."""
        closing = self.encoder.text(form.closing)
        critiqued = [
            replace(
                draft,
                prompt=draft.prompt.extended([*self.encoder.data(text.text), *closing]),
                record=draft.updated(
                    critique=text.text, finish_reason="stop" if text.finished else "length"
                ),
            )
            for draft, text in self._successes(drafts, batch.texts)
        ]
        return self.add_posteriors(critiqued, batch.score)

    def add_posteriors(self, drafts: Sequence[_Draft], score: Scorer) -> list[_Draft]:
        """Add the probability of every label, scored at the end of each draft's prompt."""
        form = self.task.critique
        closing = form.label_closing if form else END_TOKEN
        tree = self.encoder.tree(self.task.labels(self.rubric), closing)
        opening = self.encoder.text(form.label_opening) if form else []
        scores = score([draft.prompt.extended(opening) for draft in drafts], tree) if drafts else []
        scored = []
        for draft, values in self._successes(drafts, list(map(_numbers, scores))):
            logprobs = dict(zip(tree.labels, values, strict=True))
            record = draft.updated(posterior=normalise(logprobs))
            label_mass = math.fsum(map(math.exp, values))
            scored.append(replace(draft, record=record, label_mass=label_mass))
        return scored

    def _add_confidences(
        self, drafts: Sequence[_Draft], form: CritiqueFormat, batch: TextBatch
    ) -> list[_Draft]:
        """Add the likeliest stated confidence after each pass's own likeliest label.

        An exact engine scores the values of ``CONFIDENCES`` and the likeliest is taken. Any other
        engine writes text: its first number is taken, or ``None`` if that is no confidence.
        """
        between = self.encoder.text(form.label_closing) + self.encoder.text(form.confidence_opening)
        opening = self.encoder.text(form.label_opening)
        prompts = [
            draft.prompt.extended(
                [*opening, *self.encoder.text(best_label(draft.record.posterior)), *between]
            )
            for draft in drafts
        ]
        confidences: Sequence[float | None | CustosError]
        if self.engine.posterior == "exact":
            confidences = self._score_confidences(prompts, batch)
        else:
            confidences = self._read_confidences(prompts, form)
        return [
            replace(draft, record=draft.updated(stated_confidence=confidence))
            for draft, confidence in self._successes(drafts, confidences)
        ]

    def _score_confidences(
        self, prompts: Sequence[EncodedPrompt], batch: TextBatch
    ) -> list[float | CustosError]:
        # No confidence begins another, so they need no end token, which would add a node for each.
        tree = self.encoder.tree(CONFIDENCES, end="")
        scores = batch.score(prompts, tree) if prompts else []
        return [
            result
            if isinstance(result, CustosError)
            else float(CONFIDENCES[result.index(max(result))])
            for result in scores
        ]

    def _read_confidences(
        self, prompts: Sequence[EncodedPrompt], form: CritiqueFormat
    ) -> list[float | None | CustosError]:
        greedy, seeds = Sampling(CONFIDENCE_TOKENS, temperature=0), [0] * len(prompts)
        texts = texts_in_order(
            self.engine.generate(prompts, self.encoder, form.confidence_closing, seeds, greedy)
        )
        return [
            confidence_in(text.text) if isinstance(text, GeneratedText) else text for text in texts
        ]

    def _successes(
        self, drafts: Sequence[_Draft], results: Sequence[ResultT | CustosError]
    ) -> list[tuple[_Draft, ResultT]]:
        """Pair drafts with their results, except drafts of requests that have failed."""
        for draft, result in zip(drafts, results, strict=True):
            if isinstance(result, CustosError):
                self.errors.setdefault(draft.request_index, result)
        return [
            (draft, result)
            for draft, result in zip(drafts, results, strict=True)
            if not isinstance(result, CustosError) and draft.request_index not in self.errors
        ]


def _numbers(logprobs: LabelLogprobs | CustosError) -> LabelLogprobs | CustosError:
    """Return log-probabilities, or an error in place of those that are not numbers."""
    if isinstance(logprobs, CustosError) or not any(map(math.isnan, logprobs)):
        return logprobs
    return CustosError("the model's scores are not numbers; are its weights damaged?")
