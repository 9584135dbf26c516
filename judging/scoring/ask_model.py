"""What is put before the model for a request, and how labels are read after it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from judging.calibration import posterior
from judging.scoring.prompts import END_TOKEN, EncodedPrompt, Encoder
from judging.tasks import JudgeTask
from judging.types import JudgeRequest, Pass
from judging.verdicts import best_label

if TYPE_CHECKING:
    from judging.scoring.engine import Engine
    from judging.scoring.generation import Generated, Sampling

CONFIDENCES = tuple(f"{step / 100:.2f}" for step in range(101))
"""Stated with two decimals, as in training."""

CONFIDENCE_TOKENS = 16
"""Room for a confidence in words, a repeated tag included."""


@dataclass(frozen=True)
class OrderedPrompt:
    """A request in one order of its responses."""

    index: int
    """Which request of a window it belongs to."""
    order: Literal["given", "swapped"]
    prompt: EncodedPrompt
    seed: int


@dataclass(frozen=True)
class ScoredPass:
    """What one presentation came to."""

    passed: Pass
    label_mass: float
    """Probability inside the label tree, before renormalisation."""


def make_ordered_prompts(
    index: int, request: JudgeRequest, task: JudgeTask, encoder: Encoder
) -> list[OrderedPrompt]:
    """Present a request: a pair in both orders unless only the given one is wanted."""
    orders: list[tuple[Literal["given", "swapped"], JudgeRequest]] = [("given", request)]
    if task.num_responses == 2 and request.order == "both":
        orders.append(("swapped", task.swap(request)))
    prompts = encoder.encode([(task, shown) for _, shown in orders])
    return [
        OrderedPrompt(index, order, prompt, request.seed)
        for (order, _), prompt in zip(orders, prompts, strict=True)
    ]


def critique_sampling(request: JudgeRequest, sampling: Sampling | None = None) -> Sampling | None:
    """How a request's critique is drawn, by default as published and within its own budget.

    ``None`` if it wants none.
    """
    from judging.scoring.generation import Sampling

    if request.mode != "critique":
        return None
    return sampling or Sampling(max_new_tokens=request.critique_tokens)


def score_labels(
    presented: Sequence[OrderedPrompt],
    task: JudgeTask,
    rubric: str,
    encoder: Encoder,
    engine: Engine,
    sampling: Sampling | None,
    on_text: Callable[[OrderedPrompt, str], None] | None = None,
) -> list[ScoredPass]:
    """Read the label tree after every presentation, after a critique where one is wanted.

    Args:
        presented: Presentations of one rubric.
        task: Their task.
        rubric: Their rubric.
        encoder: Encoder they were made with.
        engine: Runs the model.
        sampling: How critiques are drawn; ``None`` reads the label without one.
        on_text: Called with each new piece of a critique.
    """
    form = task.critique
    if not (form and sampling):
        prompts = [shown.prompt for shown in presented]
        passes = [Pass(order=shown.order) for shown in presented]
        return _read_trees(passes, prompts, task, rubric, encoder, engine)
    opened = [shown.prompt.extended(encoder.text(form.opening)) for shown in presented]
    closing = encoder.text(form.closing)
    found: dict[int, ScoredPass] = {}

    def read(rows: Sequence[int], texts: Sequence[Generated]) -> None:
        prompts = [
            opened[row].extended([*encoder.data(text.text), *closing])
            for row, text in zip(rows, texts, strict=True)
        ]
        passes = [
            Pass(
                order=presented[row].order,
                critique=text.text,
                finish_reason="stop" if text.finished else "length",
            )
            for row, text in zip(rows, texts, strict=True)
        ]
        readings = _read_trees(passes, prompts, task, rubric, encoder, engine)
        if form.states_confidence:
            readings = _with_stated_confidence(readings, prompts, task, encoder, engine)
        found.update(zip(rows, readings, strict=True))

    engine.generate(
        opened,
        encoder,
        form.closing,
        [shown.seed for shown in presented],
        sampling,
        on_text=(lambda row, piece: on_text(presented[row], piece)) if on_text else None,
        on_texts=read,
    )
    return [found[row] for row in range(len(presented))]


def _read_trees(
    passes: Sequence[Pass],
    prompts: Sequence[EncodedPrompt],
    task: JudgeTask,
    rubric: str,
    encoder: Encoder,
    engine: Engine,
) -> list[ScoredPass]:
    """Passes with the posterior over the labels, read after prompts that end before one."""
    form = task.critique
    tree = encoder.tree(task.labels(rubric), form.label_closing if form else END_TOKEN)
    if form:
        prompts = [prompt.extended(encoder.text(form.label_opening)) for prompt in prompts]
    readings = []
    for one, row in zip(passes, engine.score(prompts, tree).double().tolist(), strict=True):
        logprobs = dict(zip(tree.labels, row, strict=True))
        mass = math.fsum(math.exp(value) for value in row)
        passed = one.model_copy(update={"posterior": posterior(logprobs)})
        readings.append(ScoredPass(passed, mass))
    return readings


def _with_stated_confidence(
    readings: Sequence[ScoredPass],
    prompts: Sequence[EncodedPrompt],
    task: JudgeTask,
    encoder: Encoder,
    engine: Engine,
) -> list[ScoredPass]:
    """Read the likeliest stated confidence after each pass's own likeliest label.

    Where labels are read in words, a confidence is what the words say; none if they say no number.
    """
    from judging.scoring.generation import Sampling

    form = task.critique
    assert form
    opening = encoder.text(form.label_opening)
    after = [*encoder.text(form.label_closing), *encoder.text(form.confidence_opening)]
    chosen = [best_label(reading.passed.posterior) for reading in readings]
    labelled = [
        prompt.extended([*opening, *encoder.text(label), *after])
        for prompt, label in zip(prompts, chosen, strict=True)
    ]
    if engine.posterior == "exact":
        # All are equally long: what follows them tells none apart, and would cost a node for each.
        tree = encoder.tree(CONFIDENCES, end="")
        best = engine.score(labelled, tree).argmax(-1).tolist()
        stated: list[float | None] = [float(CONFIDENCES[place]) for place in best]
    else:
        greedy, seeds = Sampling(CONFIDENCE_TOKENS, temperature=0), [0] * len(labelled)
        texts = engine.generate(labelled, encoder, form.confidence_closing, seeds, greedy)
        stated = [confidence_in(text.text) for text in texts]
    return [
        replace(reading, passed=reading.passed.model_copy(update={"stated_confidence": value}))
        for reading, value in zip(readings, stated, strict=True)
    ]


def confidence_in(text: str) -> float | None:
    """The first number in a text if that is a confidence: ``0.9``, ``.9``, ``90%``; else none."""
    number = re.search(r"(?<![-\d.])(\d*\.\d+|\d+)(\s*%)?", text)
    if number is None:
        return None
    value = float(number[1]) / (100 if number[2] else 1)
    return value if value <= 1 else None
