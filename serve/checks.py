"""Whether a request may be put to a judge: its fields, its task and its pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from judging import CustosError, JudgeRequest
from judging.tasks import get_task
from serve.errors import ApiError
from serve.images import num_pixels
from serve.limits import Limits

NAMED_FIELD = re.compile(r"field '([^']+)': (.*)", re.DOTALL)


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
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise ApiError(422, message, (prefix + path).rstrip(".") or "body") from None


def check_requests(
    requests: Sequence[JudgeRequest], prefixes: Sequence[str], limits: Limits
) -> None:
    """Check that each request suits its task, and that its texts and pictures are within limits.

    Raises:
        ApiError: 422 naming the field.
    """
    pixels = 0
    for request, prefix in zip(requests, prefixes, strict=True):
        _check_task(request, prefix)
        _check_texts(request, prefix, limits)
        field = f"{prefix}images"
        if len(request.images) > limits.images:
            raise ApiError(422, f"more than {limits.images} pictures", field)
        pixels += sum(num_pixels(source, field, limits) for source in request.images)
        if pixels > limits.call_pixels:
            raise ApiError(422, f"more than {limits.call_pixels:,} pixels in one call", field)


def _check_task(request: JudgeRequest, prefix: str) -> None:
    try:
        get_task(request.task).check(request)
    except CustosError as error:
        named = NAMED_FIELD.fullmatch(str(error))
        path, message = named.groups() if named else ("", str(error))
        raise ApiError(422, message, (prefix + path).rstrip(".") or "body") from None


def _check_texts(request: JudgeRequest, prefix: str, limits: Limits) -> None:
    for name in ("question", "choices", "references", "responses", "criteria"):
        value = getattr(request, name)
        num_chars = sum(map(len, value))  # of a string as of a tuple of strings
        if num_chars > limits.field_chars:
            raise ApiError(422, f"longer than {limits.field_chars:,} characters", f"{prefix}{name}")
