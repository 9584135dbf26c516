"""Critiques that lead to what people preferred, written by a strong model (TruthfulJudge, F.1).

The model is told the label that people gave. A critique is kept only if the label at its end is
theirs; the stated confidence is what it would have been without knowing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clients.chat import ModelServer, Prices
from clients.jobs import JobResult, OnProgress, Reject, run_job
from clients.messages import ChatItem, Decoding
from data_prep.sources.conversations import to_conversation
from data_prep.sources.judgement_text import PAIR_TASK, UnusableJudgement, parse_judgement
from data_prep.splits.manifest import MANIFEST_NAME
from judging.fingerprint import file_sha256
from judging.messages import Message
from judging.records import atomic_write, write_json, write_records
from judging.tasks import get_task
from judging.tasks.truthful import TIE, A, B
from judging.types import LabelledExample

ANSWERS, ROWS, CONVERSATIONS, REJECTS = (
    *("answers.jsonl", "rows.jsonl"),
    *("conversations.jsonl", "rejects.jsonl"),
)

LABEL_DIFFERS = "label differs"

TAGS: Mapping[str, str] = {
    "visual misinterpretation": "something in the image is misread, overlooked or made up",
    "wrong physical reasoning": "space, size, light, motion or cause is reasoned about wrongly",
    "off-topic or vague": "the question is passed by, or nothing is said that could be checked",
    "speculative or fictional": "a guess or an invention is told as if it were known",
    "distracting additions": "what nobody asked for draws the reader away from the answer",
}
"""The paper's five tags of untruthfulness, and what each means."""

_BRIEF = """\
You write training material for a judge. The judge compares two responses to a question about an \
image and is told this:
----
{instruction}
----
Write one judgement as the judge should have written it. You know more than the judge: which \
response people preferred and, where there are any, the reference answer, the faults they marked \
and their reasons. Find out from these what the question really tests, look at the image again, \
and give the critique that leads to the label people gave.

For the critique:
- Compare both responses with the reference answer. If exactly one is right, say what the other \
gets wrong and how. If both are right or both are wrong, let the rest decide.
- Understanding of the image: who reads details, and what is distorted or altered, more exactly?
- Truth: who states the facts of the image and of the world correctly and invents nothing?
- Resistance: who is not led astray by visual tricks, irrelevant facts or misleading wording?
- Clarity and completeness: who is clearer, covers what was asked, and is not longer than needed?
- Correctness: who agrees better with the reference answer?
- Name strengths and weaknesses of both responses, and quote what decides.
- Build on the faults that people marked. They mark: {tags}.
- Bear in mind how an image and a question can deceive: hidden information (blurred, distorted or \
covered features); forged features (altered or look-alike objects); a restricted perspective \
(cropping, odd angles, bent shapes); a biased context (a background or mood that suggests); forged \
information (false facts, edited images); fiction taken for fact; popular falsehoods (reasoning \
that does not apply, a slanted wording); illusions of the eye.
- Write as one who found all this alone. Never mention people, their label, their marks or their \
reasons, or that you were told anything.

For the confidence: state what it would be if you did not know the label. It follows from how \
clearly the responses differ, how well the better one agrees with the reference answer, how \
surely you can read the image, and what stays open in image and question. 0 to .3: very unsure, \
the responses are close or the case is ambiguous. .4 to .6: moderately sure. .7 to .8: confident. \
.9 to 1: very sure. Use fine steps of .01, and give low and medium values wherever they are due."""


def critique_item(example: LabelledExample) -> ChatItem:
    """What the model is asked for one pair: all that the judge sees, then what people said."""
    task = get_task(PAIR_TASK)
    tags = "; ".join(f"{name} ({meaning})" for name, meaning in TAGS.items())
    brief = _BRIEF.format(instruction=task.instruction(task.rubric(example)), tags=tags)
    shown = [f"{field.heading}: {field.text.strip()}" for field in task.item(example)]
    meaning = {A: "response A is better", B: "response B is better", TIE: "nearly the same quality"}
    shown.append(f"Label people gave: {example.label} ({meaning[task.target(example)]})")
    if example.tags:
        shown.append(f"Faults people marked: {'; '.join(example.tags)}")
    if rationale := example.metadata.get("rationale"):
        shown.append(f"Reasons people gave: {rationale}")
    messages = (
        Message(role="system", text=brief),
        Message(role="user", text="\n\n".join(shown), images=example.images),
    )
    return ChatItem(id=example.id, messages=messages)


def write_critiques(
    examples: Sequence[LabelledExample],
    server: ModelServer,
    decoding: Decoding,
    prices: Prices | None,
    out: Path,
    *,
    source: Mapping[str, Any],
    command: str,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Ask for a critique of every pair and write those that lead to people's label.

    A folder holds ``answers.jsonl`` (all answers; what a later run starts from), ``rows.jsonl``
    (training rows, in the order of the examples), ``conversations.jsonl`` (the same in the public
    format), ``rejects.jsonl`` and, last, ``manifest.json``.

    Args:
        examples: Pairs of task ``truthful-pair`` with their labels, under different ids.
        server: Who writes.
        decoding: How critiques are drawn.
        prices: Of the model's tokens, if known.
        out: Folder to write to; made if it is missing.
        source: What the examples were read from.
        command: Command line that can repeat this.
        on_progress: Called as requests are done, to show a progress bar.

    Returns:
        The manifest.

    Raises:
        CustosError: As ``run_job``.
    """
    result = run_job(
        [critique_item(example) for example in examples],
        server,
        decoding,
        answers=out / ANSWERS,
        rejects=out / REJECTS,
        on_progress=on_progress,
    )
    rows, rejects = sort_out(examples, result)
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    write_records(out / ROWS, rows)
    with atomic_write(out / CONVERSATIONS) as file:
        file.writelines(to_conversation(row) + "\n" for row in rows)
    write_records(out / REJECTS, rejects)
    manifest = {
        "source": dict(source),
        "model": server.model,
        "decoding": decoding.model_dump(exclude_none=True),
        "outputs": {name: file_sha256(out / name) for name in (ROWS, CONVERSATIONS, REJECTS)},
        "counts": dict(sorted(Counter(row.label for row in rows).items())),
        "rejected": dict(sorted(Counter(reject.reason for reject in rejects).items())),
        **result.account(prices),
        "version": version("custos"),
        "command": command,
    }
    write_json(out / MANIFEST_NAME, manifest)
    return manifest


def sort_out(
    examples: Sequence[LabelledExample], result: JobResult
) -> tuple[list[LabelledExample], list[Reject]]:
    """Training rows from the answers that lead to people's label, and all that is not one."""
    rows, rejects = [], {reject.id: reject for reject in result.rejects}
    for example in examples:
        reply = result.replies.get(example.id)
        if reply is None:
            continue
        try:
            found = parse_judgement(reply.text)
            if found.label != example.label:
                raise UnusableJudgement(
                    LABEL_DIFFERS, f"'{found.label}', but people said '{example.label}'"
                )
        except UnusableJudgement as error:
            ended = f" (finish reason: {reply.finish_reason})" if reply.finish_reason else ""
            detail = f"{error}{ended}"
            rejects[example.id] = Reject(id=example.id, reason=error.reason, detail=detail)
            continue
        filled = {
            "mode": "critique",
            "critique": found.critique,
            "confidence": found.confidence,
        }
        rows.append(example.model_copy(update=filled))
    return rows, [rejects[example.id] for example in examples if example.id in rejects]
