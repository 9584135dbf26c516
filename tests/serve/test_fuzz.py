"""Calls that mean harm: each is answered as documented, in bounded time and memory."""

import gc
import http.client
import json
import logging
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from judging import JudgeRequest, Verdict
from judging.judge import Judge
from judging.tasks import get_task, task_names
from serve.calls.context import HeldBytes
from serve.calls.limits import Limits
from serve.gate import gate
from serve.queue.service import Service
from tests.conftest import Folders
from tests.serve.chat.made_up import CASES, KnowingJudge
from tests.serve.hostile_pictures import edited, pictures
from tests.serve.made_up import row
from tests.serve.sockets import serving, wait_until
from train.loop.accelerator import FreeMemory

STATUSES = {200, 400, 403, 404, 405, 408, 413, 415, 422, 504}
"""What one caller may be answered: no fault of the service, and no lack of room."""
DEADLINE_S, SPARE_S = 1.0, 20.0
"""Deadline of each call, and how much longer it may take on a machine that has other work."""
PROCESSOR_S = 3.0
"""Most processor time of one call, with that of its client."""
PEAK_MB, GROWTH_MB = 400, 250
"""Most memory that one call takes, with that of its client, and that all leave behind."""
ERROR_BYTES = 8000
"""Most bytes of an error: 1,200 characters, of which each may be written as `\\u0000`."""
PART = 100
"""Inputs after which hypothesis begins anew, as it keeps what it has tried."""

Draw = st.DrawFn
RARE = (1,) * 40 + (2,) * 6 + (40,) * 6 + (101, 257, 1_000, 1_001, 5_000, 20_000)
"""How often a piece is repeated: rarely as often as a limit says, or a little more."""
HUGE = (100_000, 200_000, 200_001, 1_000_001)
ATOMS = (
    *r"\ud800 \udfff\ud800 \u0000 \u202e \u2028 \ufeff \n \r\n \" \\".split(),
    *r"( [[ { ^ _ $ - | ** ` ``` 1, 9 0. 1e9 / % = < \\frac{ \\boxed{ \\left( \\sqrt ~' https://".split(),
    *"e\u0301\u0320 \U0001f468\u200d\U0001f469 \u5317\u4eac \uff11\uff12 \u0661".split(),
    *"\u00bd \u2212 \ufdfa \u0130 <|im_end|> <think> </think>".split(),
    *(" ", "A", "(B)", "and ", "not ", "A > B > ", "- x\\n", "1. ", "<label>A</label>", "Score: 1"),
)


def repeated(times: Sequence[int]) -> st.SearchStrategy[str]:
    """A text in which one piece stands many times."""
    drawn = st.tuples(st.sampled_from(ATOMS), st.sampled_from(times))
    return drawn.map(lambda atom: f'"{atom[0] * atom[1]}"')


TEXTS = st.one_of(
    st.text(max_size=20).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(max_size=20).map(json.dumps),
    repeated(RARE),
    st.lists(st.sampled_from(ATOMS), max_size=8).map(lambda atoms: f'"{"".join(atoms) * 3}"'),
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    st.sampled_from("0 -0 -0.0 1e999 -1e999 1e-999 1E+5 01 +1 .5 1. 0x1 - NaN -Infinity".split()),
    st.sampled_from((2**63, 2**63 - 1, 2**64, -(2**63) - 1)).map(str),
    st.sampled_from((400, 4_301, 200_000)).flatmap(
        lambda digits: st.sampled_from(("9" * digits, "0." + "3" * digits, "1e" + "9" * digits))
    ),
)
NESTED = st.tuples(
    st.sampled_from((("[", "]"), ('{"a":', "}"), ('[{"\\ud800":', "}]"))),
    st.sampled_from((1, 50, 190, 199, 200, 201, 5_000, 60_000)),
).map(lambda drawn: drawn[0][0] * drawn[1] + "1" + drawn[0][1] * drawn[1])
WIDE = st.tuples(
    st.sampled_from(("[],", "{},", '"",', "0,", '[[""]],', "null,", "1e999,")),
    st.sampled_from((1, 99, 100, 101, 5_000, 49_990, 99_990, 100_001, 2_500_000)),
).map(lambda drawn: f"[{drawn[0] * drawn[1]}0]")
LEAVES = st.one_of(
    TEXTS, TEXTS, NUMBERS, NESTED, WIDE, st.sampled_from(("null", "true", "[]", "{}"))
)


def as_object(fields: Iterable[tuple[str, str]]) -> str:
    """A JSON object, in which a key may stand twice."""
    return f"{{{','.join(f'{json.dumps(name)}:{value}' for name, value in fields)}}}"


VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.lists(st.tuples(st.text(max_size=5), inner), max_size=4).map(as_object),
    ),
    max_leaves=6,
)


PARTS = st.one_of(
    st.sampled_from(
        '{"type":"boolean"} {"type":"string"} {"enum":["no","yes"]} {"enum":[4,2,0]} {"$ref":"#"} '
        '{"type":"number","minimum":0,"maximum":1} '
        '{"type":"integer","minimum":-1e308,"maximum":1e308} '
        '{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]} {"const":true}'.split()
    ),
    VALUES,
)
SCHEMAS = st.one_of(
    st.lists(
        st.tuples(st.sampled_from("pass score reason result hallucinated".split()), PARTS),
        max_size=4,
    ).map(
        lambda keys: f'{{"properties":{as_object(keys)},"$defs":{{"a":{{"$ref":"#/$defs/a"}}}}}}'
    ),
    VALUES,
)
SKELETONS = tuple(
    fields for name in task_names() for fields in get_task(name).rows_by_rubric().values()
)
LISTS = st.lists(TEXTS, max_size=4).map(lambda items: f"[{','.join(items)}]")
INTEGERS = st.sampled_from(("0", "-1", "1", "2", "20", "2049", str(2**63), "1.0", '"1"', "-0"))
LIKELY = {
    **dict.fromkeys(("references", "choices", "criteria", "responses", "stop"), LISTS),
    **dict.fromkeys(("seed", "critique_tokens", "n", "max_tokens", "top_logprobs"), INTEGERS),
    **dict.fromkeys(("risk", "temperature", "top_p"), st.sampled_from(("0.1", "1", "-0", "1e-9"))),
    **dict.fromkeys(("stream", "logprobs"), st.sampled_from(("true", "false", "1", "null"))),
    "images": st.lists(pictures(), max_size=9).map(lambda items: f"[{','.join(items)}]"),
    "metadata": st.tuples(TEXTS, VALUES).map(lambda drawn: f"{{{drawn[0]}:{drawn[1]}}}"),
    "judge": st.sampled_from(('"tiny"', '"fake"', '"x"', "0")),
    "mode": st.sampled_from(('"critique"', '"score"')),
    "task": st.sampled_from(sorted(task_names())).map(json.dumps),
    "order": st.sampled_from(('"both"', '"given"')),
    "reference_mode": st.sampled_from(('"all"', '"any"')),
    "reasoning": st.sampled_from(('"keep"', '"drop"')),
    "stream_options": st.sampled_from(('{"include_usage":true}', "{}")),
    "response_format": st.one_of(
        st.sampled_from(('{"type":"json_object"}', '{"type":"text"}')),
        SCHEMAS.map(lambda text: f'{{"type":"json_schema","json_schema":{{"schema":{text}}}}}'),
    ),
    "text": SCHEMAS.map(lambda text: f'{{"format":{{"type":"json_schema","schema":{text}}}}}'),
    "tools": SCHEMAS.map(
        lambda text: (
            f'[{{"type":"function","function":{{"name":"t","parameters":{text}}},"name":"t"}}]'
        )
    ),
    "tool_choice": st.sampled_from(('"none"', '"auto"', '{"name":"t"}', "[]")),
}
NAMES = (*sorted(JudgeRequest.model_fields), "judge", "x", *("metadata", "images", "mode") * 2)


@st.composite
def mutated(draw: Draw, fields: dict[str, Any], names: Sequence[str]) -> str:
    """A skeleton of which some fields have another value or are there twice, or one is long."""
    items = [(name, json.dumps(value)) for name, value in fields.items()]
    for name in draw(st.lists(st.sampled_from((*fields, *names)), max_size=3)):
        likely = LIKELY.get(name, TEXTS)
        value = draw(draw(st.sampled_from((likely, likely, likely, likely, VALUES))))
        if draw(st.sampled_from((True,) * 29 + (False,))):
            items = [item for item in items if item[0] != name]
        items.append((name, value))
    if draw(st.sampled_from((True,) + (False,) * 14)):
        name = draw(st.sampled_from((*fields, *names)))
        items = [*(item for item in items if item[0] != name), (name, draw(repeated(HUGE)))]
    return as_object(items)


@st.composite
def requests(draw: Draw) -> str:
    """One request; a tenth are for the small model, the others for a judge that answers at once."""
    skeleton = draw(st.sampled_from(SKELETONS))
    judge = draw(st.sampled_from(("fake",) * 9 + ("tiny",)))
    return draw(mutated({**skeleton, "judge": judge, "critique_tokens": 4}, NAMES))


@st.composite
def lists(draw: Draw) -> str:
    """Requests in each form of a list, now and then as many as may be, or one more."""
    rows = draw(st.lists(requests(), max_size=3))
    many = draw(st.sampled_from((0,) * 60 + (256, 257)))
    listed = f"[{','.join([*rows, *[json.dumps(row(judge='fake'))] * many])}]"
    beside = draw(st.sampled_from(("", "", ',"judge":"fake"', ',"judge":"tiny"', ',"x":1')))
    return f'{{"requests":{listed}{beside}}}' if draw(st.booleans()) else listed


OPTIONS = (
    "stop stream stream_options n seed temperature top_p max_tokens tools logprobs top_logprobs "
    "response_format reasoning metadata presence_penalty tool_choice"
).split()
RESPONSE_OPTIONS = (
    "stream instructions text tools tool_choice include top_logprobs max_output_tokens reasoning"
).split()


@st.composite
def chats(draw: Draw) -> str:
    """A harness's prompt with other texts between its delimiters, or talk with the small model."""
    contract, layout = draw(st.sampled_from(CASES))
    prompt, sample = json.dumps(layout.payload(right=True))[1:-1], layout.sample
    others = {
        json.dumps(known)[1:-1]: draw(TEXTS)[1:-1]
        for known in (sample.question, sample.reference, sample.right, sample.wrong)
        if draw(st.sampled_from((True, False, False)))
    }
    if others:  # in one pass: a text that is put in may hold another one thousands of times
        known_texts = "|".join(map(re.escape, others))
        prompt = re.sub(known_texts, lambda match: others[match[0]], prompt)
    content = f'"{prompt}"'
    if draw(st.booleans()):
        parts = [f'{{"type":"text","text":{content}}}']
        for picture in draw(st.lists(pictures(), max_size=1)):
            parts.append(f'{{"type":"image_url","image_url":{{"url":{picture}}}}}')
        content = f"[{','.join(parts)}]"
    role = draw(st.sampled_from(("user",) * 19 + ("assistant", "tool")))
    messages = [f'{{"role":"{role}","content":{content}}}']
    if draw(st.booleans()):
        system = draw(draw(st.sampled_from((TEXTS, TEXTS, TEXTS, VALUES))))
        messages.insert(0, f'{{"role":"system","content":{system}}}')
    judge = draw(st.sampled_from(("fake",) * 9 + ("tiny",)))
    model = draw(st.sampled_from((f"custos/{contract.name}@{judge}",) * 7 + ("tiny",)))
    fields = {"model": model, "max_tokens": 3, "stream": draw(st.booleans()), **contract.body}
    text = draw(mutated(fields, OPTIONS))
    return f'{text[:-1]},"messages":[{",".join(messages)}]}}'


@st.composite
def responses(draw: Draw) -> str:
    """A harness's prompt for the Responses API."""
    contract, layout = draw(st.sampled_from(CASES))
    message = {"role": "user", "content": layout.payload(right=True)}
    part = [{"type": "input_text", "text": layout.payload(right=False)}]
    given = draw(st.sampled_from((message["content"], [message], [{**message, "content": part}])))
    fields = {"model": f"custos/{contract.name}@fake", "input": given}
    return draw(mutated(fields, RESPONSE_OPTIONS))


@dataclass(frozen=True)
class Input:
    """What is sent, and how it is counted."""

    kind: str
    sent: bytes
    leaves: bool = False
    """The client closes the connection at once."""

    def __repr__(self) -> str:
        return (
            f"{self.kind} of {len(self.sent):,} bytes: {self.sent[:600]!r} ... {self.sent[-60:]!r}"
        )


def call(
    path: str, body: bytes, *headers: str, method: str = "POST", seconds: float = DEADLINE_S
) -> bytes:
    lines = (
        *(f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"),
        *(f"Content-Length: {len(body)}", f"X-Deadline-Ms: {1000 * seconds:.0f}", *headers),
    )
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


BODIES = {
    "request": (requests(), "/judge"),
    "list": (lists(), "/judge"),
    "stream": (requests(), "/judge/stream"),
    "chat": (chats(), "/v1/chat/completions"),
    "response": (responses(), "/v1/responses"),
}
EXTRA = (
    *("X-Deadline-Ms: 1", "X-Deadline-Ms: -1", "X-Request-ID: \x7f\x80", "Content-Length: 3"),
    *("Content-Encoding: gzip", "Content-Type: text/plain", "Expect: 100-continue", ": x", "X"),
    *("Transfer-Encoding: chunked", "Host: evil.test", "Upgrade: websocket", "Origin: x"),
    *("X: " + "x" * 33_000, "X: \x00"),
)
METHODS = ("POST",) * 12 + ("GET", "HEAD", "PUT", "OPTIONS", "X" * 900, "post", "P\x00ST")
ROUTES = ("/judge/", "/judge?" + "x" * 9_000, "//judge", "/tasks", "/v1/models/%ff%00", "*", "/x")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "latin-1")


@st.composite
def inputs(draw: Draw) -> Input:
    """A call: well formed but for its values, or damaged in its bytes, its head or its size."""
    name = draw(st.sampled_from(sorted(BODIES)))
    bodies, path = BODIES[name]
    text = draw(bodies)
    body = text.encode(errors="surrogatepass")
    kind = draw(st.sampled_from((name,) * 12 + ("bytes",) * 4 + ("head", "head", "leaves")))
    if kind == "bytes":
        encoding = draw(st.sampled_from(ENCODINGS))
        body = draw(edited(text.encode(encoding, "replace"), (0, 0, 0, 0, 1, 30, 2_000)))
        if draw(st.sampled_from((True,) + (False,) * 80)):
            limit = Limits().body_bytes + draw(st.integers(-1, 1))
            body += b" " * (limit - len(body))
    if kind == "head":
        extra = draw(
            st.lists(st.sampled_from(EXTRA) | st.text("aX:- \t\x00\xff", max_size=9), max_size=2)
        )
        method = draw(st.sampled_from(METHODS))
        path = draw(st.sampled_from((path,) * 12 + ROUTES))
        return Input(kind, call(path, body, *extra, method=method))
    sent = call(path, body)
    if kind == "leaves":
        sent = sent[: draw(st.integers(1, len(sent)))]
    return Input(kind, sent, leaves=kind == "leaves")


class BriefJudge(KnowingJudge):
    """A judge of every task and rubric that keeps nothing of what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.card, self.known_tasks = None, tuple(task_names())

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        self.seen.clear()
        self.batches.clear()
        return super().verdict_on(request, confidence)


def status_kb(name: str) -> int:
    """Memory of this process: ``VmRSS`` now, or ``VmHWM`` at the most since :func:`reset_peak`."""
    [line] = re.findall(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text("ascii"))
    return int(line)


def kept_kb() -> int:
    """Memory of this process without what only the allocator keeps."""
    gc.collect()
    FreeMemory().give_back()
    return status_kb("VmRSS")


def reset_peak() -> None:
    with suppress(OSError):  # then the peak is that of all inputs
        Path("/proc/self/clear_refs").write_text("5", "ascii")


@dataclass
class Tally:
    """What inputs of one kind cost at most, and how they were answered."""

    statuses: Counter[int | str] = field(default_factory=Counter)
    highest: tuple[float, ...] = (0.0,) * 4
    """Seconds, processor seconds, memory in MB and length in MB."""

    def add(self, status: int | str, *figures: float) -> None:
        self.statuses[status] += 1
        self.highest = tuple(map(max, self.highest, figures))

    def line(self, kind: str) -> str:
        """Its row in a table."""
        counts = (f"{count:,} x {status}" for status, count in self.statuses.most_common())
        figures = "{:.2f} | {:.2f} | {:.0f} | {:.1f}".format(*self.highest)
        return f"| {kind} | {self.statuses.total():,} | {', '.join(counts)} | {figures} |"


GOOD = call("/judge", json.dumps(row(judge="fake")).encode(), seconds=SPARE_S)


@dataclass(eq=False)
class Fuzzed:
    """A service that is sent inputs, and what became of them."""

    service: Service
    client: httpx.Client
    held: Sequence[HeldBytes]
    log: pytest.LogCaptureFixture
    tallies: dict[str, Tally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.verdict = self.answer_to(GOOD)
        assert self.verdict[0] == 200

    def answer_to(self, sent: bytes, *, leaves: bool = False) -> tuple[int | str, str, bytes]:
        """Status, media type and body."""
        address = (self.client.base_url.host, self.client.base_url.port or 0)
        with socket.create_connection(address, timeout=DEADLINE_S + SPARE_S) as connection:
            with suppress(OSError):  # refused before all was sent
                connection.sendall(sent)
            if leaves:
                return "left", "", b""
            method = sent.partition(b" ")[0].decode("latin-1")
            answer = http.client.HTTPResponse(connection, method=method)
            answer.begin()
            return answer.status, answer.headers.get_content_type(), answer.read()

    def check(self, given_input: Input) -> None:
        """Send one input, and look at everything that must hold afterwards."""
        tally = self.tallies.setdefault(given_input.kind, Tally())
        reset_peak()
        before_kb, start, start_cpu = status_kb("VmRSS"), time.monotonic(), time.process_time()
        status, kind, body = self.answer_to(given_input.sent, leaves=given_input.leaves)
        seconds = time.monotonic() - start
        wait_until(lambda: self.service.is_idle and not self.held[0].num_bytes, SPARE_S)
        processor_s = time.process_time() - start_cpu  # with what goes on after the answer
        peak_mb = (status_kb("VmHWM") - before_kb) / 1000
        tally.add(status, seconds, processor_s, peak_mb, len(given_input.sent) / 1e6)
        if status != "left":
            assert status in STATUSES, (status, body[:500])
        if body:
            check_answer(int(status), kind, body)
        logged = self.log.records
        assert not [each for each in logged if each.levelno >= logging.ERROR or each.exc_info]
        self.log.clear()
        assert processor_s < PROCESSOR_S and seconds < DEADLINE_S + SPARE_S
        assert peak_mb < PEAK_MB
        assert self.answer_to(GOOD) == self.verdict


def check_answer(status: int, kind: str, body: bytes) -> None:
    """Check that an answer has one of the documented shapes."""
    assert status == 200 or len(body) < ERROR_BYTES
    if kind == "text/event-stream":
        events = re.findall(r"^data: (.*)$", body.decode("ascii"), re.MULTILINE)
        parts = [strict(event) for event in events if event != "[DONE]"]
    elif kind == "application/json":
        parts = [strict(body)]
    else:
        assert status == 200
        return
    for part in parts:
        if part.get("error"):
            shapes = ({"type", "message", "field"}, {"type", "message", "param", "code"})
            assert part["error"].keys() in shapes and "internal" not in part["error"]["message"]
        verdicts = part.get("verdicts", [part] if "passes" in part else [])
        for verdict in verdicts:
            assert Verdict.model_validate(verdict).status != "judge_error", verdict["message"]


def strict(text: bytes | str) -> Any:
    return json.loads(text, parse_constant=lambda constant: pytest.fail(f"no JSON: {constant}"))


@pytest.mark.parametrize(
    ("first", "num_inputs"),
    [
        pytest.param(1_100, 500, id="few"),
        *(
            pytest.param(first, 25_000, marks=pytest.mark.slow)
            for first in range(0, 100_000, 25_000)
        ),
    ],
)
def test_hostile_calls_are_answered_within_bounds(
    first: int,
    num_inputs: int,
    tiny_folders: Folders,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Send the same inputs each time; ``pytest -rP`` shows what became of them."""
    held: list[HeldBytes] = []

    def make(*of: Any) -> HeldBytes:
        held.append(HeldBytes(*of))
        return held[0]

    monkeypatch.setattr(gate, "HeldBytes", make)
    tiny = Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    service = Service({"fake": BriefJudge(), "tiny": tiny}, Limits(body_seconds=1))
    options = settings(
        max_examples=PART,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    with serving(service) as client:
        run = Fuzzed(service, client, held, caplog)
        for start in range(first, first + num_inputs, PART):
            seed(start // PART)(options(given(inputs())(run.check)))()
            if start == first:  # by now all is loaded
                before_kb = kept_kb()
        grown_mb = (kept_kb() - before_kb) / 1000
    lines = (tally.line(kind) for kind, tally in sorted(run.tallies.items()))
    sys.stdout.write(
        "\n".join([*lines, f"{grown_mb:.0f} MB more are kept than after {PART} inputs"])
    )
    assert grown_mb < GROWTH_MB
