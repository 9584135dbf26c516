"""Pictures, JSON and chat prompts that mean harm: refused or read, in bounded time and memory."""

from __future__ import annotations

import base64
import io
import json
import resource
import struct
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from judging import CustosError
from serve.chat.contract import CHAT_CONTRACTS
from serve.chat.messages import parse_chat
from serve.chat.verdict_reply import read_prompt
from serve.errors import ApiError
from serve.limits import Limits
from serve.pictures.decode import decode
from serve.queue.service import Service
from serve.requests.images import num_pixels
from serve.requests.parse import parse_call
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.made_up import row

INPUT_S = 3.0
"""Most processor time of one input."""
GROWTH_KB = 400_000
"""Most that the peak of memory may grow; the largest picture that is taken needs 200 MB."""


def encoded(kind: str, **options: Any) -> bytes:
    draws = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(draws).save(file, kind, **options)
    return file.getvalue()


PICTURES = {
    "jpeg": (encoded("jpeg"), encoded("jpeg", progressive=True)),
    "png": (encoded("png"),),
    "webp": (encoded("webp"), encoded("webp", lossless=True)),
    "gif": (encoded("gif"),),
    "bmp": (encoded("bmp"),),
}
EDITS = st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=4)), max_size=6)


@st.composite
def pictures(draw: st.DrawFn) -> str:
    """A picture with bytes changed, cut off or repeated, or a PNG of another size by its header."""
    kind = draw(st.sampled_from(sorted(PICTURES)))
    content = bytearray(draw(st.sampled_from(PICTURES[kind])))
    if kind == "png" and draw(st.booleans()):
        content[16:24] = struct.pack(">II", *(draw(st.integers(0, 2**32 - 1)) for _ in range(2)))
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    for place, new in draw(EDITS):
        content[place % len(content) : place % len(content) + len(new)] = new
    start = draw(st.integers(0, len(content)))
    content += content[start:] * draw(st.sampled_from((0, 0, 0, 1, 30)))
    del content[draw(st.sampled_from((len(content), start))) :]
    return f"data:image/{kind};base64,{base64.b64encode(bytes(content)).decode()}"


def read_picture(source: str) -> None:
    try:
        pixels = num_pixels(source, "images", Limits())
    except ApiError as error:
        assert error.status == 422
        return
    assert 0 <= pixels <= Limits().image_pixels
    try:
        decode(source.encode(), (8, 8))
    except Exception:  # noqa: BLE001 -- the process that decodes takes any for "not readable"
        return


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["hieval-qs", "judge", "\x00", "\ud800", "e" * 300, "<|im_end|>"]),
)
FIELDS = st.sampled_from([*row(), "images", "requests", "judge", "task", "choices", "order", "x"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A call with fields replaced, then perhaps with bytes changed or a piece many times."""
    fields = {**row(), **draw(st.dictionaries(FIELDS, VALUES, max_size=3))}
    body = bytearray(
        json.dumps(draw(st.sampled_from((fields, [fields], {"requests": fields})))), "utf-8"
    )
    for place, new in draw(EDITS):
        body[place % len(body) : place % len(body) + len(new)] = new
    piece = draw(st.sampled_from((b"[", b'{"a":', b"9", b'"\\ud800"', b"\xff", b" ")))
    place = draw(st.integers(0, len(body)))
    return bytes(body[:place] + piece * draw(st.sampled_from((0, 0, 1, 3000))) + body[place:])


SERVICE_OF_ALL = Service({"knowing": KnowingJudge()})


def read_body(body: bytes) -> None:
    try:
        call = parse_call(body, SERVICE_OF_ALL)
    except ApiError as error:
        assert error.status in (404, 422)
        assert len(error.body().model_dump_json()) < 3000
        return
    assert len(call.requests) == len(call.judges)


FRAGMENTS = sorted(
    {
        piece
        for contract in CHAT_CONTRACTS
        for layout in contract.layouts
        for piece in (layout.template, *layout.template.replace("}", "{").split("{"))
        if piece
    }
)
TEXTS = st.lists(
    st.sampled_from(FRAGMENTS)
    | st.text(max_size=10)
    | st.sampled_from(["\n", "\u200b", " |" * 900]),
    max_size=8,
).map("".join)


@st.composite
def chats(draw: st.DrawFn) -> tuple[str, bytes]:
    """A prompt of pieces of all contracts, and the contract that is to read it."""
    roles = st.sampled_from(("system", "user", "assistant", "tool"))
    parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=3)
    messages = draw(
        st.lists(st.fixed_dictionaries({"role": roles, "content": TEXTS | parts}), max_size=3)
    )
    name = draw(st.sampled_from(CHAT_CONTRACTS.names()))
    body = {
        "model": name,
        "messages": messages,
        **draw(st.dictionaries(st.text(), LEAVES, max_size=1)),
    }
    return name, json.dumps(body).encode()


def read_chat(prompt: tuple[str, bytes]) -> None:
    name, body = prompt
    try:
        chat = parse_chat(body, Limits())
        read_prompt(chat, CHAT_CONTRACTS.get(name), SERVICE_OF_ALL, "knowing")
    except ApiError as error:
        assert error.status == 422
    except CustosError as error:
        pytest.fail(f"not an answer to a client: {error!r}")


@pytest.mark.parametrize(
    "num_inputs", [60, pytest.param(34_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize(
    ("inputs", "read"),
    [(pictures(), read_picture), (bodies(), read_body), (chats(), read_chat)],
    ids=["pictures", "JSON", "chat"],
)
def test_hostile_inputs_are_read_or_refused_within_bounds(
    inputs: st.SearchStrategy[Any], read: Callable[[Any], None], num_inputs: int
) -> None:
    def check(value: Any) -> None:
        start = time.process_time()
        read(value)
        assert time.process_time() - start < INPUT_S

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    settings(
        max_examples=num_inputs,
        database=None,
        derandomize=num_inputs < 1000,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )(given(inputs)(check))()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KB
