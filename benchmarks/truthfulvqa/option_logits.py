"""Option logits of multiple-choice items from a local backbone, for ``bench lal``.

The logits are read where the model itself names its option: after its own reasoning, if it reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row
from benchmarks.framework.responses import ANSWERED_AT_ONCE, ItemQuestion, load_engine
from clients.chat import Reply
from judging.batches import in_batches
from judging.errors import CustosError, FieldError
from judging.rules.answer_options import extract_option, find_option

if TYPE_CHECKING:
    from judging.scoring.prompts import EncodedPrompt, Encoder
    from judging.scoring.tree_engine import TreeEngine

Case = dict[str, Any]
"""The part of an item that LAL needs: ``set_id, level, id, answer``."""


@dataclass(frozen=True)
class _Choice:
    """An answer up to the token that names the model's option."""

    row: int
    case: Case
    prompt: EncodedPrompt
    """Question, and answer before the token with the option's letter."""
    tokens: tuple[int, ...]
    """One token for each option, in the form in which the model writes letters."""


def option_logits(
    benchmark: Benchmark,
    rows: Sequence[Row],
    questions: Sequence[ItemQuestion],
    replies: Mapping[str, Reply],
    backbone: str,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the logit of every option where the model names the one that it settles on.

    The model reads the question and its own answer up to the letter of the option; the logits are
    those of the next token, before any softmax, for every letter in the form that the model uses:
    after ``Therefore (`` those of ``A`` to ``D``, or of ``(A`` to ``(D`` where that is one token.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items with ``options``, ``set_id``, ``level`` and ``answer`` (or ``ground_truth``).
        questions: One question per row (``benchmarks.framework.responses.build_questions``).
        replies: The backbone's own answers, by the id of the question.
        backbone: Hub id, folder or ``embedded``.
        on_progress: Called with the number of items done.

    Returns:
        The results that ``benchmarks.truthfulvqa.logit_advantage.measure_lal`` reads, and, by row
        number from 1, the reason why each other row is missing.

    Raises:
        CustosError: If the backbone cannot be loaded.
    """
    _, encoder, engine = load_engine(backbone)
    results: list[dict[str, Any]] = []
    problems: dict[int, str] = {}
    for batch in in_batches(questions, ANSWERED_AT_ONCE):
        choices: dict[tuple[int, ...], list[_Choice]] = {}
        for question in batch:
            try:
                reply = replies.get(question.chat.id)
                choice = _choice(benchmark, rows[question.row], question, reply, encoder)
                choices.setdefault(choice.tokens, []).append(choice)
            except CustosError as error:
                problems[question.row + 1] = str(error)
        for tokens, of_tokens in choices.items():
            scored, failed = _score(of_tokens, tokens, engine)
            results += scored
            problems |= failed
        on_progress(len(results) + len(problems))
    return results, problems


def _score(
    choices: Sequence[_Choice], tokens: Sequence[int], engine: TreeEngine
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Score choices among the same tokens; return their results, and problems by row number."""
    results, problems = [], {}
    scores = engine.next_token_logits([choice.prompt for choice in choices], tokens)
    for choice, logits in zip(choices, scores, strict=True):
        if isinstance(logits, CustosError):
            problems[choice.row + 1] = str(logits)
        else:
            options = dict(zip(ascii_uppercase, logits, strict=False))
            results.append({"case": choice.case, "result": {"option_logits": options}})
    return results, problems


def _choice(
    benchmark: Benchmark,
    row: Row,
    question: ItemQuestion,
    reply: Reply | None,
    encoder: Encoder,
) -> _Choice:
    """Return a model's answer up to its option, and the tokens of all options.

    Raises:
        CustosError: If the answer is missing, cut off or names no option, or a letter is not a
            token by itself.
    """
    case, num_options = _case(benchmark, row)
    if reply is None or reply.finish_reason == "length":
        raise CustosError("option logits need the model's whole answer")
    option = find_option(reply.text)
    if option is None:
        raise CustosError("option logits need an answer that names an option")
    before, tokens = _tokens(reply.text, option[1], num_options, encoder)
    [message] = question.chat.messages
    prompt = encoder.encode_question(message.text, message.images).extended(before)
    return _Choice(question.row, case, prompt, tokens)


def _tokens(
    text: str, index: int, num_options: int, encoder: Encoder
) -> tuple[list[int], tuple[int, ...]]:
    """Return the tokens of an answer before its option's letter, and the token of every letter.

    Args:
        text: The answer.
        index: Index of the option's letter in it.
        num_options: Options of the question.
        encoder: Encoder of the backbone that answered.

    Raises:
        CustosError: If a letter is not a token by itself.
    """
    encoded = encoder.backbone.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True
    )
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    number = next(n for n, (start, end) in enumerate(offsets) if start <= index < end)
    piece = encoder.backbone.tokenizer.decode([ids[number]])
    letters = ascii_lowercase if text[index].islower() else ascii_uppercase
    tokens = [encoder.text(piece.replace(text[index], letter)) for letter in letters[:num_options]]
    if any(len(token) != 1 for token in tokens) or [ids[number]] not in tokens:
        raise CustosError(f"option logits need letters of one token each, unlike '{piece}'")
    return ids[:number], tuple(token for [token] in tokens)


def _case(benchmark: Benchmark, row: Row) -> tuple[Case, int]:
    """Return an item's case, and its number of options."""
    options = row.get("options")
    answer = extract_option(str(row.get("ground_truth", row.get("answer"))))
    if not isinstance(options, list) or len(options) < 2 or answer is None:
        raise CustosError("option logits need 'options' and the letter of the right one")
    for field in ("set_id", "level"):
        if row.get(field) is None:
            raise FieldError(field, "is missing")
    case = {field: row[field] for field in ("set_id", "level")}
    return {**case, "id": row.get(benchmark.item_id), "answer": answer}, len(options)
