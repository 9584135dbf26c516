"""How much of anything a client may ask for."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SEED = 2**63 - 1
"""Largest seed that a random generator takes."""


@dataclass(frozen=True)
class Limits:
    """Bounds of the service; beyond one a client gets a 4xx that names it."""

    body_bytes: int = 20_000_000
    """One request body, however it is sent (413)."""
    body_seconds: float = 30.0
    """Time to send a whole body (408)."""
    held_bytes: int = 256_000_000
    """All bodies in hand at once, and the pictures fetched for them (429)."""
    requests: int = 256
    """Requests in one call (422)."""
    field_chars: int = 200_000
    """Characters of one text field (422)."""
    images: int = 8
    """Pictures of one request (422)."""
    image_pixels: int = 16_000_000
    """Pixels of one picture, read from its header (422)."""
    call_pixels: int = 64_000_000
    """Pixels of all pictures of a call (422)."""
    queue_requests: int = 512
    """Requests waiting for the model (429)."""
    queue_tokens: int = 400_000
    """Estimated tokens waiting for the model (429); a call that finds the queue empty enters."""
    deadline_s: float = 120.0
    """Longest wait for an answer (504); ``X-Deadline-Ms`` asks for a shorter one."""
