"""The body of ``POST /v1/chat/completions``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judging.errors import FieldError
from serve.chat.completion import Message
from serve.errors import ApiError
from serve.limits import Limits
from serve.requests.checks import checked_pictures, refusal
from serve.requests.parse import decode_object
from serve.requests.remote_images import RemoteImages

CANNOT = ("tools", "functions", "audio", "logit_bias", "prediction")
"""What would change the answer and cannot be done here; empty values are let pass."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Record):
    """A piece of text."""

    type: Literal["text"]
    text: str


class ImageUrl(_Record):
    """Where a picture is; ``detail`` is not looked at."""

    url: str


class ImagePart(_Record):
    """A picture."""

    type: Literal["image_url"]
    image_url: ImageUrl


def _as_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ChatMessage(_Record):
    """One turn."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[list[Part], BeforeValidator(_as_parts)]
    """Bare text counts as one part."""

    @property
    def text(self) -> str:
        """All its text."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[str, ...]:
        """Its pictures, in order."""
        return tuple(part.image_url.url for part in self.content if isinstance(part, ImagePart))


class ResponseFormat(_Record):
    """Whether the reply is to be a JSON object."""

    type: Literal["text", "json_object", "json_schema"]


class StreamOptions(_Record):
    """What a stream ends with."""

    include_usage: bool | None = None


class ChatRequest(_Record):
    """What is understood; other fields (``user``, ``metadata``, ...) are not looked at."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: Literal[1] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    response_format: ResponseFormat | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    @property
    def system(self) -> str:
        """What all system messages say."""
        return "\n".join(
            said.text for said in self.messages if said.role in ("system", "developer")
        )

    @property
    def text(self) -> str:
        """What everybody says, for counting."""
        return "\n".join(said.text for said in self.messages)

    @property
    def turns(self) -> list[ChatMessage]:
        """The conversation without system messages."""
        return [said for said in self.messages if said.role in ("user", "assistant")]

    @property
    def wants_json(self) -> bool:
        """Whether the reply is to be a JSON object."""
        return self.response_format is not None and self.response_format.type == "json_object"


def parse_chat(body: bytes, limits: Limits) -> ChatRequest:
    """Validate a body.

    Raises:
        ApiError: 422 naming the field.
    """
    decoded = decode_object(body)
    for name in CANNOT:
        if decoded.get(name):
            raise ApiError(422, "not supported here", name)
    try:
        asked = ChatRequest.model_validate(decoded)
    except ValidationError as error:
        raise refusal(FieldError.from_validation(error, whole="")) from None
    if asked.response_format and asked.response_format.type == "json_schema":
        raise ApiError(422, "only 'text' and 'json_object' are supported", "response_format.type")
    most = 5 * limits.field_chars  # a few fields and what a harness puts around them
    if sum(len(said.text) for said in asked.messages) > most:
        raise ApiError(422, f"longer than {most:,} characters in all", "messages")
    return asked


def conversation(
    asked: ChatRequest, limits: Limits, remote_images: RemoteImages | None
) -> list[Message]:
    """The messages for a model that writes freely, their pictures fetched and checked.

    Args:
        asked: The body.
        limits: Bounds on the pictures.
        remote_images: Where pictures may be fetched from; without, only data URLs are taken.

    Raises:
        ApiError: 422.
    """
    if asked.messages[-1].role != "user":
        raise ApiError(422, "expected the user to speak last", "messages")
    if sum(len(said.images) for said in asked.messages) > limits.images:
        raise ApiError(422, f"more than {limits.images} pictures", "messages")
    pictures = checked_pictures(
        [(said.images, f"messages.{place}.content") for place, said in enumerate(asked.messages)],
        limits,
        remote_images,
    )
    roles: list[Any] = [
        "system" if said.role == "developer" else said.role for said in asked.messages
    ]
    return [
        Message(role, said.text, images)
        for role, said, images in zip(roles, asked.messages, pictures, strict=True)
    ]
