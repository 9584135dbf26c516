"""Estimates, in tokens, of what work costs the model. No tokenizer is needed for them."""

from __future__ import annotations

from collections.abc import Iterable

from judging import Judge, JudgeRequest
from judging.errors import FieldError
from judging.files.pictures import picture_size

BYTES_PER_TOKEN = 4
"""In English text, about."""
FRAME_TOKENS = 40
"""Turn markers, headings and the label tree."""
WINDOW_BATCHES = 12
"""Forward passes of a full window."""
WINDOW_TOKENS = 4096
"""Window of judges that do not say how many tokens a forward pass takes."""


def text_tokens(texts: Iterable[str]) -> int:
    """Return about how many tokens some texts have."""
    return sum(len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN


def request_tokens(request: JudgeRequest, judge: Judge) -> int:
    """Return about how many tokens a judge's model reads and writes for a checked request.

    The tokens of pictures are exact. They follow from the sizes in the pictures' headers and from
    the judge's limits on pixels.
    """
    tokens = (
        FRAME_TOKENS
        + text_tokens((request.question, *request.choices, *request.references, *request.responses))
        + picture_tokens(request.images, judge)
        + (request.critique_tokens if request.mode == "critique" else 0)
    )
    is_read_twice = len(request.responses) == 2 and request.order == "both"
    return 2 * tokens if is_read_twice else tokens


def picture_tokens(sources: Iterable[str], judge: Judge) -> int:
    """Return how many tokens a judge's model reads for pictures; 0 if it cannot take them."""
    try:
        return sum(judge.backbone.num_picture_tokens(picture_size(source)) for source in sources)
    except FieldError:  # the judge refuses the request before its model runs
        return 0


def window_tokens(judges: Iterable[Judge]) -> int:
    """Return how many tokens to give a judge at once: the most that suits one of the judges."""
    budgets = (getattr(judge.engine, "token_budget", None) for judge in judges)
    return max(WINDOW_BATCHES * budget if budget else WINDOW_TOKENS for budget in budgets)
