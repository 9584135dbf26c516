"""Calls without a known key, of which an address may make only so many."""

from __future__ import annotations

import math
from collections import OrderedDict
from time import monotonic

from starlette.requests import HTTPConnection
from starlette.responses import Response

from serve.connections import address_group
from serve.errors import ApiError
from serve.middleware.access_keys import HOW_TO_SEND, ask_for_key

MAX_TRIES = 60
"""Tries of an address at once; each comes back after an equal share of ``TRIES_S``."""
TRIES_S = 60.0
MAX_ADDRESSES = 10_000
"""Addresses that are remembered."""


class WrongKeys:
    """Answers to calls without a known key: 401, or 429 to an address that has made many.

    A known key is always let in. Otherwise one client could shut out all that share its address,
    as behind a proxy.
    """

    def __init__(self) -> None:
        # When an address has all its tries again: the one that called last comes last.
        self._full_at = OrderedDict[str, float]()

    def answer(self, conn: HTTPConnection, error: Exception) -> Response:
        """Return the answer to one call."""
        address = address_group(conn.client.host if conn.client else "")
        now = monotonic()
        cost = TRIES_S / MAX_TRIES
        full_at = max(now, self._full_at.pop(address, now))
        is_refused = full_at + cost > now + TRIES_S
        self._full_at[address] = full_at if is_refused else full_at + cost
        if len(self._full_at) > MAX_ADDRESSES:
            self._full_at.popitem(last=False)
        if not is_refused:
            return ask_for_key(conn, error)
        message = f"too many calls without a known key from this address: {HOW_TO_SEND}"
        response = ApiError(429, message, retry_after=math.ceil(cost)).response()
        response.headers["Connection"] = "close"
        return response
