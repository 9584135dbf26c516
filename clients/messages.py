"""Requests to a chat model: conversations with pictures, and how the answer is sampled."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from judging.files.pictures import (
    FORMATS,
    is_turned,
    mime_type,
    opened_source,
    picture_errors,
    plain_url,
    read_image,
    was_scaled,
)
from judging.fingerprint import picture_sha256
from judging.types import Message

if TYPE_CHECKING:
    from PIL.Image import Image

# These models refuse the older name of the limit, the only one that many other servers know.
_TAKES_COMPLETION_LIMIT = re.compile(r"(?:.*/)?(?:gpt-5|o\d)")
SENT_KINDS = ("image/jpeg", "image/png", "image/webp")
"""Kinds of pictures that every server reads. Files of other kinds are sent as PNG."""
UPRIGHT_QUALITY = 95
"""Quality of the JPEG that a photograph becomes where its EXIF turns it."""


class ChatItem(BaseModel, frozen=True, extra="forbid"):
    """A conversation that a model is to answer."""

    id: str
    messages: tuple[Message, ...]


class Decoding(BaseModel, frozen=True, extra="forbid"):
    """Sampling settings. A setting of ``None`` is not sent: the server uses its default."""

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    reasoning_effort: str | None = None
    """How long a reasoning model thinks, in the server's own words, such as ``high``."""


def request_body(item: ChatItem, model: str, decoding: Decoding) -> bytes:
    """Make the JSON body of ``POST /chat/completions``.

    Raises ``FieldError`` if a picture cannot be read.
    """
    settings = decoding.model_dump(exclude_none=True)
    if "max_tokens" in settings and _TAKES_COMPLETION_LIMIT.match(model):
        settings["max_completion_tokens"] = settings.pop("max_tokens")
    messages = [encode_message(message) for message in item.messages]
    return json.dumps({"model": model, "messages": messages, **settings}).encode()


def item_key(item: ChatItem, model: str, decoding: Decoding) -> str:
    """Return the SHA-256 of what an answer depends on: messages, pictures, model, decoding."""
    content = {
        "messages": [
            {**turn.model_dump(), "images": [picture_sha256(source) for source in turn.images]}
            for turn in item.messages
        ],
        "model": model,
        # A setting that came later leaves the keys of answers without it as they were.
        "decoding": decoding.model_dump(
            exclude={"reasoning_effort"} if decoding.reasoning_effort is None else set()
        ),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def picture_url(source: str) -> str:
    """Return a picture as a URL that a server can read: files become data URLs.

    A file that is no JPEG, PNG or WebP becomes a PNG of what a judge on this machine sees of it.
    Raises ``FieldError`` if the file is not a readable picture.
    """
    if source.startswith(("data:", "http://", "https://")):
        return plain_url(source)
    from PIL import Image

    with picture_errors(source), opened_source(source) as file:
        content = file.read()
        with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            kind = mime_type(picture)
    if kind not in SENT_KINDS:
        return _encoded(read_image(source), "PNG")
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def upright_url(source: str) -> str:
    """Return a picture as a URL whose pixels are upright, as not every server reads EXIF.

    A web address stays as it is, and so does what the service has decoded and scaled before. Raises
    ``FieldError`` if the picture cannot be read.
    """
    is_address = source.startswith(("http://", "https://"))
    if is_address or was_scaled(source) or not is_turned(source):
        return picture_url(source)
    return _encoded(read_image(source), "JPEG", quality=UPRIGHT_QUALITY, subsampling=0)


def _encoded(picture: Image, format_name: str, **options: Any) -> str:
    content = io.BytesIO()
    picture.save(content, format_name, **options)
    encoded = base64.b64encode(content.getvalue()).decode()
    return f"data:image/{format_name.lower()};base64,{encoded}"


def one_user_turn(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Join the turns of a request's fields to one, for models whose control tokens are not known.

    Many chat templates refuse two turns of the user in a row. Every field begins on a line of its
    own. Each further line of it is marked with ``>``, and marks of ChatML such as ``<|im_end|>``
    lose their form, so that no text can end its field and begin another.
    """
    fields = [message for message in messages if message.role == "user"]
    lines = ["\n> ".join(field.text.replace("<|", "< |").splitlines()) for field in fields]
    images = tuple(source for field in fields for source in field.images)
    user = Message(role="user", text="\n".join(lines), images=images)
    first = messages.index(fields[0])
    return (*messages[:first], user, *messages[first + len(fields) :])


def encode_message(message: Message) -> dict[str, Any]:
    """Return a turn as the chat API spells it: text alone, or pictures and text.

    Raises ``FieldError`` if a picture cannot be read.
    """
    if not message.images:
        return {"role": message.role, "content": message.text}
    pictures = [
        {"type": "image_url", "image_url": {"url": upright_url(source)}}
        for source in message.images
    ]
    return {"role": message.role, "content": [*pictures, {"type": "text", "text": message.text}]}
