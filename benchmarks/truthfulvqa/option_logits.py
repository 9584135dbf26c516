"""Option log-probabilities of multiple-choice items from a local backbone, for ``bench lal``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from benchmarks.framework.answer_options import extract_option
from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row
from benchmarks.framework.responses import ANSWERED_AT_ONCE, ItemQuestion
from judging.errors import CustosError

if TYPE_CHECKING:
    from judging.scoring.prompts import Encoder
    from judging.scoring.tree_engine import TreeEngine

BEFORE_THE_LETTER = "("
"""How a reply begins that names its option as TruthfulVQA asks: ``(A)``."""


def option_logits(
    benchmark: Benchmark,
    rows: Sequence[Row],
    asked: Sequence[ItemQuestion],
    backbone: str,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Log-probability of every option's letter, had the reply begun with ``(``.

    One pass over question and pictures per item, no text generated. Log-probabilities stand for
    logits: within an item they differ by a constant, which advantages do not see.

    Args:
        benchmark: Whose items they are.
        rows: Items with ``options``, ``set_id``, ``level`` and ``answer`` (or ``ground_truth``).
        asked: One question per row (``benchmarks.framework.responses.build_questions``).
        backbone: Hub id, folder or ``embedded``.
        on_progress: Called with the number of items done.

    Returns:
        What ``benchmarks.truthfulvqa.logit_advantage.measure_lal`` reads, and by row number from
        1 why the other rows are missing.

    Raises:
        CustosError: If the backbone cannot be loaded.
    """
    from judging.models.backbones import load_backbone
    from judging.scoring.prompts import Encoder
    from judging.scoring.tree_batch import TreeModel
    from judging.scoring.tree_engine import TreeEngine

    loaded = load_backbone(backbone)
    encoder = Encoder(loaded)
    engine = TreeEngine(TreeModel(loaded.model), loaded.tokenizer.pad_token_id)
    results: list[dict[str, Any]] = []
    problems: dict[int, str] = {}
    by_options: dict[int, list[tuple[ItemQuestion, dict[str, Any]]]] = {}
    for question in asked:
        try:
            case, options = _case(benchmark, rows[question.row])
            by_options.setdefault(options, []).append((question, case))
        except CustosError as error:
            problems[question.row + 1] = str(error)
    done = len(problems)
    for options, items in by_options.items():
        for start in range(0, len(items), ANSWERED_AT_ONCE):
            some = items[start : start + ANSWERED_AT_ONCE]
            found, failed = _score(some, ascii_uppercase[:options], encoder, engine)
            results += found
            problems |= failed
            done += len(some)
            on_progress(done)
    return results, problems


def _score(
    items: Sequence[tuple[ItemQuestion, dict[str, Any]]],
    letters: str,
    encoder: Encoder,
    engine: TreeEngine,
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    opening = encoder.text(BEFORE_THE_LETTER)
    prompts, cases, problems = [], [], {}
    for question, case in items:
        [message] = question.chat.messages
        try:
            prompt = encoder.encode_question(message.text, message.images)
        except CustosError as error:
            problems[question.row + 1] = str(error)
            continue
        prompts.append(prompt.extended(opening))
        cases.append(case)
    scores = engine.score(prompts, encoder.tree(letters, end="")) if prompts else []
    return [
        {"case": case, "result": {"option_logits": dict(zip(letters, row, strict=True))}}
        for case, row in zip(cases, scores, strict=True)
    ], problems


def _case(benchmark: Benchmark, row: Row) -> tuple[dict[str, Any], int]:
    """What LAL needs to know about an item, and how many options it has."""
    options = row.get("options")
    answer = extract_option(str(row.get("ground_truth", row.get("answer"))))
    if not isinstance(options, list) or len(options) < 2 or answer is None:
        raise CustosError("option logits need 'options' and the letter of the right one")
    for field in ("set_id", "level"):
        if row.get(field) is None:
            raise CustosError(f"field '{field}' is missing")
    case = {field: row[field] for field in ("set_id", "level")}
    return {**case, "id": row.get(benchmark.item_id), "answer": answer}, len(options)
