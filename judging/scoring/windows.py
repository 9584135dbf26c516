"""Windows: requests that are read ahead, to fill batches with prompts of similar length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from judging.errors import CustosError
from judging.files.pictures import picture_size
from judging.tasks import get_task
from judging.types import JudgeRequest

if TYPE_CHECKING:
    from judging.scoring.prompts import Encoder

WINDOW = 512
"""Most requests of a window."""
WINDOW_PIXELS = 128 * 2**20
"""Most pixels of a window's pictures, as the model sees them.

Encoded, each takes 24 bytes (3 colours in two frames of 4 bytes), and all of a window are held at
once: 25 MB for a picture of 1 MP, as measured, and so 13 GB for 512 of them. The pictures of a pair
are encoded for both orders.
"""


def in_windows(requests: Iterable[JudgeRequest], encoder: Encoder) -> Iterator[list[JudgeRequest]]:
    """Yield requests in windows, which hold at least one.

    Args:
        requests: Any number. Where pictures end a window, the next request has been read already.
        encoder: Encoder that will encode them.
    """
    window: list[JudgeRequest] = []
    num_pixels = 0
    for request in requests:
        more = _seen_pixels(request, encoder)
        if window and num_pixels + more > WINDOW_PIXELS:
            yield window
            window, num_pixels = [], 0
        window.append(request)
        num_pixels += more
        if len(window) == WINDOW:
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
