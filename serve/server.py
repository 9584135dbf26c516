"""Where the service listens."""

from __future__ import annotations

import ipaddress
import socket

from fastapi import FastAPI

from judging import CustosError

DRAIN_S = 60


def bind(host: str, port: int) -> socket.socket:
    """Take a port of this machine; nothing is answered on it before :func:`run`.

    Args:
        host: Loopback address or ``localhost``.
        port: Port; 0 takes a free one.

    Raises:
        CustosError: If the host can be reached from outside, or the port is taken.
    """
    if not is_loopback(host):
        raise CustosError(
            f"--host '{host}': only this machine itself (127.0.0.1, ::1, localhost) can be served, "
            "because there are no access keys yet; reach it from elsewhere through an SSH tunnel"
        )
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise CustosError(
            f"cannot listen on {host} port {port} ({reason}); try another --port"
        ) from None
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host; no name but ``localhost`` is trusted."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url(listener: socket.socket) -> str:
    """Address of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: FastAPI, listener: socket.socket) -> None:
    """Answer until a signal comes, then finish the calls in hand."""
    import uvicorn

    config = uvicorn.Config(app, server_header=False, timeout_graceful_shutdown=DRAIN_S)
    uvicorn.Server(config).run(sockets=[listener])
