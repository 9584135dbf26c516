"""One request to a judge that ``custos serve`` serves, over a socket."""

from __future__ import annotations

import base64
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
from PIL import Image

from judging.errors import CustosError
from judging.files.pictures import mime_type
from judging.types import JudgeRequest, LabelledExample
from train.tracking.parts import process_peak

DEADLINE_S = 3600
_ADDRESS = re.compile(r"^serving .* at (http://\S+)$")


def serve_once(judge: Path, example: LabelledExample) -> int:
    """Serve a judge, have it grade one row, and stop it.

    Args:
        judge: Run folder.
        example: Row to grade.

    Returns:
        Largest resident memory of the service, in bytes.

    Raises:
        CustosError: If the service does not start or does not grade the row.
    """
    with tempfile.TemporaryFile("w+") as log, _service(judge, log) as (process, address):
        request = {"requests": [_body(example)]}
        try:
            # No proxy of the environment can reach this machine.
            reply = httpx.post(
                f"{address}/judge", json=request, timeout=DEADLINE_S, trust_env=False
            )
            verdict = reply.json()["verdicts"][0] if reply.is_success else {}
        except (httpx.HTTPError, ValueError, LookupError) as error:
            raise CustosError(
                f"custos serve gave no verdict: {_ending(process) or error}"
            ) from None
        if verdict.get("label") is None:
            raise CustosError(f"custos serve answered {reply.status_code}: {reply.text[:300]}")
        return process_peak(Path("/proc") / str(process.pid) / "status")


@contextmanager
def _service(judge: Path, log: IO[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``custos serve`` while the block runs; yield the process and its address."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cli", "serve", "--judge", str(judge), "--port", "0"),
            *("--deadline", str(DEADLINE_S), "--watchdog", str(DEADLINE_S)),
        ],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert process.stdout is not None
    try:
        matches = (_ADDRESS.match(line.strip()) for line in process.stdout)
        address = next((match[1] for match in matches if match), None)
        if address is None:
            log.seek(0)
            errors = log.read().strip().splitlines() or ["it printed no error"]
            raise CustosError(f"custos serve did not start: {errors[-1]}")
        yield process, address
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _ending(process: subprocess.Popen[str]) -> str | None:
    """Return how the service ended, ``None`` if it still runs."""
    try:
        code = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return None
    if code == -signal.SIGKILL:
        return "it was killed, as the system does where memory is short"
    return f"it ended with code {code}"


def _body(example: LabelledExample) -> dict[str, Any]:
    """Return a row as the service takes it: its pictures as data URLs, and no label."""
    fields = set(JudgeRequest.model_fields) & example.model_fields_set
    body = example.model_dump(mode="json", include=fields)
    return {**body, "images": [_data_url(name) for name in example.images]}


def _data_url(source: str) -> str:
    if source.startswith("data:"):
        return source
    with Image.open(source) as picture:
        kind = mime_type(picture)
    content = base64.b64encode(Path(source).read_bytes()).decode("ascii")
    return f"data:{kind};base64,{content}"
