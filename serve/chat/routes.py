"""``GET /v1/models`` and ``POST /v1/chat/completions``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse

from serve.chat.errors import OpenAIRoute
from serve.chat.free_text import free_reply
from serve.chat.messages import ChatRequest, parse_chat, read_conversation
from serve.chat.models import ChatModel, ModelNames
from serve.chat.verdict_reply import greeting, is_probe, read_prompt, verdict_reply
from serve.chat.wire import Reply, ReplyFrame, as_events, as_object, with_first_part
from serve.queue.deadline import Deadline
from serve.queue.service import Service
from serve.requests.remote_images import RemoteImages
from serve.requests.waiting import deadline_of, unless_gone, with_heartbeat
from serve.threads import read

T = TypeVar("T")

BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["model", "messages"],
                "properties": {
                    "model": {"type": "string"},
                    "messages": {"type": "array", "items": {"type": "object"}},
                },
            },
            "example": {
                "model": "custos/qa",
                "messages": [
                    {
                        "role": "user",
                        "content": "Question: What is the capital of France?\n"
                        "Reference: Paris\nResponse: It is Paris.",
                    }
                ],
            },
        }
    },
}
"""For the OpenAPI document; :mod:`serve.chat.messages` holds the rest."""


def routes(
    service: Service,
    aliases: Mapping[str, str] | None = None,
    remote_images: RemoteImages | None = None,
) -> APIRouter:
    """Return the routes of OpenAI's chat API.

    Args:
        service: What all routes share.
        aliases: From a model name that clients cannot change to the model that answers under it.
        remote_images: Fetches pictures; without, only data URLs are taken.
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

    @router.post("/v1/chat/completions", openapi_extra={"requestBody": BODY})
    async def complete_chat(request: Request) -> Response:
        """Answer a benchmark script's prompt with a verdict in its own form, or write freely."""
        service.require_ready()
        deadline = deadline_of(request, service.limits)
        async with deadline.within():
            body = await request.body()
            chat = await read(len(body), parse_chat, body, service.limits)
            model = models.get(chat.model)
            fingerprint, reply = await _reply(
                chat, len(body), model, service, remote_images, deadline
            )
        num_top = (chat.top_logprobs or 0) if chat.logprobs else None
        frame = ReplyFrame(model.name, fingerprint, num_top)
        if not chat.stream:
            return JSONResponse(await unless_gone(request, as_object(frame, reply)))
        parts = await unless_gone(request, with_first_part(with_heartbeat(reply)))
        with_usage = bool(chat.stream_options and chat.stream_options.include_usage)
        return EventSourceResponse(as_events(frame, parts, with_usage=with_usage))

    return router


def _model_object(name: str, model: ChatModel) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "custos",
        "root": model.name,
    }


async def _reply(
    chat: ChatRequest,
    length: int,
    model: ChatModel,
    service: Service,
    remote_images: RemoteImages | None,
    deadline: Deadline,
) -> tuple[str, Reply]:
    """Return the fingerprint of the judge that replies, and its reply.

    Args:
        chat: The request.
        length: Bytes of its body.
        model: The model that it names.
        service: The service.
        remote_images: As in :func:`_read_messages`.
        deadline: When the caller stops waiting.

    Raises:
        ApiError: 422 if the model does not take these messages.
    """
    judge = service.judges[model.judge]
    if model.contract is None:
        turns = await _read_messages(length, remote_images, read_conversation, chat, service.limits)
        return judge.identity, free_reply(chat, turns, service, model.judge, deadline)
    if is_probe(chat):
        return "", greeting(chat, service, model.judge, model.name)
    arguments = (chat, model.contract, service, model.judge)
    prompt = await _read_messages(length, remote_images, read_prompt, *arguments)
    reply = verdict_reply(
        prompt, service, model.judge, streamed=bool(chat.stream), deadline=deadline
    )
    return judge.fingerprint(prompt.request), reply


async def _read_messages(
    length: int, remote_images: RemoteImages | None, work: Callable[..., T], *args: Any
) -> T:
    """Read messages beside the event loop.

    Args:
        length: Bytes of the call's body.
        remote_images: Fetches pictures from other servers, which may take long, so that such a call
            holds up no others; ``None`` if none may be fetched.
        work: Reads them, given ``args`` and ``remote_images``.
        *args: Its first arguments.
    """
    if remote_images:
        return await asyncio.to_thread(work, *args, remote_images)
    return await read(length, work, *args, None)
