"""OpenAI's Responses API, as another form of the chat completions: its body and its reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serve.calls.errors import ApiError
from serve.chat.wire import Ending, Piece, ReplyFrame

UNSUPPORTED = ("stream", "background", "previous_response_id", "conversation", "prompt")
TEXT_TYPES = ("input_text", "output_text", "text")
LOGPROBS = "message.output_text.logprobs"
PARAMS = {"messages": "input", "response_format": "text.format", "max_tokens": "max_output_tokens"}


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Turn a decoded body into that of a chat completion.

    Raises ``ApiError`` 422 for what would change the answer and is not supported.
    """
    for name in UNSUPPORTED:
        if body.get(name):
            raise ApiError(422, "not supported here", name)
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise ApiError(422, "expected a text or a list of messages", "input")
    messages = [_message(item, f"input.{index}") for index, item in enumerate(items)]
    if isinstance(instructions := body.get("instructions"), str):
        messages.insert(0, {"role": "system", "content": instructions})
    chat = {key: body.get(key) for key in ("model", "temperature", "top_p", "seed", "reasoning")}
    chat |= {"messages": messages, "max_tokens": body.get("max_output_tokens")}
    include = body.get("include")
    if isinstance(include, list) and LOGPROBS in include:
        chat |= {"logprobs": True, "top_logprobs": body.get("top_logprobs")}
    text = body.get("text")
    if isinstance(text, dict) and isinstance(form := text.get("format"), dict):
        chat["response_format"] = {"type": form.get("type"), "json_schema": form}
    if isinstance(tools := body.get("tools"), list):
        chat["tools"] = [
            {"type": tool.get("type"), "function": tool} if isinstance(tool, dict) else tool
            for tool in tools
        ]
        chat["tool_choice"] = body.get("tool_choice")
    return chat


def _message(item: Any, path: str) -> dict[str, Any]:
    if not isinstance(item, dict) or item.get("type", "message") != "message":
        raise ApiError(422, "expected a message; other items are not supported", path)
    content = item.get("content")
    if isinstance(content, list):
        content = [_part(part) for part in content]
    return {"role": item.get("role"), "content": content}


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") in TEXT_TYPES:
        return {"type": "text", "text": part.get("text")}
    if part.get("type") == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url")}}
    return part


def renamed(error: ApiError) -> ApiError:
    """Name the field of an error as this API's clients know it."""
    for ours, theirs in PARAMS.items():
        if error.field and (error.field == ours or error.field.startswith(f"{ours}.")):
            error.field = theirs + error.field.removeprefix(ours).replace(".json_schema", "", 1)
    if error.field:
        error.field = error.field.replace(".function.parameters", ".parameters")
    return error


def as_response(frame: ReplyFrame, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
    """Build the reply: a message, or the call of a tool."""
    number = frame.id.removeprefix("chatcmpl-")
    text = "".join(piece.text for piece in pieces)
    is_whole = ending.finish_reason == "stop"
    status = "completed" if is_whole else "incomplete"
    output: dict[str, Any]
    if frame.tool is not None:
        output = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": frame.tool,
            "arguments": text,
            "status": status,
        }
    else:
        logprobs = frame.logprobs(list(pieces))
        content: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        content["logprobs"] = logprobs["content"] if logprobs else []
        output = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": status,
            "content": [content],
        }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": frame.created,
        "status": status,
        "error": None,
        "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
        "model": frame.model,
        "output": [output],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {"system_fingerprint": frame.fingerprint},
        "usage": {
            "input_tokens": ending.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": ending.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": ending.prompt_tokens + ending.completion_tokens,
        },
    }
