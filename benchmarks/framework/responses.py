"""Responses of a model to a benchmark: from items to questions, from answers to full rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING

import yaml

from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import CUT_OFF, WITHOUT_IMAGE, Row
from clients.chat import REQUEST_FAILED, ChatJob, JobResult, OnProgress, Reject, Reply, Usage
from clients.messages import ChatItem, Decoding
from judging.errors import CustosError, FieldError
from judging.files.kept_work import locked
from judging.files.opening import load_yaml
from judging.progress import in_batches
from judging.types import END_TOKEN, Message

if TYPE_CHECKING:
    from judging.scoring.prompts import Encoder
    from judging.scoring.tree_engine import TreeEngine

ANSWERED_AT_ONCE = 16
"""Questions that a local backbone answers between two saves."""
MAX_NEW_TOKENS = 512
"""Longest answer of a local backbone where the decoding sets no limit."""
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class ItemQuestion:
    """One question about an item, and the field that its answer goes into."""

    row: int
    """Index of the item's row, from 0."""
    field: str
    chat: ChatItem


def build_questions(
    benchmark: Benchmark,
    rows: Sequence[Row],
    style: str,
    with_images: bool = True,
    wording: Mapping[str, str] | None = None,
) -> list[ItemQuestion]:
    """Build every question of a benchmark: one user turn.

    ``style`` is one of the benchmark's, and ``wording`` a user's own text (``read_wording``) in its
    place. Raise ``CustosError`` if the style is not the benchmark's, a row lacks its id or a field,
    or a wording does not fit.
    """
    if style not in benchmark.styles:
        raise CustosError(f"style '{style}' is not one of {', '.join(benchmark.styles)}")
    questions = []
    for index, row in enumerate(rows):
        key = row.get(benchmark.item_id)
        if key is None:
            raise FieldError(benchmark.item_id, "is missing", f"item {index + 1}")
        prompts = benchmark.prompts(row, style)
        images = tuple(row.get("images") or ()) if with_images else ()
        for field, text in prompts.items():
            text = _worded(wording, field, row, prompts) if wording else text
            message = Message(role="user", text=text, images=images)
            name = str(key) if len(prompts) == 1 else f"{key}/{field}"
            questions.append(ItemQuestion(index, field, ChatItem(id=name, messages=(message,))))
    return questions


def read_wording(path: Path) -> dict[str, str]:
    """Read a user's own wording of a benchmark's questions, such as the exact text of a paper.

    The YAML file maps a field of a response (``response``), or field and language as the items
    spell it (``response/CN``), to a text. In it ``{question}`` and other fields in braces stand for
    what the item holds, ``{option_a}`` and so on for its options, and the field of a response for
    our own text of the question behind it. Other braces stay. Raise ``CustosError`` if the file
    cannot be read or holds something else.
    """
    try:
        wording = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CustosError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(wording, dict) or not all(isinstance(t, str) for t in wording.values()):
        raise CustosError(f"{path}: expected fields of responses, each with a text")
    return {str(field): text for field, text in wording.items()}


def _worded(wording: Mapping[str, str], field: str, row: Row, prompts: Mapping[str, str]) -> str:
    """Fill in the wording of a field's question about an item; ``prompts`` are our own texts."""
    text = wording.get(f"{field}/{row.get('language')}", wording.get(field))
    if text is None:
        raise CustosError(f"the wording has no text for '{field}'")
    options = row.get("options")
    letters = zip(ascii_lowercase, options if isinstance(options, list) else (), strict=False)
    values = {**row, **prompts, **{f"option_{letter}": option for letter, option in letters}}
    by_name = {name.casefold(): value for name, value in values.items()}
    return _SLOT.sub(lambda slot: str(by_name.get(slot[1].casefold(), slot[0])), text)


def join_answers(
    benchmark: Benchmark,
    rows: Sequence[Row],
    questions: Sequence[ItemQuestion],
    result: JobResult,
) -> tuple[list[Row], dict[int, str]]:
    """Put answers into the rows of their items.

    Give the rows whose every question was answered and, by row number from 1, the reason why each
    other row is missing. An answer may be an empty text. The fields whose answers ended at the
    token limit are named in ``cut_off``: no rule reads a final answer out of them. Rows whose
    pictures the model did not see have ``without_image``.
    """
    failed = {reject.id: reject.detail for reject in result.rejects}
    # Items may hold the answers of another model, and what is known of those.
    former = {*benchmark.found_fields, "verdicts", CUT_OFF, WITHOUT_IMAGE}
    complete: dict[int, Row] = {
        index: {name: value for name, value in row.items() if name not in former}
        for index, row in enumerate(rows)
    }
    problems: dict[int, str] = {}
    for question in questions:
        index, [message] = question.row, question.chat.messages
        reply = result.replies.get(question.chat.id)
        if reply is None:
            problems.setdefault(index + 1, failed.get(question.chat.id, "no answer"))
            complete.pop(index, None)
        elif index in complete:
            row = complete[index]
            if row.get("images") and not message.images:
                row[WITHOUT_IMAGE] = True
            row[question.field] = reply.text
            if reply.finish_reason == "length":
                row[CUT_OFF] = [*row.get(CUT_OFF, ()), question.field]
    return list(complete.values()), problems


def load_engine(backbone: str) -> tuple[str, Encoder, TreeEngine]:
    """Load a local backbone: its versioned name, its encoder and an engine.

    It is a hub id, a folder or ``embedded``. Raise ``CustosError`` if it cannot be loaded.
    """
    from judging.models.backbones import load_backbone
    from judging.scoring.prompts import Encoder
    from judging.scoring.tree_batch import TreeModel
    from judging.scoring.tree_engine import TreeEngine

    loaded = load_backbone(backbone)
    engine = TreeEngine(TreeModel(loaded.model), loaded.tokenizer.pad_token_id)
    return f"{loaded.name}/{loaded.version}", Encoder(loaded), engine


def ask_backbone(
    items: Sequence[ChatItem],
    backbone: str,
    decoding: Decoding,
    *,
    answers: Path,
    on_progress: OnProgress | None = None,
) -> JobResult:
    """Have a local backbone answer every item that has no answer yet.

    Items are single user turns under different ids; ``backbone`` is a hub id, a folder or
    ``embedded``. A decoding without a seed has seed 0. The JSONL file ``answers`` of ``KeptAnswer``
    grows batch by batch, and a later call starts from it. ``on_progress`` is called at the start
    and after every batch. Raise ``CustosError`` if the backbone cannot be loaded, or another
    process writes these answers.
    """
    model, encoder, engine = load_engine(backbone)
    with locked(answers):
        job = ChatJob(items, model, decoding, answers, on_progress)
        for batch in in_batches(job.remaining, ANSWERED_AT_ONCE):
            replies, rejects = _answer(batch, encoder, engine, decoding)
            job.save(replies)
            for key, error in rejects.items():
                job.reject(Reject(id=key, reason=REQUEST_FAILED, detail=str(error)))
    return job.result


def _answer(
    items: Sequence[ChatItem], encoder: Encoder, engine: TreeEngine, decoding: Decoding
) -> tuple[dict[str, Reply], dict[str, CustosError]]:
    """Answer items together: replies by item id, and the errors of the items that failed."""
    from judging.scoring.engine import Sampling, texts_in_order

    limit, top_p = decoding.max_tokens or MAX_NEW_TOKENS, decoding.top_p or 1.0
    sampling = Sampling(limit, decoding.temperature or 0.0, top_p)
    prompts, replies, rejects = {}, {}, {}
    for item in items:
        [message] = item.messages
        try:
            prompts[item.id] = encoder.encode_question(message.text, message.images)
        except CustosError as error:
            rejects[item.id] = error
    seeds = [decoding.seed or 0] * len(prompts)
    batches = engine.generate(list(prompts.values()), encoder, END_TOKEN, seeds, sampling)
    for (key, prompt), text in zip(prompts.items(), texts_in_order(batches), strict=True):
        if isinstance(text, CustosError):
            rejects[key] = text
            continue
        usage = Usage(prompt_tokens=len(prompt.suffix_ids), completion_tokens=len(text.tokens))
        reason = "stop" if text.finished else "length"
        replies[key] = Reply(text=text.text.strip(), finish_reason=reason, usage=usage)
    return replies, rejects
