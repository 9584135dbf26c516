"""Option log-probabilities of multiple-choice items from a local backbone, for ``bench lal``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from benchmarks.framework.answer_options import extract_option
from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row
from benchmarks.framework.responses import ANSWERED_AT_ONCE, ItemQuestion, load_engine
from clients.kept_work import in_batches
from judging.errors import CustosError, FieldError

if TYPE_CHECKING:
    from judging.scoring.prompts import Encoder
    from judging.scoring.tree_engine import TreeEngine

BEFORE_THE_LETTER = "("
"""First characters of a reply that names its option as TruthfulVQA asks: ``(A)``."""

Case = dict[str, Any]
"""The part of an item that LAL needs: ``set_id, level, id, answer``."""


def option_logits(
    benchmark: Benchmark,
    rows: Sequence[Row],
    questions: Sequence[ItemQuestion],
    backbone: str,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the log-probability of every option's letter in a reply that begins with ``(``.

    The model reads question and pictures once per item and generates no text. Log-probabilities
    stand for logits: within an item they differ by a constant, which cancels in advantages.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items with ``options``, ``set_id``, ``level`` and ``answer`` (or ``ground_truth``).
        questions: One question per row (``benchmarks.framework.responses.build_questions``).
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
    by_num_options: dict[int, list[tuple[ItemQuestion, Case]]] = {}
    for question in questions:
        try:
            case, num_options = _case(benchmark, rows[question.row])
            by_num_options.setdefault(num_options, []).append((question, case))
        except CustosError as error:
            problems[question.row + 1] = str(error)
    done = len(problems)
    for num_options, items in by_num_options.items():
        for batch in in_batches(items, ANSWERED_AT_ONCE):
            scored, failed = _score(batch, ascii_uppercase[:num_options], encoder, engine)
            results += scored
            problems |= failed
            done += len(batch)
            on_progress(done)
    return results, problems


def _score(
    items: Sequence[tuple[ItemQuestion, Case]],
    letters: str,
    encoder: Encoder,
    engine: TreeEngine,
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Score items with the same letters; return their results, and problems by row number."""
    opening = encoder.text(BEFORE_THE_LETTER)
    prompts, asked, problems, results = [], [], {}, []
    for question, case in items:
        [message] = question.chat.messages
        try:
            prompt = encoder.encode_question(message.text, message.images)
        except CustosError as error:
            problems[question.row + 1] = str(error)
            continue
        prompts.append(prompt.extended(opening))
        asked.append((question.row, case))
    scores = engine.score(prompts, encoder.tree(letters, end="")) if prompts else []
    for (row, case), score in zip(asked, scores, strict=True):
        if isinstance(score, CustosError):
            problems[row + 1] = str(score)
        else:
            logits = dict(zip(letters, score, strict=True))
            results.append({"case": case, "result": {"option_logits": logits}})
    return results, problems


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
