"""Whether a request may be put to a judge: its fields, its task and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from judging import CustosError, JudgeRequest
from judging.errors import FieldError
from judging.tasks import get_task
from serve.errors import ApiError
from serve.limits import MAX_SEED, Limits
from serve.requests.images import num_pixels
from serve.requests.remote_images import RemoteImages


def parse_request(row: Any, prefix: str) -> JudgeRequest:
    """Validate one decoded request object.

    Args:
        row: What the client sent.
        prefix: Path of the request in the body, to put before a field's name: ``requests.3.``.

    Raises:
        ApiError: 422 naming the field.
    """
    try:
        return JudgeRequest.model_validate(row)
    except ValidationError as error:
        raise refusal(FieldError.from_validation(error, whole=""), prefix) from None


def checked_requests(
    requests: Sequence[JudgeRequest],
    prefixes: Sequence[str],
    limits: Limits,
    remote_images: RemoteImages | None,
) -> tuple[JudgeRequest, ...]:
    """Check that each request suits its task, and that its texts and pictures are within limits.

    Args:
        requests: Of one call.
        prefixes: As for :func:`parse_request`, of each.
        limits: Bounds.
        remote_images: Where pictures may be fetched from, once all else is known to be right;
            without, only data URLs are taken.

    Returns:
        The requests, their pictures fetched.

    Raises:
        ApiError: 422 naming the field.
    """
    for request, prefix in zip(requests, prefixes, strict=True):
        _check_task(request, prefix)
        _check_texts(request, prefix, limits)
        if not 0 <= request.seed <= MAX_SEED:
            raise ApiError(422, f"expected 0 to {MAX_SEED}", f"{prefix}seed")
        field = f"{prefix}images"
        if len(request.images) > limits.images:
            raise ApiError(422, f"more than {limits.images} pictures", field)
    pictures = checked_pictures(
        [(one.images, f"{prefix}images") for one, prefix in zip(requests, prefixes, strict=True)],
        limits,
        remote_images,
    )
    return tuple(
        # A copy keeps which fields the client has set.
        request if own == request.images else request.model_copy(update={"images": own})
        for request, own in zip(requests, pictures, strict=True)
    )


def checked_pictures(
    pictures: Sequence[tuple[tuple[str, ...], str]],
    limits: Limits,
    remote_images: RemoteImages | None,
) -> list[tuple[str, ...]]:
    """Fetch the pictures of a call and measure them.

    Args:
        pictures: Groups of them, not too many, each with its path in the body.
        limits: Bounds on their pixels.
        remote_images: As for :func:`checked_requests`.

    Raises:
        ApiError: 422 naming the group.
    """
    fields = [field for _, field in pictures]
    groups = remote_images.fetched(pictures) if remote_images else [own for own, _ in pictures]
    pixels = 0
    for own, field in zip(groups, fields, strict=True):
        pixels += sum(num_pixels(source, field, limits) for source in own)
        if pixels > limits.call_pixels:
            raise ApiError(422, f"more than {limits.call_pixels:,} pixels in one call", field)
    return groups


def _check_task(request: JudgeRequest, prefix: str) -> None:
    try:
        get_task(request.task).check(request)
    except CustosError as error:
        raise refusal(error, prefix) from None


def refusal(error: CustosError, prefix: str = "") -> ApiError:
    """Return the answer 422 to a bad request, naming the field."""
    field, message = "", str(error)
    if isinstance(error, FieldError):
        field, message = error.field, error.message
    return ApiError(422, message, (prefix + field).rstrip(".") or "body")


def _check_texts(request: JudgeRequest, prefix: str, limits: Limits) -> None:
    for name in ("question", "choices", "references", "responses", "criteria"):
        value = getattr(request, name)
        num_chars = sum(map(len, value))  # of a string as of a tuple of strings
        if num_chars > limits.field_chars:
            raise ApiError(422, f"longer than {limits.field_chars:,} characters", f"{prefix}{name}")
