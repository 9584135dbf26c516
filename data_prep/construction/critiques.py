"""Critiques that lead to what people preferred, written by a strong model (TruthfulJudge, F.1).

The model knows the label that people gave. A critique is used only if it ends in that label. Its
confidence is the one that the model would have stated without knowing the label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from clients.chat import Reply
from clients.messages import ChatItem
from data_prep.construction.forms.truthful import SCORES
from data_prep.construction.model_writer import ROWS, ModelWriter, Request
from data_prep.construction.steps.base import WORDS
from data_prep.errors import UnusableText
from data_prep.sources.conversations import MEANINGS, PAIR_TASK, parse_judgement, to_conversation
from data_prep.splits.manifest import check_replaceable
from judging.tasks import get_task
from judging.tasks.truthful import TIE, A, B
from judging.types import LabelledExample, Message

CONVERSATIONS = "conversations.jsonl"
LABEL_DIFFERS = "label differs"


def write_critiques(
    examples: Sequence[LabelledExample], writer: ModelWriter, *, show_reasons: bool = False
) -> dict[str, Any]:
    """Ask for a critique of every labelled pair, and write those that lead to people's label.

    The folder gets ``rows.jsonl`` (training rows, in the order of the examples) and
    ``conversations.jsonl`` (the same rows in the public format). Return the manifest.
    """
    check_replaceable(writer.out, [ROWS, CONVERSATIONS])
    outcome = writer.ask(
        [
            Request(critique_item(example, show_reasons), partial(_read_critique, example))
            for example in examples
        ]
    )
    rows = outcome.records
    counts = Counter(row.label for row in rows)
    return writer.write(
        outcome,
        {ROWS: rows, CONVERSATIONS: map(to_conversation, rows)},
        {"counts": dict(sorted(counts.items()))},
    )


def critique_item(example: LabelledExample, show_reasons: bool = False) -> ChatItem:
    """Compose the request for one pair: all that the judge sees, then what people said.

    In the paper the model sees their label and the faults that they marked; with ``show_reasons``
    it sees people's scores and reasons too.
    """
    task = get_task(PAIR_TASK)
    tags = "; ".join(f"{name} ({meaning})" for name, meaning in MEANINGS.items())
    scores = "; ".join(f"{score}, {meaning}" for score, meaning in SCORES.items())
    instruction = task.instruction(task.rubric(example))
    known = "the reference answer and the faults they marked"
    if show_reasons:
        known = "the reference answer, the faults they marked, their scores and their reasons"
    words = WORDS["critiques"]
    weighed = f"\n{words['scores'].format(scores=scores)}" if show_reasons else ""
    brief = words["brief"].format(instruction=instruction, tags=tags, known=known, scores=weighed)
    parts = [f"{field.heading}: {field.shown}" for field in task.item(example)]
    meaning = {A: "response A is better", B: "response B is better", TIE: "nearly the same quality"}
    parts.append(f"Label people gave: {example.label} ({meaning[task.target(example)]})")
    parts += _about_responses(example, show_reasons)
    if show_reasons and (rationale := example.metadata.get("rationale")):
        parts.append(f"Reasons people gave: {rationale}")
    messages = (
        Message(role="system", text=brief),
        Message(role="user", text="\n\n".join(parts), images=example.images),
    )
    return ChatItem(id=example.id, messages=messages)


def _about_responses(example: LabelledExample, show_scores: bool) -> Iterator[str]:
    """Yield what people said of each response, and the tags that name none of the two."""
    scores = (example.metadata.get("scores") or {}) if show_scores else {}
    rest = list(example.tags)
    for letter in (A, B):
        prefix = f"{letter}: "
        tags = [tag.removeprefix(prefix) for tag in example.tags if tag.startswith(prefix)]
        rest = [tag for tag in rest if not tag.startswith(prefix)]
        if tags:
            yield f"Faults people marked in response {letter}: {'; '.join(tags)}"
        if letter in scores:
            yield f"Score people gave response {letter}: {scores[letter]:g} of 10"
    if rest:
        yield f"Faults people marked: {'; '.join(rest)}"


def _read_critique(example: LabelledExample, reply: Reply) -> LabelledExample:
    """Make a training row of an example and a reply that leads to people's label."""
    try:
        judgement = parse_judgement(reply.text)
        if judgement.label != example.label:
            raise UnusableText(
                LABEL_DIFFERS, f"'{judgement.label}', but people said '{example.label}'"
            )
    except UnusableText as error:
        ended = f" (finish reason: {reply.finish_reason})" if reply.finish_reason else ""
        raise UnusableText(error.reason, f"{error}{ended}") from None
    return example.model_copy(
        update={
            "mode": "critique",
            "critique": judgement.critique,
            "confidence": judgement.confidence,
        }
    )
