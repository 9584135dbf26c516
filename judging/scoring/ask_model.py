"""From a request to scored labels: its prompts, its critique if one is wanted, the label tree."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

from judging.errors import CustosError
from judging.files.pictures import picture_size
from judging.labels import best_label, normalise
from judging.scoring.engine import (
    Engine,
    GeneratedText,
    LabelLogprobs,
    Sampling,
    TextBatch,
    texts_in_order,
)
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import JudgeTask, get_task
from judging.tasks.base import CritiqueFormat, confidence_in
from judging.types import END_TOKEN, JudgeRequest, Pass

CONFIDENCES = tuple(f"{step / 100:.2f}" for step in range(101))
"""The confidences that a judge can state, spelled as in training."""

CONFIDENCE_TOKENS = 16
"""Most tokens of a confidence in words; leaves room for a model that repeats the opening tag."""

CHUNK = 512
"""Most requests of a chunk, which are encoded at once."""
GPU_CHUNK = 128
"""The same for a GPU, which waits while the first chunk is encoded."""
CHUNK_PIXELS = 128 * 2**20
"""Most pixels of a chunk's pictures, as the model sees them.

Encoded, each takes 24 bytes (3 colours in two frames of 4 bytes), and all of a chunk are held at
once: 25 MB for a picture of 1 MP, as measured, and so 13 GB for 512 of them. The pictures of a pair
are encoded for both orders. With a GPU, the next chunk is held too.
"""

Scorer = Callable[[Sequence[EncodedPrompt], LabelTree], Sequence[LabelLogprobs | CustosError]]
"""``Engine.score``, or ``TextBatch.score`` for prompts that continue its texts."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class OrderedPrompt:
    """The prompt of a request with its responses in one order."""

    request_index: int
    order: Literal["given", "swapped"]
    request: JudgeRequest
    """The request with its responses in this order; a given critique names them accordingly."""
    prompt: EncodedPrompt


@dataclass(frozen=True)
class ScoredPass:
    """A pass and the prompt that it is scored after."""

    source: OrderedPrompt
    prompt: EncodedPrompt
    """The source's prompt and what has been written after it."""
    record: Pass
    label_mass: float = math.nan
    """Probability inside the label tree, before renormalisation; nan until it is scored."""

    def updated(self, **fields: object) -> Pass:
        """Return the record with other fields."""
        return self.record.model_copy(update=fields)


def make_ordered_prompts(
    requests: Mapping[int, JudgeRequest], task: JudgeTask, encoder: Encoder
) -> tuple[list[OrderedPrompt], dict[int, CustosError]]:
    """Encode requests of a task; a pair in both orders, unless only the given one is wanted.

    Requests without pictures are encoded together, in two thirds of the time. Returns the prompts
    in the order of the requests, and by index the errors of requests that cannot be encoded.
    """
    prompts = dict[int, list[OrderedPrompt]]()
    texts = {
        index: request for index, request in requests.items() if not encoder.pictures(task, request)
    }
    # If one fails, all do; then each is encoded on its own below.
    with suppress(CustosError):
        prompts |= _encode(texts, task, encoder)
    errors = dict[int, CustosError]()
    for index, request in requests.items():
        if index not in prompts:
            try:
                prompts |= _encode({index: request}, task, encoder)
            except CustosError as error:
                # Its traceback would keep this call's pictures in memory.
                errors[index] = error.with_traceback(None)
    return [prompt for index in requests for prompt in prompts.get(index, ())], errors


def _encode(
    requests: Mapping[int, JudgeRequest], task: JudgeTask, encoder: Encoder
) -> dict[int, list[OrderedPrompt]]:
    """Encode requests in one call; if one fails, all fail."""
    ordered: list[tuple[int, Literal["given", "swapped"], JudgeRequest]] = []
    for index, request in requests.items():
        ordered.append((index, "given", request))
        if task.num_responses == 2 and request.order == "both":
            ordered.append((index, "swapped", task.swap(request)))
    encoded = encoder.encode([(task, shown) for _, _, shown in ordered])
    prompts = dict[int, list[OrderedPrompt]]()
    for each, prompt in zip(ordered, encoded, strict=True):
        prompts.setdefault(each[0], []).append(OrderedPrompt(*each, prompt))
    return prompts


def critique_sampling(request: JudgeRequest, sampling: Sampling | None = None) -> Sampling | None:
    """Choose how a request's critique is drawn; ``None`` if it wants none.

    The default is TruthfulJudge's, with the request's ``critique_tokens`` as the limit.
    """
    if request.mode != "critique":
        return None
    return sampling or Sampling(max_new_tokens=request.critique_tokens)


@dataclass(frozen=True)
class PromptGroup:
    """Encoded requests of a chunk that have task, rubric and sampling in common."""

    task: JudgeTask
    rubric: str
    sampling: Sampling | None
    """How critiques are drawn; ``None`` without them."""
    requests: Mapping[int, JudgeRequest]
    """By their index in the chunk."""
    prompts: list[OrderedPrompt]
    errors: Mapping[int, CustosError]
    """Why a request has no prompt, by index."""

    def score(
        self,
        encoder: Encoder,
        engine: Engine,
        on_text: Callable[[OrderedPrompt, str], None] | None = None,
        is_wanted: Callable[[OrderedPrompt], bool] | None = None,
    ) -> dict[int, list[ScoredPass] | CustosError]:
        """Score the labels after every prompt, and after its critique if one is wanted.

        ``on_text`` is called with each new piece of a critique, which may be empty. ``is_wanted``
        is asked only where no critique is wanted: does anybody still wait for this prompt? Returns
        by request index the passes, that of the given order first, or why one failed. Raises
        ``CustosError`` if the engine fails as a whole.
        """
        scoring = _Scoring(self, encoder, engine)
        drafts = [ScoredPass(each, each.prompt, Pass(order=each.order)) for each in self.prompts]
        if self.task.critique and self.sampling:
            drafts = scoring.add_critiques(drafts, self.task.critique, self.sampling, on_text)
        else:
            wanted = (lambda index: is_wanted(self.prompts[index])) if is_wanted else None
            drafts = scoring.add_posteriors(drafts, partial(engine.score, is_wanted=wanted))
        results: dict[int, list[ScoredPass] | CustosError] = dict(scoring.errors)
        for draft in sorted(drafts, key=lambda draft: draft.source.order):  # given, swapped
            passes = results.setdefault(draft.source.request_index, [])
            if isinstance(passes, list):
                passes.append(draft)
        return results


class _Scoring:
    """The steps from prompts to scored passes.

    If a prompt fails, its request is dropped, and ``errors`` says why.
    """

    def __init__(self, group: PromptGroup, encoder: Encoder, engine: Engine) -> None:
        self.encoder = encoder
        self.engine = engine
        self.errors: dict[int, CustosError] = {}
        form = group.task.critique
        self._opening = encoder.text(form.label_opening) if form else []
        closing = form.label_closing if form else END_TOKEN
        self._tree = encoder.tree(group.task.labels(group.rubric), closing)

    def add_critiques(
        self,
        drafts: Sequence[ScoredPass],
        form: CritiqueFormat,
        sampling: Sampling,
        on_text: Callable[[OrderedPrompt, str], None] | None,
    ) -> list[ScoredPass]:
        """Write a critique for every draft that has none, then add posteriors.

        After a critique of its own the judge also states a confidence, if ``form`` asks for one.
        """
        opening = self.encoder.text(form.opening)
        drafts = [replace(draft, prompt=draft.prompt.extended(opening)) for draft in drafts]
        given = [draft for draft in drafts if draft.source.request.given_critique is not None]
        finished = self._add_labels(given, form, self._given_texts(given, sampling.max_new_tokens))
        drawn = [draft for draft in drafts if draft.source.request.given_critique is None]
        if not drawn:
            return finished
        batches = self.engine.generate(
            [draft.prompt for draft in drawn],
            self.encoder,
            form.closing,
            [draft.source.request.seed for draft in drawn],
            sampling,
            (lambda index, piece: on_text(drawn[index].source, piece)) if on_text else None,
        )
        for batch in batches:
            scored = self._add_labels([drawn[index] for index in batch.indices], form, batch)
            if form.states_confidence:
                scored = self._add_confidences(scored, form, batch)
            finished += scored
        return finished

    def _given_texts(self, drafts: Sequence[ScoredPass], max_tokens: int) -> TextBatch:
        """Return given critiques as if they had been generated, cut to ``max_tokens``."""
        texts = []
        for draft in drafts:
            text = draft.source.request.given_critique or ""
            tokens = self.encoder.data(text)
            is_whole = len(tokens) <= max_tokens
            if not is_whole:
                text = self.encoder.backbone.tokenizer.decode(tokens[:max_tokens])
            texts.append(GeneratedText(tuple(tokens[:max_tokens]), text, is_whole))
        return TextBatch(self.engine, range(len(texts)), texts)

    def _add_labels(
        self, drafts: Sequence[ScoredPass], form: CritiqueFormat, batch: TextBatch
    ) -> list[ScoredPass]:
        """Add to each draft its text in the batch, and the probability of every label after it."""
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

    def add_posteriors(self, drafts: Sequence[ScoredPass], score: Scorer) -> list[ScoredPass]:
        """Add the probability of every label, scored at the end of each draft's prompt."""
        prompts = [draft.prompt.extended(self._opening) for draft in drafts]
        scores = score(prompts, self._tree) if drafts else []
        scored = []
        for draft, values in self._successes(drafts, list(map(_numbers, scores))):
            posterior = normalise(dict(zip(self._tree.labels, values, strict=True)))
            mass = math.fsum(map(math.exp, values))
            record = draft.updated(posterior=posterior)
            scored.append(replace(draft, record=record, label_mass=mass))
        return scored

    def _add_confidences(
        self, drafts: Sequence[ScoredPass], form: CritiqueFormat, batch: TextBatch
    ) -> list[ScoredPass]:
        """Add the confidence that the model states after each pass's likeliest label.

        An exact engine scores the values of ``CONFIDENCES`` and the likeliest is taken. Any other
        engine writes text: its first number is taken, or ``None`` if that is no confidence.
        """
        text = self.encoder.text
        between = text(form.label_closing) + text(form.confidence_opening)
        prompts = [
            draft.prompt.extended(
                [*self._opening, *text(best_label(draft.record.posterior)), *between]
            )
            for draft in drafts
        ]
        confidences: list[float | None | CustosError]
        if self.engine.posterior == "exact":
            # None is the beginning of another, so none needs an end token, which would add nodes.
            tree = self.encoder.tree(CONFIDENCES, end="")
            confidences = [
                scores
                if isinstance(scores, CustosError)
                else float(CONFIDENCES[scores.index(max(scores))])
                for scores in (batch.score(prompts, tree) if prompts else [])
            ]
        else:
            greedy, seeds = Sampling(CONFIDENCE_TOKENS, temperature=0), [0] * len(prompts)
            written = self.engine.generate(
                prompts, self.encoder, form.confidence_closing, seeds, greedy
            )
            confidences = [
                confidence_in(each.text) if isinstance(each, GeneratedText) else each
                for each in texts_in_order(written)
            ]
        return [
            replace(draft, record=draft.updated(stated_confidence=confidence))
            for draft, confidence in self._successes(drafts, confidences)
        ]

    def _successes(
        self, drafts: Sequence[ScoredPass], results: Sequence[ResultT | CustosError]
    ) -> list[tuple[ScoredPass, ResultT]]:
        """Pair drafts with their results, except drafts of requests that have failed."""
        pairs = list(zip(drafts, results, strict=True))
        for draft, result in pairs:
            if isinstance(result, CustosError):
                self.errors.setdefault(draft.source.request_index, result)
        return [
            (draft, result)
            for draft, result in pairs
            if not isinstance(result, CustosError) and draft.source.request_index not in self.errors
        ]


def _numbers(logprobs: LabelLogprobs | CustosError) -> LabelLogprobs | CustosError:
    """Replace log-probabilities that are not numbers by an error."""
    if isinstance(logprobs, CustosError) or not any(map(math.isnan, logprobs)):
        return logprobs
    return CustosError("the model's scores are not numbers; are its weights damaged?")


def encode_groups(
    requests: Mapping[int, JudgeRequest], encoder: Encoder, sampling: Sampling | None = None
) -> list[PromptGroup]:
    """Encode a chunk of resolved requests, grouped by task, rubric and sampling."""
    groups: dict[tuple[str, str, Sampling | None], dict[int, JudgeRequest]] = {}
    for index, request in requests.items():
        rubric = get_task(request.task).rubric(request)
        key = (request.task, rubric, critique_sampling(request, sampling))
        groups.setdefault(key, {})[index] = request
    encoded = []
    for (name, rubric, drawn), group in groups.items():
        prompts, errors = make_ordered_prompts(group, get_task(name), encoder)
        encoded.append(PromptGroup(get_task(name), rubric, drawn, group, prompts, errors))
    return encoded


def in_chunks(
    requests: Iterable[JudgeRequest], encoder: Encoder, size: int | None = None
) -> Iterator[list[JudgeRequest]]:
    """Yield chunks of 1 to ``size`` requests (default ``CHUNK``), in order.

    A chunk also ends where its pictures would exceed ``CHUNK_PIXELS``; then the next request has
    been read already.
    """
    size = size or CHUNK
    chunk: list[JudgeRequest] = []
    num_pixels = 0
    for request in requests:
        more = _seen_pixels(request, encoder)
        if chunk and num_pixels + more > CHUNK_PIXELS:
            yield chunk
            chunk, num_pixels = [], 0
        chunk.append(request)
        num_pixels += more
        if len(chunk) == size:
            yield chunk
            chunk, num_pixels = [], 0
    if chunk:
        yield chunk


def _seen_pixels(request: JudgeRequest, encoder: Encoder) -> int:
    """Count the pixels that are encoded for a request; 0 if it will be refused."""
    try:
        shown = encoder.pictures(get_task(request.task), request)
        sizes = [picture_size(source).pixels for source in shown]
    except CustosError:
        return 0
    most = encoder.backbone.pixels.max_pixels
    return len(request.responses) * sum(min(pixels, most) for pixels in sizes)
