"""Estimates, in tokens, of what work costs the model. No tokenizer is needed for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from judging.errors import FieldError
from judging.files.pictures import picture_size
from judging.judge import Judge
from judging.tasks import get_task
from judging.tasks.base import Field
from judging.types import JudgeRequest

TokenCounter = Callable[[str], int]
"""Counts the tokens of a text, for any thread to call."""
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

    The texts are those that the model reads, with headings and what stands between the items of a
    list. The tokens of pictures are exact. They follow from the sizes in the pictures' headers and
    from the judge's limits on pixels.
    """
    tokens = (
        FRAME_TOKENS
        + text_tokens(f"{field.heading}: {field.text}" for field in _fields(request))
        + picture_tokens(judge.encoder.pictures(get_task(request.task), request), judge)
        + _critique_tokens(request)
    )
    is_read_twice = len(request.responses) == 2 and request.order == "both"
    return 2 * tokens if is_read_twice else tokens


def _critique_tokens(request: JudgeRequest) -> int:
    """Return the most tokens of a critique that the model writes, or about those of a given one."""
    if request.mode != "critique":
        return 0
    if request.given_critique is None:
        return request.critique_tokens
    return min(request.critique_tokens, text_tokens([request.given_critique]))


def check_length(request: JudgeRequest, judge: Judge, count: TokenCounter) -> None:
    """Check that the texts of a request are not longer than a judge's model reads.

    Only texts that may be too long are counted. Responses are not: the judge shortens them. The
    judge itself checks the whole prompt, which is a little longer, to the token.

    Args:
        request: A checked request.
        judge: Its judge.
        count: Counts the tokens of a text, for any thread.

    Raises:
        FieldError: If they are.
    """
    texts = [field.text for field in _fields(request) if not field.is_response]
    context = judge.backbone.context
    if sum(len(text.encode(errors="replace")) for text in texts) < context:  # a byte a token
        return
    num_tokens = sum(map(count, texts))
    if num_tokens >= context:
        raise FieldError(
            "question",
            f"the prompt has more than {num_tokens:,} tokens; {judge.backbone.name} reads "
            f"{context:,}; shorten the question, references or choices",
        )


def _fields(request: JudgeRequest) -> tuple[Field, ...]:
    return get_task(request.task).item(request)


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
