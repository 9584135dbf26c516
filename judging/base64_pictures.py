"""Pictures in base64 as programs write them, brought into the one form that everything reads."""

import base64
import re

_STARTS = {
    **dict.fromkeys(("/9j/2", "/9j/4", "/9j/7"), "image/jpeg"),
    **{"iVBORw0KGgo": "image/png", "UklGR": "image/webp", "R0lGOD": "image/gif"},
}
"""How a picture begins in base64, and its kind."""
BASE64_STARTS = tuple(_STARTS)
_HEADER = re.compile(
    r"\s{0,9}data:(image/[\w.+-]{1,100}|(?:application|binary)/octet-stream)?"
    r"(?:;(?!scaled=)[\w-]{1,100}=[^;,]{0,100}){0,4};base64,",  # such as charset=utf-8
    re.IGNORECASE | re.ASCII,
)
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_ESCAPES = {"%2B": "+", "%2F": "/", "%3D": "=", "%0D": "", "%0A": "", "%20": ""}
_WHITE_SPACE = b" \t\r\n\v\f"
_BARE = re.compile(r"\s*[A-Za-z0-9+/_-][A-Za-z0-9+/_\s-]{40,}={0,2}\s*")
LONGEST_NAME = 1000
"""Most characters of what is taken for the name of a file."""


def is_data_url(source: str) -> bool:
    """Tell whether a text is a data URL, of whatever content."""
    return source[:14].lstrip()[:5].lower() == "data:"


def one_form(source: str) -> str:
    """Return a picture in base64 as ``data:image/png;base64,...`` with standard base64.

    Upper case, parameters, line breaks, the alphabet for addresses, escaped characters and missing
    padding are let pass, and so is base64 without a header. The kind is that of the content where
    the header names none. File names, addresses and other data URLs are returned as they are.
    Raises ``ValueError`` if the base64 is bad; the message shows nothing of it.
    """
    header = _HEADER.match(source)
    if header is None and not is_bare(source):
        return source
    payload = _standard(source[header.end() :] if header else source)
    kind = (header and header[1] or "application/octet-stream").lower()
    if not kind.startswith("image/"):
        kinds = (name for start, name in _STARTS.items() if payload.startswith(start))
        kind = next(kinds, kind)
    return f"data:{kind};base64,{payload}"


def is_bare(text: str) -> bool:
    """Tell whether a text is a picture in base64 without a header."""
    start = text[:100].lstrip().replace("-", "+").replace("_", "/")
    if not start.startswith(BASE64_STARTS):
        return False
    return len(text) > LONGEST_NAME or _BARE.fullmatch(text) is not None


def content_of(text: str) -> bytes:
    """Decode base64 without a header; raise ``ValueError`` as :func:`one_form` does."""
    return base64.b64decode(_standard(text))


def _standard(payload: str) -> str:
    """Return base64 in the standard alphabet, with padding and without white space."""
    if "%" in payload:
        for code, character in _ESCAPES.items():
            payload = payload.replace(code, character).replace(code.lower(), character)
    text = payload.encode("ascii", errors="replace").translate(_TO_STANDARD, _WHITE_SPACE)
    body = text.rstrip(b"=")
    if body.translate(None, _ALPHABET) or len(text) - len(body) > 2:
        raise ValueError("bad base64: the picture holds characters that are not part of it")
    if len(body) % 4 == 1:
        raise ValueError("bad base64: the picture is cut off")
    return (body + b"=" * (-len(body) % 4)).decode()
