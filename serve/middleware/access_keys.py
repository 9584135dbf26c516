"""Access keys, without which only health is answered."""

from __future__ import annotations

import base64
import binascii

from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    BaseUser,
    SimpleUser,
)
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from serve.call_context import access_key
from serve.errors import ApiError
from serve.keys import KnownKeys
from serve.middleware.other_sites import is_from_other_site
from serve.middleware.ready import HEALTH_ROUTES

HOW_TO_SEND = (
    "send the header 'Authorization: Bearer KEY'; the commands and clients of custos send the key "
    "that the environment variable CUSTOS_KEY holds"
)


class AccessKeys(AuthenticationBackend):
    """Backend of starlette's ``AuthenticationMiddleware``: lets in calls that have a known key.

    A key comes as ``Authorization: Bearer KEY``, or as the password of HTTP Basic, for which a
    browser asks its user. The latter is taken only from pages of this site.

    Args:
        keys: The known keys.
    """

    def __init__(self, keys: KnownKeys) -> None:
        self._keys = keys

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        """Check the key of one call.

        Raises:
            AuthenticationError: If it has no known key.
        """
        if conn.scope["path"] in HEALTH_ROUTES:
            return None
        key = _key_in(conn.headers)
        known = self._keys.find(key)
        if known is None:
            raise AuthenticationError("unknown access key" if key else "no access key")
        access_key.set(known)
        return AuthCredentials(["call"]), SimpleUser(known.name)


def ask_for_key(conn: HTTPConnection, error: Exception) -> Response:
    """Return the answer to a call without a known key."""
    response = ApiError(401, f"{error}: {HOW_TO_SEND}").response()
    # In two headers, as Chromium does not find Basic after another scheme.
    response.headers["WWW-Authenticate"] = 'Basic realm="custos"'
    response.headers.append("WWW-Authenticate", "Bearer")
    return response


def _key_in(headers: Headers) -> str:
    """Return the key that the headers hold; empty if none."""
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic" and not is_from_other_site(headers):
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""
