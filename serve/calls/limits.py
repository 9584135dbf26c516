"""Limits on what a client may send, and on how long it may wait."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SEED = 2**63 - 1
"""Largest seed that a random generator takes."""


@dataclass(frozen=True)
class CallLimits:
    """Limits on one call, which a client can keep by itself. ``GET /judges`` tells all of them."""

    body_bytes: int = 20_000_000
    """Bytes of a request body, however it is sent (413)."""
    body_seconds: float = 30.0
    """Seconds to send a whole body (408)."""
    requests: int = 256
    """Requests in one call (422)."""
    values: int = 100_000
    """Values in a body, as commas and opening brackets outside of texts tell them (413)."""
    field_chars: int = 200_000
    """Characters of one text field (422)."""
    items: int = 100
    """Items of a list, and fields of an object, in a request (422)."""
    images: int = 8
    """Pictures of one request (422)."""
    image_pixels: int = 16_000_000
    """Pixels of one picture, as its header says (422)."""
    call_pixels: int = 64_000_000
    """Pixels of all pictures of a call (422)."""
    picture_scans: int = 100
    """Scans of one JPEG. A progressive one usually has about ten (422)."""
    picture_seconds: float = 10.0
    """Seconds to decode one picture (a verdict ``invalid``)."""
    deadline_s: float = 120.0
    """Seconds from the arrival of a call to its answer (504). A client may ask for fewer with
    ``X-Deadline-Ms``."""


@dataclass(frozen=True)
class Limits(CallLimits):
    """Limits of the service. A client that exceeds one gets a status 4xx or 5xx that names it."""

    held_bytes: int = 256_000_000
    """Bytes of bodies in memory together, and of the pictures fetched for them (429)."""
    queue_requests: int = 512
    """Requests waiting for the model (429)."""
    queue_tokens: int = 400_000
    """Estimated tokens waiting for the model (429). An empty queue takes a call with more."""
    key_requests_per_minute: int | None = None
    """Requests that one access key may have judged in a minute (429)."""
    key_queue_share: float = 0.5
    """Share of the queue, and of the bytes in memory, that one access key may take (429)."""
    address_connections: int = 512
    """Connections of one address (503)."""
    stall_s: float = 0.0
    """Seconds without progress of the model after which the process ends itself; 0: never. After
    half of them the service is not ready."""
