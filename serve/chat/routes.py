"""``GET /v1/models`` and ``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse

from serve.chat.errors import OpenAIRoute
from serve.chat.free_text import written
from serve.chat.messages import ChatRequest, conversation, parse_chat
from serve.chat.models import ChatModel, ModelNames
from serve.chat.verdict_reply import greeting, is_probe, judged, understand
from serve.chat.wire import Envelope, Reply, begun, events, whole
from serve.queue.service import Service
from serve.requests.parse import deadline_of, unless_gone

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
"""For the OpenAPI document; :mod:`serve.chat.messages` says the rest."""


def routes(service: Service, aliases: Mapping[str, str] | None = None) -> APIRouter:
    """Routes that speak OpenAI's language.

    Args:
        service: What all routes share.
        aliases: A model name that clients cannot change, to the model that answers under it.
    """
    models = ModelNames(service, aliases or {})
    router = APIRouter(route_class=OpenAIRoute)

    @router.get("/v1/models")
    async def listed() -> Response:
        """The names a chat client may ask for."""
        data = [_model_object(name, model) for name, model in models.items()]
        return JSONResponse({"object": "list", "data": data})

    @router.get("/v1/models/{name:path}")
    async def one(name: str) -> Response:
        """One of them."""
        return JSONResponse(_model_object(name, models.get(name)))

    @router.post("/v1/chat/completions", openapi_extra={"requestBody": BODY})
    async def chat(request: Request) -> Response:
        """Answer a harness's prompt with a verdict in its own form, or write freely."""
        service.require_ready()
        body = await request.body()
        asked = await run_in_threadpool(parse_chat, body, service.limits)
        model = models.get(asked.model)
        deadline = deadline_of(request)
        fingerprint, reply = await _reply(asked, model, service, deadline)
        num_top = (asked.top_logprobs or 0) if asked.logprobs else None
        envelope = Envelope(model.name, fingerprint, num_top)
        if not asked.stream:
            return JSONResponse(await unless_gone(request, whole(envelope, reply)))
        reply = await unless_gone(request, begun(reply))
        with_usage = bool(asked.stream_options and asked.stream_options.include_usage)
        return StreamingResponse(
            events(envelope, reply, with_usage=with_usage), media_type="text/event-stream"
        )

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
    asked: ChatRequest, model: ChatModel, service: Service, deadline: float | None
) -> tuple[str, Reply]:
    """The fingerprint of who replies, and the reply.

    Raises:
        ApiError: 422.
    """
    judge = service.judges[model.judge]
    if model.contract is None:
        messages = await run_in_threadpool(
            conversation, asked, service.limits, service.remote_images
        )
        return judge.identity, written(asked, messages, service, model.judge, deadline)
    if is_probe(asked):
        return "", greeting(asked, service, model.judge, model.name)
    understood = await run_in_threadpool(understand, asked, model.contract, service)
    reply = judged(understood, service, model.judge, streamed=bool(asked.stream), deadline=deadline)
    return judge.fingerprint(understood.request), reply
