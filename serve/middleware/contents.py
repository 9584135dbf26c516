"""Questions and answers in the log, for operators who ask for them."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.call_context import request_id

logger = logging.getLogger("custos.serve")


class LogContents:
    """Middleware that writes to the log what a call sent and what it was answered, if it succeeded.

    A streamed answer is written when it has ended, or as far as it came when its client has left.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        question, answer, status = bytearray(), bytearray(), 0

        async def receive_part() -> Message:
            message = await receive()
            question.extend(message.get("body", b""))
            return message

        async def send_part(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            answer.extend(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive_part, send_part)
        finally:
            if status == 200:
                texts = (text.decode(errors="replace") for text in (question, answer))
                logger.info("request %s asked %s answered %s", request_id.get(), *texts)
