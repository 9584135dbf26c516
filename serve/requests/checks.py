"""Checks of a request before a judge takes it: its fields, its task and its pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from judging import CustosError, JudgeRequest
from judging.errors import FieldError
from judging.types import field_names
from serve.call_context import require_open
from serve.errors import ApiError
from serve.limits import MAX_SEED, Limits
from serve.queue.service import Service
from serve.requests.images import num_pixels
from serve.requests.remote_images import RemoteImages

MOST_ALSO_NAMED = 5
"""Most wrong fields of a request that an error names beside the first."""


def parse_request(row: Any, prefix: str, limits: Limits) -> JudgeRequest:
    """Validate one decoded request object.

    Args:
        row: What the client sent.
        prefix: Path of the request in the body, to stand before a field's name: ``requests.3.``.
        limits: Limits on it.

    Raises:
        ApiError: 422 naming the field.
    """
    require_open()
    if isinstance(row, dict):
        check_items(row, prefix, limits)
    try:
        return JudgeRequest.model_validate(row)
    except ValidationError as error:
        messages: dict[str, str] = {}
        for wrong in FieldError.all_from_validation(error, names=field_names(JudgeRequest)):
            messages.setdefault(_path(wrong.field, row, prefix), wrong.message)
        (path, message), *others = messages.items()
        also = [f"; and field '{other}': {text}" for other, text in others[:MOST_ALSO_NAMED]]
        raise ApiError(422, "".join([message, *also]), path) from None


def check_items(fields: Mapping[str, Any], prefix: str, limits: Limits) -> None:
    """Check that an object has few fields, and every list in them few items.

    Args:
        fields: The object, before anything else looks at it.
        prefix: As for :func:`parse_request`.
        limits: Limits on the request.

    Raises:
        ApiError: 422 naming the field.
    """
    if len(fields) > limits.items:
        raise ApiError(422, f"more than {limits.items} fields", prefix.rstrip(".") or "body")
    for name, value in fields.items():
        if isinstance(value, list | tuple) and len(value) > limits.items:
            raise ApiError(422, f"more than {limits.items} items", f"{prefix}{name}")


def refusal(error: CustosError, prefix: str = "") -> ApiError:
    """Return the answer 422 to a bad request.

    Args:
        error: A :class:`FieldError` where a field is wrong.
        prefix: As for :func:`parse_request`.
    """
    field, message = "", str(error)
    if isinstance(error, FieldError):
        field, message = error.field, error.message
    return ApiError(422, message, (prefix + field).rstrip(".") or "body")


def check_request(request: JudgeRequest, prefix: str, limits: Limits) -> None:
    """Check that everything in a request but its pictures is within limits.

    Args:
        request: The request.
        prefix: As for :func:`parse_request`.
        limits: Limits on it.

    Raises:
        ApiError: 422 naming the field.
    """
    check_items(dict(request), prefix, limits)  # those of a chat prompt were in one text
    _check_texts(request, prefix, limits)
    if not 0 <= request.seed <= MAX_SEED:
        raise ApiError(422, f"expected 0 to {MAX_SEED}", f"{prefix}seed")
    if len(request.images) > limits.images:
        raise ApiError(422, f"more than {limits.images} pictures", f"{prefix}images")


async def with_pictures(
    requests: Sequence[JudgeRequest],
    prefixes: Sequence[str],
    service: Service,
    remote_images: RemoteImages | None,
) -> tuple[JudgeRequest, ...]:
    """Return checked requests with their pictures fetched and measured.

    Args:
        requests: The requests of one call.
        prefixes: As for :func:`parse_request`, of each.
        service: Has the limits and the readers.
        remote_images: Fetches pictures; without, only data URLs are taken.

    Raises:
        ApiError: 422 naming the field.
    """
    groups = [
        (request.images, f"{prefix}images")
        for request, prefix in zip(requests, prefixes, strict=True)
    ]
    fetched = await checked_pictures(groups, service, remote_images)
    return tuple(
        # A copy keeps which fields the client has set.
        request if images == request.images else request.model_copy(update={"images": images})
        for request, images in zip(requests, fetched, strict=True)
    )


async def checked_pictures(
    groups: Sequence[tuple[tuple[str, ...], str]],
    service: Service,
    remote_images: RemoteImages | None,
) -> list[tuple[str, ...]]:
    """Fetch the pictures of a call and measure them.

    Args:
        groups: The pictures of each request or message, and their path in the body.
        service: As for :func:`with_pictures`.
        remote_images: As for :func:`with_pictures`.

    Raises:
        ApiError: 422 naming the path.
    """
    fetched = [images for images, _ in groups]
    if remote_images:
        fetched = await remote_images.fetch_all(groups)
    length = sum(len(source) for images in fetched for source in images)
    fields = [field for _, field in groups]
    await service.readers.read(length, _check_pixels, fetched, fields, service.limits)
    return fetched


def _check_pixels(groups: Sequence[Sequence[str]], fields: Sequence[str], limits: Limits) -> None:
    pixels = 0
    for images, field in zip(groups, fields, strict=True):
        for source in images:
            require_open()
            pixels += num_pixels(source, field, limits)
        if pixels > limits.call_pixels:
            raise ApiError(422, f"more than {limits.call_pixels:,} pixels in one call", field)


def _check_texts(request: JudgeRequest, prefix: str, limits: Limits) -> None:
    for name in ("question", "choices", "references", "responses", "criteria", "given_critique"):
        value = getattr(request, name) or ""
        num_chars = sum(map(len, value))  # the same for a string and a tuple of strings
        if num_chars > limits.field_chars:
            raise ApiError(422, f"longer than {limits.field_chars:,} characters", f"{prefix}{name}")


def _path(field: str, row: Any, prefix: str) -> str:
    """Return the path of a wrong field under the name that the client gave a response."""
    if field.partition(".")[0] == "responses" and "responses" not in row:
        is_pair = "response_a" in row or "response_b" in row
        sides = {"responses.0": "response_a", "responses.1": "response_b"}
        field = sides.get(field, field) if is_pair else "response"
    return (prefix + field).rstrip(".") or "body"
