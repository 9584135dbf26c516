"""Estimates, in tokens, of what work costs the model. No tokenizer is needed for them."""

from __future__ import annotations

from collections.abc import Iterable

from judging import Judge, JudgeRequest

BYTES_PER_TOKEN = 4
"""In English text, about."""
FRAME_TOKENS = 40
"""Turn markers, headings and the label tree."""
PICTURE_TOKENS = 256
WINDOW_BATCHES = 12
"""Forward passes of a full window."""
WINDOW_TOKENS = 4096
"""Window of judges that do not say how many tokens a forward pass takes."""


def text_tokens(texts: Iterable[str]) -> int:
    """Return about how many tokens some texts have."""
    return sum(len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN


def request_tokens(request: JudgeRequest) -> int:
    """Return about how many tokens the model reads and writes for a checked request."""
    tokens = (
        FRAME_TOKENS
        + text_tokens((request.question, *request.choices, *request.references, *request.responses))
        + PICTURE_TOKENS * len(request.images)
        + (request.critique_tokens if request.mode == "critique" else 0)
    )
    is_read_twice = len(request.responses) == 2 and request.order == "both"
    return 2 * tokens if is_read_twice else tokens


def window_tokens(judges: Iterable[Judge]) -> int:
    """Return how many tokens to give a judge at once: the most that suits one of the judges."""
    budgets = (getattr(judge.engine, "token_budget", None) for judge in judges)
    return max(WINDOW_BATCHES * budget if budget else WINDOW_TOKENS for budget in budgets)
