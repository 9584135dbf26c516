"""``GET /v1/models``, ``POST /v1/chat/completions`` and ``POST /v1/responses``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse

from serve.calls.errors import ApiError
from serve.calls.waiting import Deadline, unless_gone, with_first_part, with_heartbeat
from serve.chat.messages import ChatRequest, Translate, parse_chat, read_conversation
from serve.chat.models import ChatModel, ModelNames
from serve.chat.replies import free_reply, read_prompt, ready_reply, ready_text, verdict_reply
from serve.chat.responses import as_chat, as_response, renamed
from serve.chat.wire import (
    OpenAIRoute,
    Reply,
    ReplyFrame,
    as_events,
    as_object,
    whole,
)
from serve.queue.service import Service
from serve.requests.parse import measured_pictures, not_measured_headers, read_body


def _request_body(prompt: str, schema: Mapping[str, Any], example: Any) -> dict[str, Any]:
    """Describe a body for the OpenAPI document; :mod:`serve.chat.messages` holds the rest."""
    content = {
        "schema": {
            "type": "object",
            "required": ["model", prompt],
            "properties": {"model": {"type": "string"}, prompt: schema},
        },
        "example": {"model": "custos/qa", prompt: example},
    }
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


EXAMPLE = "Question: What is the capital of France?\nReference: Paris\nResponse: It is Paris."
CHAT_BODY = _request_body(
    "messages",
    {"type": "array", "items": {"type": "object"}},
    [{"role": "user", "content": EXAMPLE}],
)
RESPONSES_BODY = _request_body(
    "input", {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}, EXAMPLE
)


def routes(service: Service, aliases: Mapping[str, str] | None = None) -> APIRouter:
    """Build the routes of OpenAI's chat API.

    An alias maps a model name that clients cannot change to the model that answers under it.
    """
    models = ModelNames(service, aliases or {})
    router = APIRouter(route_class=OpenAIRoute)

    @router.get("/v1/models")
    async def list_models() -> Response:
        """Return the names that a chat client may ask for."""
        data = [_model_object(name, model) for name, model in models.items()]
        return JSONResponse({"object": "list", "data": data})

    @router.get("/v1/models/{name:path}")
    async def get_model(name: str) -> Response:
        """Describe one of them."""
        return JSONResponse(_model_object(name, models.get(name)))

    async def read_chat(
        body: bytes, deadline: Deadline, translate: Translate | None = None
    ) -> tuple[ChatRequest, ReplyFrame, Reply]:
        chat = await service.readers.read(len(body), parse_chat, body, service.limits, translate)
        model = models.get(chat.model, chat)
        num_top = (chat.top_logprobs or 0) if chat.logprobs else None
        frame = partial(ReplyFrame, model.name, num_top=num_top, num_copies=chat.n or 1)
        return chat, *await _reply(chat, len(body), model, service, deadline, frame)

    @router.post("/v1/chat/completions", openapi_extra=CHAT_BODY)
    async def complete_chat(request: Request) -> Response:
        """Answer a benchmark script's prompt with a verdict in its own form, or write freely."""
        (chat, frame, reply), _ = await read_body(request, service, read_chat)
        if not chat.stream:
            content = await unless_gone(request, as_object(frame, reply))
            return JSONResponse(content, headers=frame.headers)
        parts = await unless_gone(request, with_first_part(with_heartbeat(reply)))
        with_usage = bool(chat.stream_options and chat.stream_options.include_usage)
        events = as_events(frame, parts, with_usage=with_usage)
        return EventSourceResponse(events, headers=frame.headers)

    @router.post("/v1/responses", openapi_extra=RESPONSES_BODY)
    async def create_response(request: Request) -> Response:
        """Answer as the chat completions do, in the form of OpenAI's Responses API."""
        try:
            read_response = partial(read_chat, translate=as_chat)
            (_, frame, reply), _ = await read_body(request, service, read_response)
            pieces, ending = await unless_gone(request, whole(reply))
        except ApiError as error:
            raise renamed(error) from None
        return JSONResponse(as_response(frame, pieces, ending), headers=frame.headers)

    return router


def _model_object(name: str, model: ChatModel) -> dict[str, Any]:
    fixed = {"object": "model", "created": 0, "owned_by": "custos"}
    return {"id": name, **fixed, "root": model.name}


async def _reply(
    chat: ChatRequest,
    length: int,
    model: ChatModel,
    service: Service,
    deadline: Deadline,
    frame: Callable[..., ReplyFrame],
) -> tuple[ReplyFrame, Reply]:
    """Choose the judge that replies; fill in the frame of its reply, given its fingerprint.

    ``length`` is that of the body: a schema may be longer than the prompt.
    """
    judge = service.judges[model.judge]
    if model.contract is None:
        turns = await read_conversation(chat, service)
        return frame(judge.identity), free_reply(chat, turns, service, model.judge, deadline)
    if (text := ready_text(chat, model)) is not None:
        return frame(""), ready_reply(chat, service, model.judge, text)
    arguments = (chat, model.contract, service, model.judge)
    try:
        prompt = await service.readers.read(length, read_prompt, *arguments)
    except ApiError as error:
        if error.status == 422:
            error.status = model.contract.refusal_status
        raise
    [pictures] = await measured_pictures([(prompt.request.images, "images")], service)
    checked = service.checked(prompt.request, model.judge, *pictures)
    reply = verdict_reply(prompt, checked, service, streamed=bool(chat.stream), deadline=deadline)
    headers = not_measured_headers([checked])
    return frame(judge.fingerprint(checked.request), tool=prompt.tool, headers=headers), reply
