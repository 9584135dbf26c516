"""Windows: requests that are read ahead, to fill batches with prompts of similar length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judging.errors import CustosError
from judging.files.pictures import picture_size
from judging.scoring.ask_model import (
    OrderedPrompt,
    ScoredPass,
    critique_sampling,
    make_ordered_prompts,
    score_labels,
)
from judging.scoring.engine import Engine, Sampling
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest

if TYPE_CHECKING:
    from judging.scoring.prompts import Encoder

WINDOW = 512
"""Most requests of a window."""
GPU_WINDOW = 128
"""Most requests of a window beside a GPU, which waits while the first window is encoded."""
WINDOW_PIXELS = 128 * 2**20
"""Most pixels of a window's pictures, as the model sees them.

Encoded, each takes 24 bytes (3 colours in two frames of 4 bytes), and all of a window are held at
once: 25 MB for a picture of 1 MP, as measured, and so 13 GB for 512 of them. The pictures of a pair
are encoded for both orders. Beside a GPU the next window is held, too.
"""


@dataclass(frozen=True)
class PromptGroup:
    """Encoded requests of a window that the model judges in one way."""

    task: JudgeTask
    rubric: str
    sampling: Sampling | None
    """How critiques are drawn; ``None`` without them."""
    requests: Mapping[int, JudgeRequest]
    """By their index in the window."""
    prompts: list[OrderedPrompt]
    errors: Mapping[int, CustosError]
    """Why a request has no prompt, by index."""

    def score(
        self,
        encoder: Encoder,
        engine: Engine,
        on_text: Callable[[OrderedPrompt, str], None] | None = None,
        is_wanted: Callable[[OrderedPrompt], bool] | None = None,
    ) -> dict[int, list[ScoredPass] | CustosError]:
        """Score the labels of the prompts, as :func:`score_labels`."""
        return score_labels(
            self.prompts,
            self.task,
            self.rubric,
            encoder,
            engine,
            self.sampling,
            on_text,
            is_wanted,
        )


def encode_groups(
    requests: Mapping[int, JudgeRequest], encoder: Encoder, sampling: Sampling | None = None
) -> list[PromptGroup]:
    """Encode requests, those of one task, rubric and sampling together.

    Args:
        requests: Requests by their index in the window, as the judge has resolved them.
        encoder: Encodes them.
        sampling: As for :func:`critique_sampling`.
    """
    groups: dict[tuple[str, str, Sampling | None], dict[int, JudgeRequest]] = {}
    for index, request in requests.items():
        rubric = get_task(request.task).rubric(request)
        key = (request.task, rubric, critique_sampling(request, sampling))
        groups.setdefault(key, {})[index] = request
    encoded = []
    for (name, rubric, drawn), group in groups.items():
        prompts, errors = make_ordered_prompts(group, get_task(name), encoder)
        encoded.append(PromptGroup(get_task(name), rubric, drawn, group, prompts, errors))
    return encoded


def in_windows(
    requests: Iterable[JudgeRequest], encoder: Encoder, size: int | None = None
) -> Iterator[list[JudgeRequest]]:
    """Yield requests in windows, which hold at least one.

    Args:
        requests: Any number. Where pictures end a window, the next request has been read already.
        encoder: Encoder that will encode them.
        size: Most requests of a window; default ``WINDOW``.
    """
    size = size or WINDOW
    window: list[JudgeRequest] = []
    num_pixels = 0
    for request in requests:
        more = _seen_pixels(request, encoder)
        if window and num_pixels + more > WINDOW_PIXELS:
            yield window
            window, num_pixels = [], 0
        window.append(request)
        num_pixels += more
        if len(window) == size:
            yield window
            window, num_pixels = [], 0
    if window:
        yield window


def _seen_pixels(request: JudgeRequest, encoder: Encoder) -> int:
    """Return the pixels that are encoded of a request; 0 if it is refused later."""
    try:
        shown = encoder.pictures(get_task(request.task), request)
        sizes = [picture_size(source).pixels for source in shown]
    except CustosError:
        return 0
    most = encoder.backbone.pixels.max_pixels
    return len(request.responses) * sum(min(pixels, most) for pixels in sizes)
