"""The operator's own address, which tells what concerns all callers."""

from __future__ import annotations

import threading

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clients.connection import is_loopback
from serve.connections import CountedListener, OpenConnections, limited_config
from serve.middleware.other_sites import RefuseOtherSites
from serve.queue.metrics import CallMetrics, Metrics

MAX_CONNECTIONS = 64
ADDRESS_CONNECTIONS = 16


def text_of_metrics(metrics: CallMetrics) -> Response:
    """Return counters in the format of Prometheus."""
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)


def answer_operator(metrics: Metrics, listener: CountedListener) -> None:
    """Answer ``GET /metrics`` with all counters, in a thread that ends with the process.

    Whoever reaches the address is the operator: there are no keys. It is answered also while the
    service starts, drains or is busy.

    Args:
        metrics: The counters.
        listener: Bound socket.
    """

    async def answer(_: Request) -> Response:
        return text_of_metrics(metrics)

    only_local = is_loopback(listener.getsockname()[0])
    app = Starlette(
        routes=[Route("/metrics", answer)],
        middleware=[Middleware(RefuseOtherSites, only_local=only_local)],
    )
    listener.open_connections = OpenConnections(MAX_CONNECTIONS, ADDRESS_CONNECTIONS)
    server = uvicorn.Server(limited_config(app, listener.open_connections))
    threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="operator", daemon=True
    ).start()
