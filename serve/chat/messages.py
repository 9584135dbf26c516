"""The body of ``POST /v1/chat/completions``. What is wrong with it is 422 and names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judging.base64_pictures import one_form
from judging.errors import FieldError
from judging.files.pictures import PictureSize
from judging.types import Message
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.queue.service import Service
from serve.requests.parse import check_items, decode_object, measured_pictures, refusal

UNSUPPORTED = ("functions", "audio", "logit_bias", "prediction")
"""Fields that would change the answer and are not supported here, unless they are empty."""
MOST_COPIES = 8


class _Object(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Object):
    """A piece of text."""

    type: Literal["text"]
    text: str


class ImageUrl(_Object):
    """Address or data URL of a picture. ``detail`` is ignored."""

    url: Annotated[str, AfterValidator(one_form)]


class ImagePart(_Object):
    """A picture."""

    type: Literal["image_url"]
    image_url: ImageUrl


def _as_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ChatMessage(_Object):
    """One message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[list[Part], BeforeValidator(_as_parts)]
    """Bare text counts as one part."""

    @property
    def text(self) -> str:
        """Join all its text."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[str, ...]:
        """List its pictures, in order."""
        return tuple(part.image_url.url for part in self.content if isinstance(part, ImagePart))


class JsonSchema(_Object):
    """A named JSON schema of a reply."""

    content: Any = Field(default=None, alias="schema")


class ResponseFormat(_Object):
    """The form of the reply."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class Function(_Object):
    """What a tool is called with."""

    name: str
    parameters: Any = None


class Tool(_Object):
    """A tool that a reply may call; ``strict`` is ignored, as schemas are always kept."""

    type: Literal["function"]
    function: Function


class StreamOptions(_Object):
    """The end of a streamed reply."""

    include_usage: bool | None = None


class ChatRequest(_Object):
    """The fields that are understood; others (``user``, ``metadata``, ...) are ignored."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: int | None = Field(default=None, ge=1, le=MOST_COPIES)
    """How many choices to reply with. Verdicts do not differ: all are the same one."""
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    response_format: ResponseFormat | None = None
    tools: list[Tool] | None = None
    tool_choice: Any = None
    reasoning: Any = None
    """``keep``: what stands in thinking tags of a response is graded too. Other values, such as
    the efforts that some servers take, are ignored."""
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    @property
    def system(self) -> str:
        """Join the text of all system messages."""
        return "\n".join(
            message.text for message in self.messages if message.role in ("system", "developer")
        )

    @property
    def text(self) -> str:
        """Join the text of all messages, to count its tokens."""
        return "\n".join(message.text for message in self.messages)

    @property
    def prompt(self) -> tuple[str, str]:
        """Return the message with the prompt, and the text of the system messages beside it.

        The prompt is the one message of a user, or a lone system message. Raises ``ApiError`` 422
        if there is no such message.
        """
        if len(self.messages) == 1 and self.messages[0].role != "assistant":
            return self.messages[0].text, ""
        turns = [each for each in self.messages if each.role in ("user", "assistant")]
        if len(turns) != 1 or turns[0].role != "user":
            message = "expected one user message with the whole prompt, after system messages"
            raise ApiError(422, message, "messages")
        return turns[0].text, self.system

    @property
    def images(self) -> tuple[str, ...]:
        """List all pictures, in order."""
        return tuple(image for message in self.messages for image in message.images)

    @property
    def format(self) -> Literal["text", "json_object", "json_schema"]:
        """Return the form of the reply."""
        return self.response_format.type if self.response_format else "text"

    def tool(self) -> int | None:
        """Return the index of the tool to call; ``None`` if none is.

        Raises ``ApiError`` 422 if there are several to choose from.
        """
        if not self.tools or self.tool_choice == "none":
            return None
        choice = self.tool_choice
        if isinstance(choice, dict):
            named = choice.get("function", choice)
            name = named.get("name") if isinstance(named, dict) else None
            for index, tool in enumerate(self.tools):
                if tool.function.name == name:
                    return index
            raise ApiError(422, "expected the name of one of the tools", "tool_choice")
        if len(self.tools) > 1:
            message = "a verdict is the arguments of one tool: give one, or name it in tool_choice"
            raise ApiError(422, message, "tools")
        return 0


Translate = Callable[[dict[str, Any]], dict[str, Any]]


def parse_chat(body: bytes, limits: Limits, translate: Translate | None = None) -> ChatRequest:
    """Validate a body; ``translate`` turns that of another route into one of this."""
    decoded = decode_object(body, limits)
    if translate:
        decoded = translate(decoded)
    for name in UNSUPPORTED:
        if decoded.get(name):
            raise ApiError(422, "not supported here", name)
    check_items(decoded, "", limits)
    messages = decoded.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict):
            check_items(message, f"messages.{index}.", limits)
    try:
        chat = ChatRequest.model_validate(decoded)
    except ValidationError as error:
        raise refusal(FieldError.from_validation(error)) from None
    max_chars = 5 * limits.field_chars  # a few fields, and a script's own text around them
    if sum(len(message.text) for message in chat.messages) > max_chars:
        raise ApiError(422, f"longer than {max_chars:,} characters in all", "messages")
    return chat


class Turn(NamedTuple):
    """A message for a model that writes freely."""

    message: Message
    sizes: tuple[PictureSize, ...]
    """Sizes of its pictures."""


async def read_conversation(chat: ChatRequest, service: Service) -> list[Turn]:
    """Read the messages for a model that writes freely; fetch and measure their pictures."""
    if chat.messages[-1].role != "user":
        raise ApiError(422, "expected the user to speak last", "messages")
    most = service.limits.images
    if sum(len(message.images) for message in chat.messages) > most:
        raise ApiError(422, f"more than {most} pictures", "messages")
    groups = [(each.images, f"messages.{n}.content") for n, each in enumerate(chat.messages)]
    pictures = await measured_pictures(groups, service)
    turns = []
    for each, (images, sizes) in zip(chat.messages, pictures, strict=True):
        role = "system" if each.role == "developer" else each.role
        turns.append(Turn(Message(role=role, text=each.text, images=images), sizes))
    return turns
